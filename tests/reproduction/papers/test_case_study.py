"""The case study: which pair is shown, what outputs state of it, what a row lacks."""

from pathlib import Path

import pytest
from support.json_files import write_rows
from support.reproduction.paper_jobs import row_job, run_row

from longsumbench.errors import UsageError
from longsumbench.runs.plan import plan_dataset
from longsumbench.runs.record import RunRecord
from longsumbench_reproduction.papers.case_study import case_study_page
from longsumbench_reproduction.papers.page_model import Job

FILLED = ["Nothing of it here."] * 3
NEAR = [*FILLED, "Ash birch cedar.", "Elm fir oak.", *FILLED]
FAR = ["Ash birch cedar.", *FILLED, *FILLED, "Elm fir oak."]
FUSED = "ash birch elm fir."


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Write two examples, whose references fuse two sentences: neighbours, and the first and the last."""
    folder = tmp_path / "texts"
    folder.mkdir()
    lines = [
        {"id": name, "document": " ".join(source), "summary": FUSED}
        for name, source in (("near", NEAR), ("far", FAR))
    ]
    write_rows(folder / "test.jsonl", lines)
    return folder


def job_of(results: Path, texts: Path, example: str | None = None, **runs: RunRecord | None) -> Job:
    """Return a job with a run per row."""
    dataset = plan_dataset(["dataset=jsonl", f"dataset.path={texts}"])
    found = {label: (one,) for label, one in runs.items()}
    return row_job(
        "case_study", results, found, dataset, options={"example": example, "sample": 200}
    )


def lead(results: Path, texts: Path, words_written: int) -> RunRecord:
    """Run Lead, which writes the first sentences, up to so many words."""
    words = f"model=lead dataset=jsonl dataset.path={texts} score.resamples=100"
    return run_row(results, *words.split(), f"model.length={words_written}")


def test_pair_and_what_outputs_state(texts: Path, tmp_path: Path) -> None:
    """The far pair is shown: Lead of one sentence states its first sentence, Lead of all states both."""
    results = tmp_path / "results"
    one, whole = lead(results, texts, 3), lead(results, texts, 100)
    page = case_study_page(job_of(results, texts, One=one, Whole=whole, Later=None))
    notes, pair, every = page.blocks
    assert notes.notes == ("Later, Toys: no run is finished.",)
    assert {label: text for label, text in pair.rows} == {
        "fusion sentence": FUSED,
        "source sentence 1 of 8": FAR[0],
        "source sentence 8 of 8": FAR[-1],
        "One, nearest sentence": FAR[0],
        "One, whole output": "says the first only",
        "Whole, nearest sentence": FAR[0],
        "Whole, whole output": "says both",
    }
    assert "example far; distance 0.88 of the source" in pair.notes[0]
    counted = [" | ".join(row[:3]) for row in every.rows[:3]]
    assert counted == ["One | below 0.5 | 1", "One | 0.5 or more | 1", "One | all | 2"]
    numbers = page.numbers.set_index(["row", "measure"])["value"].astype(float)
    assert numbers["One", "first, distance 0.5 or more"] == 100.0
    assert numbers["One", "neither, distance below 0.5"] == 100.0
    assert numbers["Whole", "both, distance all"] == 100.0
    assert numbers["Whole", "joined, distance all"] == 0.0


def test_chosen_example(texts: Path, tmp_path: Path) -> None:
    """The option chooses the example by its id; one without a pair is wrong usage."""
    results = tmp_path / "results"
    one = lead(results, texts, 3)
    near = case_study_page(job_of(results, texts, "near", One=one)).blocks[0]
    assert [row[0] for row in near.rows[1:3]] == [
        "source sentence 4 of 8",
        "source sentence 5 of 8",
    ]
    with pytest.raises(
        UsageError,
        match="example=none: no pair in this example of Toys; examples with a far one: far",
    ):
        case_study_page(job_of(results, texts, "none", One=one))
