"""Tables of finished runs: which runs are ranked together, and the notes on them."""

import csv
import io
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.commands import Command
from support.run_records import TRAINED, changed, measured, record

from longsumbench.core import Cut, Truncation
from longsumbench.errors import DataError, UsageError
from longsumbench.leaderboards.published import PUBLISHED_AS, find_published, read_published
from longsumbench.leaderboards.table import read_table
from longsumbench.metrics.aggregate import MeasureMean
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.footnotes import describe_budget
from longsumbench.views.leaderboard import TableView, update_table
from longsumbench.views.published import OUR_PAPERS, published_blocks
from longsumbench.views.tables import Block, Stressed

HEADER = (
    "model,variant,dataset,split,n,rouge1,rouge1_lo,rouge1_hi,rouge2,rouge2_lo,rouge2_hi,rougeL,rougeL_lo,rougeL_hi,"
    "rougeLsum,rougeLsum_lo,rougeLsum_hi,source_seen,targets_cut,outputs_cut,parameters,train_steps,train_examples,"
    "train_source_tokens,train_target_tokens,train_seconds,tokens_per_second,peak_memory_gb,seed,signature,run_id,"
    "rouge1_p,rouge1_r,rouge2_p,rouge2_r,rougeL_p,rougeL_r,rougeLsum_p,rougeLsum_r,path,fingerprint,train_split"
)


Update = Callable[..., TableView]


@pytest.fixture
def update(tmp_path: Path) -> Update:
    """Write records in the order given, rebuilding the table after each; return the last table."""

    def write(*records: RunRecord, root: Path = tmp_path) -> TableView:
        for one in records:
            one.write(root / "runs" / one.key.dataset / one.key.model / one.run_id)
            table = update_table(Results(root), one.key.dataset)
        return TableView(table)

    return write


def rows(table: TableView) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.csv())))


def cells(block: Block, heading: str) -> list[str]:
    """The cells of a column."""
    return [row[block.columns.index(heading)] for row in block.rows]


def test_the_csv_has_exactly_the_columns_that_others_rely_on(
    update: Update, tmp_path: Path
) -> None:
    """The CSV has exactly the columns that others rely on, and holds no published number."""
    update(record("lead", 30))
    lines = (tmp_path / "leaderboard" / "arxiv.csv").read_text().splitlines()
    assert lines[0] == f"{HEADER},block,row"
    assert len(lines) == 2


def test_a_row_holds_scores_what_was_read_and_costs(update: Update) -> None:
    """A row holds F1 with its interval, precision, recall, what was read and cut in percent, and the cost."""
    ledger = Truncation(200, 100, (Cut("input_length", 150, 70), Cut("snippet_length", 10, 5)))
    (row,) = rows(update(record("trunc", 30.123456, fit=TRAINED, source=ledger, seed=4)))
    expected = """rougeLsum=30.1235 rougeLsum_lo=29.1235 rougeLsum_hi=30.7235 rougeLsum_p=40.1235
        rougeLsum_r=25.1235 source_seen=20.0 targets_cut=5.0 outputs_cut=25.0 train_steps=300 train_examples=4800
        train_seconds=90.0 seed=4 tokens_per_second=12.5 peak_memory_gb=1.5"""
    assert row.items() >= dict(pair.split("=") for pair in expected.split()).items()


def precise(model: str, f: float, precision: float, **changes: object) -> RunRecord:
    """Return a run whose precision is the same in every type of ROUGE."""
    made = record(model, f, **changes)
    return changed(
        made,
        scores={
            kind: replace(score, p=precision) for kind, score in made.evaluation.scores.items()
        },
    )


def test_by_precision(update: Update, tmp_path: Path) -> None:
    """By precision, runs are ranked by it, which every cell shows; the files, which hold F1, stay as they are."""
    by_f1 = update(precise("a", 30, 20), precise("b", 20, 40), record("lead", 5))
    before = {path.name: path.read_bytes() for path in (tmp_path / "leaderboard").iterdir()}
    table = TableView(read_table(Results(tmp_path), "arxiv", "p"))
    (block,) = table.blocks()
    assert cells(block, "system") == ["b", "a", "lead"]
    assert cells(by_f1.blocks()[0], "system") == ["a", "b", "lead"]
    assert cells(block, "R-1") == ["40.0 ±–", "20.0 ±–", "18.0 ±–"]
    assert isinstance(cells(block, "R-L")[0], Stressed)
    assert block.groups.count("ROUGE precision") == 4
    assert "# arxiv, ROUGE precision" in table.markdown()
    assert "F1" not in table.render() + table.latex()
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "leaderboard").iterdir()}


