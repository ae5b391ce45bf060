"""The kinds of tables and figures: for each, the function that makes its page.

Each function is imported when it is first used: some need torch or matplotlib.
"""

from collections.abc import Callable
from importlib import import_module

from longsumbench.errors import UnknownName
from longsumbench.papers.page import Job, Page

# Each has a module of this name with the function NAME_page.
ARTIFACT_KINDS = (
    *("scores", "curves", "dimensions", "sizes", "similarity", "fusions", "coherence", "rank_recall"),
    *("evidence", "examples", "case_study", "questions"),
)
PLANNED_ONLY = frozenset({"dimensions"})  # kinds that show the settings of points, which are not run
# Kinds that show outputs or evidence: a finished run can lack them
SHOWS_OUTPUTS = frozenset({"evidence", "examples", "case_study", "coherence"})


def make_page(job: Job) -> Page:
    """Make the page of a table or figure from the runs that are finished.

    Raises:
        UnknownName: there is no such kind.
    """
    kind = job.artifact.kind
    if kind not in ARTIFACT_KINDS:
        raise UnknownName("kind of artifact", kind, ARTIFACT_KINDS)
    page: Callable[[Job], Page] = getattr(import_module(f"longsumbench.papers.{kind}"), f"{kind}_page")
    return page(job)
