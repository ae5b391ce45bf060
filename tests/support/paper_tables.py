"""Made-up tables of papers: rows that need no training, on a small dataset of one's own files."""

import sys
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from longsumbench.views.tables import Block
from longsumbench_reproduction.papers import command, page_model, paper_tables
from longsumbench_reproduction.papers.page_model import (
    NOT_TESTED,
    REPRODUCED,
    UNDECIDED,
    ClaimOutcome,
    Job,
    Page,
)
from longsumbench_reproduction.papers.paper_tables import PaperRow, PaperTable

TOYS = {
    "Toys": {"probe": "dataset=jsonl dataset.name=toys", "paper": "dataset=jsonl dataset.name=toys"}
}


def toy_paper_table(name: str = "toy-table1", **changes: Any) -> PaperTable:
    """Return a table with the rows Lead and Random on the dataset "Toys", which is read from `path.toys=`."""
    about: dict[str, Any] = {
        "kind": "scores",
        "title": "Lead and Random",
        "default": "probe",
        "scales": {"probe": "seed=1,2", "paper": "score.resamples=100"},
        "datasets": TOYS,
        "rows": {"Lead": PaperRow("model=lead"), "Random": PaperRow("model=random")},
        "name": name,
        "prints": "Table 1",
        "source": "zhao2020seal",
        "citation": "Nobody 2020, TOY",
    }
    return PaperTable(**{**about, **changes})


def offer(monkeypatch: pytest.MonkeyPatch, *offered: PaperTable) -> None:
    """Let the suite have these paper tables only, with a page that lists the runs."""
    found = {paper_table.name: paper_table for paper_table in offered}
    for module in (paper_tables, command, page_model):
        monkeypatch.setattr(module, "read_paper_tables", lambda: found)
    kind = ModuleType("longsumbench_reproduction.papers.scores")
    kind.scores_page = runs_page  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, kind.__name__, kind)


def runs_page(job: Job) -> Page:
    """Return a page with the ids of the runs, three verdicts and a picture."""
    rows = [
        [row.label, row.dataset, " ".join(run.run_id for run in row.finished)] for row in job.rows
    ]
    verdicts = (
        ClaimOutcome(
            *(
                "Lead > Random",
                "rouge1",
                REPRODUCED,
                ("Toys",),
                4.25,
                1.5,
                7.0,
                0.0004,
                "8 examples, 3 seeds",
            ),
            says="Lead leads",
            source="§1",
            facts=12.5,
        ),
        ClaimOutcome("Lead > <b>", "rouge1", UNDECIDED, ("Toys",), reason="8 examples of <b>"),
        ClaimOutcome("Lead > Oracle", "rouge1", NOT_TESTED, ("Toys",), reason="no runs"),
    )
    numbers = pd.DataFrame([{"row": row[0], "runs": row[2]} for row in rows])
    blocks = (Block("Rows", (), ("row", "dataset", "runs"), "lll", rows),)
    return Page(
        blocks,
        numbers,
        verdicts,
        ("Other texts: <toys>.",),
        {f"{job.paper_table.name}-a.png": b"png"},
    )
