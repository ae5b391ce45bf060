"""Answered questions: the page with planted facts as questions, and without any."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.paper_jobs import row_job
from support.run_records import changed, measured, record

from longsumbench.core import Summary
from longsumbench.metrics.aggregate import write_scores
from longsumbench.papers.page import NOT_TESTED, REPRODUCED, Job
from longsumbench.papers.paper_tables import PaperClaim
from longsumbench.papers.questions import questions_page
from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.runs.predictions import write_summaries
from longsumbench.runs.record import RunRecord

PEOPLE = PaperClaim(orders=("HT > FT",), on="rating", untested="nobody was asked")
Write = Callable[..., RunRecord]
PRINTED: dict[str, Any] = {
    "prints": "Table 4",
    "source": "liu2019hiersumm",
    "datasets": {"WikiSum": {}},
}


@pytest.fixture
def finished(tmp_path: Path) -> Write:
    """Write a finished run; return its record."""

    def write(
        model: str, outputs: Sequence[str], facts: Sequence[float] | None = None
    ) -> RunRecord:
        ids = [f"e{place}" for place in range(len(outputs))]
        made = record(model, 30, n=len(ids))
        table = pd.DataFrame(
            {f"{kind}_{part}": 0.3 for kind in ROUGE_TYPES for part in "prf"},
            pd.Index(ids, name="id"),
        )
        if facts is not None:
            means = {"fact_recall": 100 * sum(facts) / len(facts), "fact_recall_chance": 20.0}
            made, table = changed(made, measures=measured(means)), table.assign(fact_recall=facts)
        folder = tmp_path / "runs" / made.key.dataset / model / made.run_id
        made.write(folder)
        write_scores(folder / "scores.csv", table)
        write_summaries(
            folder / "predictions.jsonl",
            [Summary(*pair) for pair in zip(ids, outputs, strict=True)],
        )
        return made

    return write


def job_of(results: Path, runs: Mapping[str, RunRecord | None], *claims: PaperClaim) -> Job:
    """Return a job of Hierarchical's Table 4."""
    found = {label: (one,) for label, one in runs.items()}
    job = row_job("questions", results, found, claims=claims, **PRINTED)
    rows = tuple(row._replace(dataset="WikiSum") for row in job.rows)
    return replace(job, rows=rows, datasets={"WikiSum": job.datasets["Toys"]})


def test_planted_facts_are_questions(finished: Write, tmp_path: Path) -> None:
    """On generated reports the share of facts is shown with the printed numbers, and claims about it are tested.

    Claims about people are not, and say why.
    """
    texts = [f"Text {place}." for place in range(20)]
    runs = {
        "HT": finished("ht", texts, [1.0] * 19 + [0.5]),
        "Lead": finished("lead", texts, [0.25] * 20),
        "FT": None,
    }
    answers = PaperClaim(orders=("HT > Lead",), on={"paper": "qa", "probe": "fact_recall"})
    page = questions_page(job_of(tmp_path, runs, answers, PEOPLE))
    (block,) = page.blocks
    assert [[*row[:2], row[-1]] for row in block.rows] == [
        ["HT", "54.11", "0.237"],
        ["Lead", "31.59", "-0.383"],
        ["FT", "35.69", "0.000"],
    ]
    assert [row[2].split()[0] if row[2] else "" for row in block.rows] == ["97.5", "25.0", ""]
    tested, of_people = page.verdicts
    assert (tested.claim, tested.outcome, tested.measure) == (
        "HT > Lead",
        REPRODUCED,
        "fact_recall",
    )
    assert tested.difference == pytest.approx(97.5 - 25)
    assert (of_people.outcome, of_people.reason) == (NOT_TESTED, "nobody was asked")
    assert any("No question-answering model" in note for note in block.notes)


def test_without_planted_facts(finished: Write, tmp_path: Path) -> None:
    """The page has the printed numbers, says that ours are missing, and tests nothing."""
    texts = ["The cat sat.", "A dog ran."]
    runs = {"HT": finished("ht", texts), "Lead": finished("lead", texts)}
    page = questions_page(job_of(tmp_path, runs, PEOPLE))
    assert page.blocks[0].notes[0].startswith("Ours are missing: only generated reports")
    assert [row[:2] for row in page.blocks[0].rows] == [["HT", "54.11"], ["Lead", "31.59"]]
    assert [one.outcome for one in page.verdicts] == [NOT_TESTED]
