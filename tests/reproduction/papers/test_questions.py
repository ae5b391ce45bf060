"""Answered questions: the page with planted facts as questions, and without any."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.reproduction.paper_jobs import finished_run, row_job

from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.page_model import NOT_TESTED, REPRODUCED, Job
from longsumbench_reproduction.papers.paper_tables import PaperClaim
from longsumbench_reproduction.papers.questions import questions_page

PEOPLE = PaperClaim(orders=("HT > FT",), on="rating", untested="nobody was asked")
Write = Callable[..., RunRecord]


@pytest.fixture
def finished(tmp_path: Path) -> Write:
    """Write a finished run of 20 examples; return its record."""

    def write(model: str, facts: Sequence[float] | None = None) -> RunRecord:
        run = finished_run(Results(tmp_path), model, [0.3] * 20, None, facts=facts)
        run.write(Results(tmp_path).run_folder(run))
        return run

    return write


def job_of(results: Path, runs: Mapping[str, RunRecord | None], *claims: PaperClaim) -> Job:
    """Return a job of Hierarchical's Table 4."""
    job = row_job(
        "questions",
        results,
        {label: (run,) for label, run in runs.items()},
        claims=claims,
        prints="Table 4",
        source="liu2019hiersumm",
        datasets={"WikiSum": {}},
    )
    rows = tuple(row._replace(dataset="WikiSum") for row in job.rows)
    return replace(job, rows=rows, datasets={"WikiSum": job.datasets["Toys"]})


def test_planted_facts_are_questions(finished: Write, tmp_path: Path) -> None:
    """On generated reports the share of facts is shown with the printed numbers, and claims about it are tested.

    Claims about people are not, and say why.
    """
    runs = {
        "HT": finished("ht", [1.0] * 19 + [0.5]),
        "Lead": finished("lead", [0.25] * 20),
        "FT": None,
    }
    answers = PaperClaim(orders=("HT > Lead",), on={"paper": "qa", "probe": "fact_recall"})
    page = questions_page(job_of(tmp_path, runs, answers, PEOPLE))
    (block,) = page.blocks
    printed = [f"{row[0]} {row[1]} {row[-1]}" for row in block.rows]
    assert printed == ["HT 54.11 0.237", "Lead 31.59 -0.383", "FT 35.69 0.000"]
    assert [row[2].split()[0] if row[2] else "" for row in block.rows] == ["97.5", "25.0", ""]
    tested, of_people = page.verdicts
    assert (tested.outcome, tested.measure) == (REPRODUCED, "fact_recall")
    assert tested.difference == pytest.approx(97.5 - 25)
    assert (of_people.outcome, of_people.reason) == (NOT_TESTED, "nobody was asked")
    assert any("No question-answering model" in note for note in block.notes)


def test_without_planted_facts(finished: Write, tmp_path: Path) -> None:
    """The page has the printed numbers, says that ours are missing, and tests nothing."""
    runs = {"HT": finished("ht"), "Lead": finished("lead")}
    page = questions_page(job_of(tmp_path, runs, PEOPLE))
    assert page.blocks[0].notes[0].startswith("Ours are missing: only generated reports")
    assert [row[:2] for row in page.blocks[0].rows] == [["HT", "54.11"], ["Lead", "31.59"]]
    assert [one.outcome for one in page.verdicts] == [NOT_TESTED]
