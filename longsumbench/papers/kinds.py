"""The kinds of tables and figures: for each, the function that makes its page.

Each function is imported when it is first used: some need torch or matplotlib.
"""

from collections.abc import Callable
from importlib import import_module

from longsumbench.errors import UnknownName
from longsumbench.papers.page import Job, Page

ARTIFACT_KINDS = {  # kind → package of its module, which has the function KIND_page
    **dict.fromkeys(("scores", "curves", "dimensions"), "numbers"),
    **dict.fromkeys(("sizes", "similarity", "fusions", "coherence", "rank_recall"), "texts"),
    **dict.fromkeys(("evidence", "examples", "case_study", "questions"), "examples"),
}
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
    module = import_module(f"longsumbench.papers.{ARTIFACT_KINDS[kind]}.{kind}")
    page: Callable[[Job], Page] = getattr(module, f"{kind}_page")
    return page(job)
