"""Example outputs side by side: the numbers by hand, the texts, what a row lacks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.pages import HOSTILE
from support.reproduction.paper_jobs import row_job, run_row
from support.run_records import record, write_run
from support.toys import example, write_jsonl

from longsumbench.core import Summary
from longsumbench.runs.record import RunRecord
from longsumbench.views.tables import markdown
from longsumbench_reproduction.papers.output_examples import examples_page, repeated_spans
from longsumbench_reproduction.papers.page_model import Job

Write = Callable[..., RunRecord]


@pytest.fixture
def finished(tmp_path: Path) -> Write:
    """Write a finished run on two examples, without their texts; return its record."""

    def write(model: str, *texts: str, ids: tuple[str, ...] = ("a", "b")) -> RunRecord:
        made = record(model, 30, n=len(ids))
        summaries = [Summary(*pair) for pair in zip(ids, texts, strict=True)]
        write_run(tmp_path, made, summaries, [0.25, 0.5])
        return made

    return write


def job_of(results: Path, example: Any = 0, **runs: RunRecord | None) -> Job:
    """Return a job with a run per row."""
    found = {label: (one,) for label, one in runs.items()}
    return row_job("examples", results, found, options={"example": example})


def test_outputs_by_hand(finished: Write, tmp_path: Path) -> None:
    """Scores, sentences and repeated words of the same example of each row; without texts, the page says so."""
    first = finished("one", "No.", "It rains. It rains here. It rains here.")
    second = finished("two", "b was first.", "It is dry.", ids=("b", "a"))
    page = examples_page(job_of(tmp_path, 1, One=first, Two=second))
    notes, block = page.blocks
    rows = {row[0]: row for row in block.rows}
    assert block.heading == "arxiv, example b"
    one, two = (" | ".join(rows[name][1:]) for name in ("One", "Two"))
    assert one == "8 | 50.0 | 50.0 | 50.0 | 50.0 | 3 |  | 37.5 | one (one00000)"
    assert two == "3 | 25.0 | 25.0 | 25.0 | 25.0 | 1 |  | 0.0 | two (two00000)"
    assert "The example of Table 1 is not reprinted: see Nobody 2020, TOY." in notes.notes
    assert any("texts of this run are not on this machine" in note for note in notes.notes)
    assert "> It rains. It rains here. It rains here." in page.text
    numbers = page.numbers.set_index(["row", "measure"])["value"]
    assert float(numbers["One", "R-1"]) == 50.0
    assert ("One", "reference_sentences") not in numbers


def test_texts_of_runs(tmp_path: Path) -> None:
    """Lead wrote the reference, its first sentence: the sentence is counted."""
    texts = f"dataset=jsonl dataset.path={write_jsonl(tmp_path / 'texts')} score.resamples=100"
    lead = run_row(tmp_path / "results", "model=lead", *texts.split())
    reference = example(30 + 2, sentences=4).references[0][0]
    page = examples_page(job_of(tmp_path / "results", 2, Lead=lead))
    rows = {row[0]: row for row in page.blocks[1].rows}
    assert rows["reference"][1] == f"{len(reference.split())}"
    assert rows["Lead"][7] == "1"
    assert f"**reference**\n\n> {reference}" in page.text


def test_what_is_missing_is_named(finished: Write, tmp_path: Path) -> None:
    """A row without a run, and one that did not summarize the example of the first row."""
    first, other = finished("one", "A.", "B."), finished("two", "C.", "D.", ids=("c", "d"))
    page = examples_page(job_of(tmp_path, One=first, Two=other, Later=None))
    notes = page.blocks[0].notes
    assert "Later: no run is finished." in notes
    assert any(note.startswith("Two: two (two00000) summarized no example 'a'") for note in notes)
    assert [row[0] for row in page.blocks[1].rows] == ["One"]
    empty = examples_page(job_of(tmp_path, Later=None))
    assert (empty.text, len(empty.numbers)) == ("", 0)


def test_hostile_texts_are_escaped(finished: Write, tmp_path: Path) -> None:
    """Markup in outputs and labels has no meaning in Markdown."""
    page = examples_page(job_of(tmp_path, **{"<i>": finished("one", HOSTILE, "")}))
    written = markdown("t", page.blocks) + page.text
    assert "<script" not in written
    assert "> &lt;script" in written


def test_repeated_stretches_by_hand() -> None:
    """The trigram "a b c" comes back after "d": its words, and those of the trigrams that continue it, are repeated."""
    text = "A b c d. a, B c D e f"
    assert [text[start:end] for start, end in repeated_spans(text)] == ["a, B c D"]
    assert repeated_spans("a b a b") == []  # no trigram comes twice
    assert [("x " * 4)[start:end] for start, end in repeated_spans("x " * 4)] == ["x x x"]
    assert repeated_spans("") == []