def test_order_of_finishing(update: Update, tmp_path: Path) -> None:
    """The three files are the same byte for byte in any order of the runs."""
    records = [
        record(name, 20 + ord(name) % 3, signature=f"n:{ord(name) % 2}|v:1") for name in "abcdefg"
    ]
    contents = set()
    for seed in range(3):
        random.Random(seed).shuffle(records)
        root = tmp_path / str(seed)
        update(*records, root=root)
        contents.add(
            tuple(
                (root / "leaderboard" / f"arxiv.{suffix}").read_bytes()
                for suffix in ("csv", "md", "tex")
            )
        )
    assert len(contents) == 1


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        (
            {"signature": "rouge:rouge_score-0.1.2|stemmer:none|n:20|v:1"},
            "stemmer:none instead of stemmer:porter",
        ),
        ({"examples": "e2", "n": 7}, "other examples (7 instead of 20)"),
        ({"split": "validation"}, "validation instead of test split"),
    ],
)
def test_a_run_under_another_condition_is_in_a_separate_block(
    update: Update, changes: dict[str, object], difference: str
) -> None:
    """A run under another condition is in a separate block; the heading has the reason."""
    table = update(record("lead", 30), record("random", 20), record("winner", 99, **changes))
    assert [
        [row.representative.key.model for row in block.rows] for block in table.table.comparable
    ] == [
        ["lead", "random"],
        ["winner"],
    ]
    assert f"not comparable with the first block: {difference}" in table.markdown()
    assert "**33.0 ±0.8**" in table.markdown()


def test_a_trial_displaces_no_result(update: Update) -> None:
    """The whole test split comes first, then blocks by their examples, whatever number of runs they have."""
    trial = [record(f"trial{number}", 90, n=5, examples="e5") for number in range(4)]
    limit = {"dataset": {"name": "arxiv", "limit": 19}}
    limited = record("limited", 70, fingerprint="f2", config=limit, n=19)
    validation = record("early", 60, split="validation", n=900, examples="v")
    table = update(*trial, limited, validation, record("lead", 50))
    blocks = [
        [row.representative.key.model for row in block.rows] for block in table.table.comparable
    ]
    assert blocks == [["lead"], ["early"], ["limited"], ["trial0", "trial1", "trial2", "trial3"]]
    assert table.frame()["block"].tolist() == [1, 2, 3, 4, 4, 4, 4]


def test_one_block_is_printed_by_its_number(
    update: Update, tmp_path: Path, run_command: Command
) -> None:
    """--block prints one block, by the number in its heading and in the CSV; a number without a block is refused."""
    update(record("lead", 30), record("trial", 90, n=5, examples="e5"))
    command = ["leaderboard", "arxiv", "--results-dir", str(tmp_path)]
    printed = run_command(0, *command, "--block", "2").out
    assert "block 2: test split, 5 examples; not comparable with the first block" in printed
    assert "trial" in printed
    assert "lead" not in printed
    assert "Published" not in printed
    assert "--block=3" in run_command(2, *command, "--block", "3").err


def test_oracles_are_labelled_last_and_never_best(update: Update) -> None:
    """A run that its record calls an oracle is labelled, last, and never the best."""
    as_long = {"model": {"length": "reference"}}
    oracles = [
        record("oracle", 60, oracle=True),
        record("lead", 50, oracle=True, run_id="lead-oracle", config=as_long),
    ]
    block = update(*oracles, record("lead", 30), record("random", 20)).blocks()[0]
    assert cells(block, "") == ["1", "2", "", ""]
    assert cells(block, "system") == ["lead", "random", "oracle", "lead (oracle)"]
    assert [type(cell) for cell in cells(block, "R-Lsum")] == [Stressed, str, str, str]
    note = "Oracles, in rows without a place, saw the references or their lengths."
    assert note in block.footnotes


def recall(single: float, silent: float, **others: float) -> dict[str, MeasureMean]:
    """Measures of a run that states so many percent of the facts in one place right, and of those whose link is unsaid."""
    means = {
        "fact_recall": (single + silent) / 2,
        "fact_recall_single": single,
        "fact_recall_silent_other": silent,
    }
    return measured({**means, **others, "fact_recall_chance": 4.2})


def test_what_was_measured_beside_rouge_is_ranked_by(update: Update) -> None:
    """Runs are ranked by their first measure; the main ones come before ROUGE, with the best of each stressed."""
    blind, far = recall(90, 10), recall(88, 60)
    table = update(record("blind", 80, measures=blind), record("far", 40, measures=far))
    (block, *_) = table.blocks()
    assert block.columns[:6] == (
        "",
        "system",
        "facts",
        "one\nplace",
        "link unsaid,\ntwo sections",
        "R-Lsum",
    )
    assert block.groups[:6] == ("", "", *["facts stated right"] * 3, "ROUGE F1")
    assert [row[1:6] for row in block.rows] == [
        ["far", "74.0 ±1.5", "88.0 ±1.5", "60.0 ±1.5", "40.0 ±0.8"],
        ["blind", "50.0 ±1.5", "90.0 ±1.5", "10.0 ±1.5", "80.0 ±0.8"],
    ]
    stressed = [[isinstance(cell, Stressed) for cell in row[2:6]] for row in block.rows]
    assert stressed == [[True, False, True, False], [False, True, False, True]]
    assert any("chance reaches 4.2" in note for note in block.footnotes)


