"""The screen after `longsumbench run`: short, with the runs just done, whatever else the results folder has."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.run_records import TRAINED, measured, record

from longsumbench.leaderboards.table import read_table
from longsumbench.metrics.output_facts import OutputFacts
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.after_run import UpdatedTable, describe_runs

Describe = Callable[[Sequence[RunRecord], Sequence[RunRecord]], list[str]]


@pytest.fixture
def describe(here: Path, monkeypatch: pytest.MonkeyPatch) -> Describe:
    """Write runs; return the lines after the last ones, in a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def lines(others: Sequence[RunRecord], done: Sequence[RunRecord]) -> list[str]:
        results = Results(Path("results"))
        for run in (*others, *done):
            run.write(results.run_folder(run))
        names = sorted({run.key.dataset for run in done})
        text = describe_runs(
            [UpdatedTable(read_table(results, name), results) for name in names], done
        )
        assert max(map(len, text.splitlines())) <= 80
        return text.splitlines()

    return lines


def seal(f: float, number: int = 0, **changes: object) -> RunRecord:
    """A trained run with other settings than the runs of other numbers."""
    made = {
        "run_id": f"{number:04d}seal{f:04.0f}",
        "variant": f"segment_length={number}",
        "fit": TRAINED,
    }
    return record("seal", f, config={"model": {"segment_length": number}}, **{**made, **changes})


def test_a_short_screen(describe: Describe) -> None:
    """The run's row is between its neighbours, with the best row above; then comparable systems, files, commands."""
    others = [seal(30 - number, number) for number in range(1, 12)]
    lines = describe([*others, record("lead", 20)], [seal(24.5)])
    assert lines[:2] == [
        "arxiv, test split, 20 examples",
        "Done: seal, segment_length 0 (0000seal)",
    ]
    places = [line.replace("→", " ").split()[0] for line in lines[5:10]]
    assert places == ["1", "⋮", "5", "6", "7"]
    assert [line for line in lines if line.startswith("→")] == [lines[8]]
    assert lines[-5:] == [
        "Same texts, split, examples and scoring: 13 rows (13 runs).",
        "Table: results/leaderboard/arxiv.md, .csv, .tex",
        "Next: longsumbench leaderboard arxiv  # the whole table",
        "      longsumbench compare 0001seal 0000seal  # do these two differ?",
        "      longsumbench inspect 0000seal 0  # what it read and wrote",
    ]


def test_words_of_the_table_are_explained(describe: Describe) -> None:
    """The legend has the marks and words that the table shows, and no other: "oracle" only next to an oracle."""
    text = " ".join(describe([record("lead", 20)], [seal(24.5)]))
    meanings = "→: a run of this command; R-Lsum: ROUGE-Lsum, 0–100; ±: half the 95 % interval"
    legend = f"Legend: {meanings} (of one seed: over examples only)."
    assert legend in text
    assert "oracle: copies the sentences" in " ".join(
        describe([], [record("oracle", 40, oracle=True)])
    )


def test_runs_in_other_blocks_are_counted(describe: Describe) -> None:
    """What may not be compared is counted, with the reason."""
    others = [seal(40, number, n=7, examples="e2") for number in range(1, 4)]
    lines = describe(
        [*others, seal(50, 9, signature="rouge:x|n:20|v:1")], [seal(30, 0), record("lead", 20)]
    )
    text = " ".join(lines)
    assert (
        "In other blocks: 4 runs (3 with other examples (7 instead of 20); 1 with rouge:x instead of"
        in text
    )
    assert sum(line.startswith("→") for line in lines) == 2


def test_a_sweep_is_described_shortly(describe: Describe) -> None:
    """Of many points the best ones are shown; long settings are cut, and all lines fit."""
    variant = ",".join(f"setting_number_{number}={number}" for number in range(3))
    points = [
        seal(30 + number, number, variant=f"x={number},{variant}", seed=number)
        for number in range(12)
    ]
    lines = describe([record(f"system{number}", 20 + number) for number in range(30)], points)
    assert len(lines) <= 25
    assert lines[1].startswith("Done: 12 runs, seal, ")


def test_warnings_on_outputs(describe: Describe) -> None:
    """The screen warns of what is wrong with the outputs of the runs just done, also in lines of many datasets."""
    alike: dict[str, Any] = {"outputs": OutputFacts(20, 20, 3, 0), "outputs_cut": 19}
    other = record("other", 25, outputs=OutputFacts(20, 20, 2, 0))
    warning = (
        "nearly identical outputs, 3 of 20 distinct; 19 of 20 outputs stopped at the length limit."
    )
    text = " ".join(describe([other], [seal(30, **alike)]))
    assert f"Warning, seal 0000seal: {warning}" in text
    assert "Warning, other" not in text
    lines = describe(
        [], [seal(30 + number, number, dataset=f"corpus{number}", **alike) for number in range(4)]
    )
    assert [line.partition(":")[0] for line in lines if "arning" in line] == [
        "Warning, seal 0000seal",
        "Warning, seal 0001seal",
        "Such warnings for 2 more runs (outputs_* in the CSV).",
    ]


def test_two_datasets_have_a_table_each(describe: Describe) -> None:
    """Both tables are shown, and the commands once."""
    means = {"fact_recall": 90.0, "fact_recall_single": 90.0, "fact_recall_chance": 4.2}
    probe = [
        record(
            name,
            30,
            dataset="probe",
            measures=measured({key: value - less for key, value in means.items()}),
        )
        for name, less in (("seal", 0.0), ("ea", 50.0))
    ]
    lines = describe([record("lead", 31, dataset="aclsum")], [*probe, seal(30, dataset="aclsum")])
    assert len(lines) <= 40
    assert [line for line in lines if "test split" in line] == [
        "aclsum, test split, 20 examples",
        "probe, test split, 20 examples",
    ]
    (first_command,) = [line for line in lines if line.startswith("Next")]
    assert first_command == "Next: longsumbench leaderboard aclsum  # the whole table"


def test_several_datasets_take_a_line_each(describe: Describe) -> None:
    """A sweep over datasets has a line for each: its best run, its score and its place."""
    runs = [seal(30 + number, dataset=f"corpus{number}") for number in range(30)]
    others = [record("lead", 31, dataset=run.key.dataset) for run in runs]
    lines = describe(others, runs)
    assert len(lines) <= 25
    assert lines[0] == "30 runs on 30 datasets. The best of them:"
    assert lines[1] == "corpus0: seal, R-Lsum 30.0 ±0.8, place 2 of 2"
    assert lines[-2:] == ["… and 8 more datasets.", "Next: longsumbench leaderboard DATASET"]
