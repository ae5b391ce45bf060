"""The last screen of a command: 24 lines with the runs just done, whatever else the results folder has."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.run_records import TRAINED, record

from longsumbench.core import Truncation
from longsumbench.leaderboards.table import read_table
from longsumbench.metrics.output_stats import OutputStats
from longsumbench.runs.record import RunRecord, StepSeconds
from longsumbench.runs.results import Results
from longsumbench.views.run_summary_screen import MOST_LINES, UpdatedTable, describe_runs

Describe = Callable[[Sequence[RunRecord], Sequence[RunRecord]], list[str]]
LONG = ",".join(f"setting_number_{number}={number}" for number in range(9))


@pytest.fixture
def describe(here: Path, monkeypatch: pytest.MonkeyPatch) -> Describe:
    """Write runs; return the lines after the last ones, in a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def lines(others: Sequence[RunRecord], done: Sequence[RunRecord]) -> list[str]:
        results = Results(Path("results"))
        for run in (*others, *done):
            run.write(results.run_folder(run))
        names = sorted({run.key.dataset for run in done})
        tables = [UpdatedTable(read_table(results, name), results) for name in names]
        lines = describe_runs(tables, done).splitlines()
        assert max(map(len, lines)) <= 80
        assert len(lines) <= MOST_LINES
        return lines

    return lines


def seal(f: float, number: int = 0, **changes: object) -> RunRecord:
    """A trained run with other settings than the runs of other numbers."""
    defaults = {
        "run_id": f"{number:04d}seal{f:04.0f}",
        "variant": f"segment_length={number}",
        "fit": TRAINED,
    }
    return record(
        "seal", f, config={"model": {"segment_length": number}}, **{**defaults, **changes}
    )


def test_a_short_screen(describe: Describe) -> None:
    """The run's row is between its neighbours, with the best row above; then who is ahead, its place, commands."""
    others = [seal(30 - number, number) for number in range(1, 12)]
    work: dict[str, Any] = {
        "timings": StepSeconds(total=130.2),
        "source": Truncation(312_000, 9),
    }
    lines = describe([*others, record("lead", 20)], [seal(24.5, **work)])
    assert " ".join(lines[:2]) == (
        "arxiv, test split, 20 examples. Done: seal, segment_length 0 (0000seal), 20 texts, 312,000 tokens, 2 min 10 s"
    )
    places = [line.replace("→", " ").split()[0] for line in lines[4:9]]
    assert places == ["1", "⋮", "5", "6", "7"]
    assert [line for line in lines if line.startswith("→ ")] == [lines[7]]
    assert "oracle" not in " ".join(lines)
    text = " ".join(lines)
    assert "Nothing is shown: seal, segment_length 1 is 10.00 points" in text
    assert "seal, segment_length 0: place 6 of 13, 4.50 below seal, segment_length 1 (" in text
    assert lines[-4:] == [
        "Table: results/leaderboard/arxiv.md, .csv, .tex",
        "Next: longsumbench leaderboard arxiv  # the whole table",
        "      longsumbench compare 0001seal 0000seal  # do these two differ?",
        "      longsumbench inspect 0000seal 0  # what it read and wrote",
    ]


def test_other_blocks_are_named(describe: Describe) -> None:
    """What may not be compared is named by what distinguishes it."""
    others = [seal(40, 1, n=7, examples="e2"), seal(50, 9, signature="rouge:x|n:20|v:1")]
    text = " ".join(describe(others, [seal(30, 0), record("lead", 20)]))
    reasons = "rouge:x instead of rouge:rouge_score-0.1.2, v:1 instead of n:20; other examples (7"
    assert f"Other runs may not be compared with these: {reasons}" in text
    assert text.count("→") == 3  # two rows and the legend


def test_long_names_fit(describe: Describe) -> None:
    """Datasets, systems, settings and warnings without end are cut; the table and the commands stay."""
    alike: dict[str, Any] = {"outputs": OutputStats(20, 20, 3, 0), "dataset": "d" * 60}
    points = [
        seal(30 + number, number, variant=f"x={number},{LONG}", seed=number, **alike)
        for number in range(12)
    ]
    others = [
        record(f"a_system_of_many_words_{number}", 20 + number, dataset="d" * 60)
        for number in range(30)
    ]
    lines = describe(others, points)
    assert "Done: 12 runs" in " ".join(lines[:2])
    assert sum(line.strip().startswith("→ ") for line in lines) == 2
    assert any(line.startswith("Next: ") for line in lines)
    assert any(line.endswith(" …") for line in lines)


def test_warnings_on_outputs(describe: Describe) -> None:
    """The screen warns of what is wrong with the outputs of the runs just done, and of no others."""
    alike: dict[str, Any] = {"outputs": OutputStats(20, 20, 3, 0), "outputs_cut": 19}
    other = record("other", 25, outputs=OutputStats(20, 20, 2, 0))
    text = " ".join(describe([other], [seal(30, **alike)]))
    warning = (
        "nearly identical outputs, 3 of 20 distinct; 19 of 20 outputs stopped at the length limit."
    )
    assert f"Warning, seal 0000seal: {warning}" in text
    assert "Warning, other" not in text


def test_other_datasets_take_a_line_each(describe: Describe) -> None:
    """After the first dataset's table, each has its best run, its score and its place, while there is room."""
    runs = [seal(30 + number, dataset=f"corpus{number}") for number in range(30)]
    others = [record("lead", 31, dataset=run.key.dataset) for run in runs]
    text = " ".join(describe(others, runs))
    assert "corpus1: seal, R-Lsum 31.0 ±0.8, place 2 of 2" in text
    assert "corpus29:" not in text


def test_names_are_told_apart_at_80_columns(describe: Describe) -> None:
    """Rows of one system that differ in a setting have different names: the remarks make room for them."""
    runs = []
    for number, reading in enumerate(("beginning", "ends", "select")):
        run = record(
            "prompt",
            20 + number,
            run_id=f"{number}prompt00000",
            variant=f"reading={reading}",
            config={"model": {"name": "prompt", "reading": reading}},
            fit=replace(TRAINED, ended_by="max_minutes", averaged=((1, 0.5), (2, 0.4))),
        )
        runs.append(run)
    text = "\n".join(describe([record("lead", 30)], runs))
    for run in runs:
        assert f"prompt, {run.config.model['reading']} " in text