def test_measures_in_the_csv(update: Update) -> None:
    """After the fixed columns come all measures with their intervals, empty for runs without them."""
    table = update(
        record("far", 40, measures=recall(90, 60, extra=5.123456)),
        record("b", 30, measures=recall(8, 9)),
    )
    header = table.csv().splitlines()[0]
    names = "fact_recall fact_recall_single fact_recall_silent_other extra fact_recall_chance"
    columns = [f"{name},{name}_lo,{name}_hi" for name in names.split()]
    assert header == ",".join([HEADER, *columns, "block,row"])
    far, other = rows(table)
    assert (far["extra"], far["extra_lo"], far["extra_hi"]) == ("5.1235", "3.1235", "6.1235")
    assert (other["extra"], other["fact_recall_single_hi"]) == ("", "9.0")


STEP = {"batch_size": 16, "accumulation": 1, "batch_words": None, "batch_tokens": None}
BUDGETS = """
[{}, {}] → Equal budget: 300 steps × 16 examples.
[{}, {"steps": 2000}] → Budgets differ: 300 steps × 16 examples (a); 2,000 steps × 16 examples (b).
[{"batch_tokens": 4096, "examples": 900}, {"batch_tokens": 4096, "examples": 2000}] \
    → Equal budget: 300 steps × batches of 4,096 source tokens.
[{"steps": 0}] →
"""


@pytest.mark.parametrize("line", BUDGETS.strip().splitlines())
def test_one_note_compares_the_budgets_of_trained_runs(line: str) -> None:
    """One note compares the steps × examples per step of all trained runs."""
    runs, _, note = line.partition("→")
    records = []
    for name, changes in zip("ab", json.loads(runs), strict=False):
        recipe = {key: changes.get(key, value) for key, value in STEP.items()}
        fit = replace(TRAINED, **{key: value for key, value in changes.items() if key not in STEP})
        records.append(record(name, 1, fit=fit, config={"train": recipe}))
    assert describe_budget([*records, record("lead", 1)]) == note.strip()


def test_published_numbers_are_a_separate_block(update: Update) -> None:
    """Published numbers are a separate block, with source, input and ROUGE-L by kind; the terminal has the best rows."""
    table = update(record("lead", 30))
    (published,) = table.published()
    assert "liu2022pagesum" not in table.markdown().split("## Published numbers")[0]
    names = [name.replace("\n", " ") for name in published.columns]
    numbers = [dict(zip(names, row, strict=True)) for row in published.rows]
    spatial = [row for row in numbers if row["R-1"] == "49.72"]
    columns = ("R-L sentence", "R-L summary", "input tokens")
    assert {tuple(row[name] for name in columns) for row in spatial} == {("", "44.69", "7168")}
    (brief,) = table.published(brief=True)
    assert all(source.startswith(OUR_PAPERS) for source in cells(brief, "source"))
    assert len(set(cells(brief, "system"))) == len(brief.rows)
    assert f"{len(numbers) - len(brief.rows)} more rows" in brief.footnotes[0]


def test_published_numbers_can_be_chosen_for_any_dataset(update: Update, tmp_path: Path) -> None:
    """Words choose by system, source or dataset, a file adds the user's; all are marked as printed, none is ranked."""
    file = tmp_path / "own.csv"
    file.write_text(
        "system;metric;value;rouge_l_kind\nMine;rouge1;41.0;\nMine;rougeL;39.9;sentence\n"
    )
    view = update(record("lead", 30))
    chosen = find_published(["SEAL", str(file)])
    (block,) = replace(view, chosen=chosen, block=1).published(brief=True)
    assert len(block.rows) == len(chosen)
    filled = [cell for cell in block.rows[-1] if cell]
    assert filled == ["Mine", "41.0", "39.9", "printed in a file of yours"]
    assert all(source.startswith("printed in ") for source in cells(block, "source"))
    assert "printed in zhao2020seal Table 2, PubMed" in cells(block, "source")
    assert "Mine" not in str(view.blocks())
    file.write_text("system,metric,value\nMine,rougeL,41\n")
    with pytest.raises(DataError, match=r"own.csv:2: .*rouge_l_kind"):
        find_published([str(file)])
    with pytest.raises(UsageError, match="--published sael: no such system"):
        find_published(["sael"])


def test_every_published_dataset_has_a_name() -> None:
    """Every dataset of published.csv is one of ours, so that no published number is lost; aclsum has none."""
    names = set(PUBLISHED_AS.values())
    assert sum(len(read_published(name)) for name in names) > 200
    assert published_blocks("aclsum", []) == []
