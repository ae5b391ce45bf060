"""The kinds of tables and figures: for each, the function that makes its page.

Each function is imported when it is first used: some need torch or matplotlib.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from longsumbench.errors import UnknownName
from longsumbench.papers.page import Job, Page

ARTIFACT_KINDS = {  # kind → package of its module, which has KIND_page, and perhaps check_KIND
    **dict.fromkeys(("scores", "curves", "dimensions"), "numbers"),
    **dict.fromkeys(("sizes", "similarity", "fusions", "rank_recall"), "texts"),
    **dict.fromkeys(("evidence", "examples", "case_study", "questions"), "examples"),
}
PLANNED_ONLY = frozenset({"dimensions"})  # kinds that show the settings of points, which are not run
# Kinds that show outputs or evidence: a finished run can lack them
SHOWS_OUTPUTS = frozenset({"evidence", "examples", "case_study"})


def make_page(job: Job) -> Page:
    """Make the page of a table or figure from the runs that are finished.

    Raises:
        UnknownName: there is no such kind.
    """
    kind = job.artifact.kind
    page: Callable[[Job], Page] = getattr(_module_of(kind), f"{kind}_page")
    return page(job)


def check_options(job: Job) -> None:
    """Check the settings of a kind before runs start; many kinds have none to check.

    Raises:
        SuiteError: a file or a model that the page needs cannot be used.
    """
    check = getattr(_module_of(job.artifact.kind), f"check_{job.artifact.kind}", None)
    if check is not None:
        check(job)


def _module_of(kind: str) -> ModuleType:
    if kind not in ARTIFACT_KINDS:
        raise UnknownName("kind of artifact", kind, ARTIFACT_KINDS)
    return import_module(f"longsumbench.papers.{ARTIFACT_KINDS[kind]}.{kind}")
