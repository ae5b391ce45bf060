"""The columns of a leaderboard that `--columns` chooses."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.commands import Command
from support.run_records import TRAINED, measured, record

from longsumbench.core import Cut, Truncation
from longsumbench.errors import UsageError
from longsumbench.leaderboards.seed_groups import group_rows_by_seed
from longsumbench.metrics.output_stats import OutputStats
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.column_list import choose_columns, collect_columns, list_columns

OUTPUTS = OutputStats(20, 20, 15, 5, words=120.4, reference_words=98.0)
RECIPE = {"batch_size": 16, "accumulation": 1, "learning_rate": 0.001}


def seal(seed: int, **changes: object) -> RunRecord:
    """A trained run on one seed."""
    config = {"train": {**RECIPE, "seed": seed}, "model": {"page_size": 256}}
    fit = replace(TRAINED, seconds=60.0 * seed)
    made = {
        "seed": seed,
        "fit": fit,
        "outputs": OUTPUTS,
        "config": config,
        "measures": measured({"novel_ngrams_2": 40}),
    }
    return record(
        "seal",
        30 + seed,
        run_id=f"seal{seed}seal{seed}",
        ranked_by="rougeLsum",
        **{**made, **changes},
    )


SETTINGS = "baselines device name overwrite results_dir scale timeout_minutes"  # of no group
RUNS = [seal(1), seal(2), record("lead", 20)]


CELLS = {
    "rougeLsum": "31.5 ±–",
    "length": "120 / 98",
    "seconds": "1 min 30 s",
    "seed": "1, 2",
    "distinct": "75 %",
    "outputs_cut": "25 %",
    "learning_rate": "0.001",
    "model.page_size": "256",
}


def test_a_row_of_two_seeds_has_means_and_what_they_share() -> None:
    """A row of two seeds has the mean of numbers and costs, and what both runs share."""
    row = group_rows_by_seed(RUNS, {})[0]
    columns = choose_columns([*CELLS], collect_columns(RUNS))
    assert [column.cell(row) for column in columns] == [*CELLS.values()]


CUT = Truncation(1000, 1000, (Cut("length", 950, 950),))


@pytest.mark.parametrize(
    ("run", "read", "copied"),
    [
        (record("lead", 1, source=CUT, words_copied=50), "5 %", "5 %"),
        (
            record("lexrank", 1, source=Truncation(40_000, 40_000), words_copied=2_400),
            "100 %",
            "6 %",
        ),
        (seal(1, source=Truncation(400, 200, (Cut("num_snippets", 100, 50),))), "75 %", ""),
        (record("oracle", 1), "", ""),
    ],
)
def test_what_is_read_and_what_is_copied(run: RunRecord, read: str, copied: str) -> None:
    """A system that ranks all of the source has read it, however little it copies; what is written is not copied."""
    (row,) = group_rows_by_seed([run], {})
    assert [
        column.cell(row)
        for column in choose_columns(["source_seen", "source_copied"], collect_columns([run]))
    ] == [
        read,
        copied,
    ]
    assert ("cut_length" in collect_columns([run])) == (read == "5 %")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "rougeLsun",
            r"no run has a column 'rougeLsun' \(did you mean 'rougeLsum'\?\); --columns help lists all",
        ),
        (
            "bertscore",
            r"'bertscore'; to compute it, repeat their commands with score.metrics=\[bertscore\]",
        ),
        (
            "limit",
            r"--columns limit may be dataset.limit or decode.limit: type one of these",
        ),
    ],
)
def test_a_column_that_no_run_has(name: str, message: str) -> None:
    """An unknown column is an error that names the nearest one; so is a setting of several groups."""
    with pytest.raises(UsageError, match=message):
        choose_columns([name], collect_columns(RUNS))


def test_the_settings_of_a_group_share_a_line() -> None:
    """`--columns help` has one line for all settings of a group, and one for each other column."""
    columns = collect_columns(RUNS)
    lines = list_columns(columns).splitlines()
    groups = [line for line in lines if "SETTING" in line]
    assert len(lines) == len(groups) + sum(
        "." not in name and name not in SETTINGS.split() for name in columns
    )
    [of_model] = [line for line in groups if line.startswith("model.SETTING ")]
    assert of_model.split("settings: ")[1].split(", ") == sorted(
        name.removeprefix("model.") for name in columns if name.startswith("model.")
    )


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A results folder with the runs, and a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    for run in RUNS:
        run.write(Results(tmp_path).run_folder(run))
    return str(tmp_path)


def test_the_command_prints_the_chosen_columns(root: str, run_command: Command) -> None:
    """The chosen columns are printed after system and settings; the files keep the default ones."""
    command = ("leaderboard", "--results-dir", root, "--columns")
    lines = run_command(0, *command, "seconds, rouge1,page_size").out.splitlines()
    assert [line.split() for line in lines if line.startswith(("1 ", "2 "))] == [
        ["1", "seal", "1", "min", "30", "s", "*34.5", "±–", "256"],
        ["2", "lead", "23.0", "±0.8"],
    ]
    assert "words" in (Path(root) / "leaderboard" / "arxiv.md").read_text()
    assert r"S[table-format=2.1(1)]" in run_command(0, *command, "rouge1", "--latex").out


def test_lengths_are_a_group_of_columns() -> None:
    """--columns lengths means words, precision and recall; --columns help lists it."""
    columns = collect_columns([record("lead", 30)])
    names = [column.name for column in choose_columns(["rouge1", "lengths"], columns)]
    assert names == ["rouge1", "length", "rouge1_p", "rouge1_r"]
    assert "lengths: with R-1 precision and recall" in list_columns(columns)
