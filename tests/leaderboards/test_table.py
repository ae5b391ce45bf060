"""Tables of finished runs: which runs are ranked together, and the notes on them."""

import csv
import io
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.run_records import TRAINED, changed, judged, measured, record

from longsumbench.cli.main import main
from longsumbench.core import Cut, Truncation
from longsumbench.errors import UsageError
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.published import (
    PUBLISHED_AS,
    read_published,
)
from longsumbench.leaderboards.seed_groups import group_by_seed
from longsumbench.leaderboards.significance import UNDISTINGUISHED, AgainstBest
from longsumbench.leaderboards.table import read_table
from longsumbench.metrics.aggregate import MeasureMean
from longsumbench.metrics.output_facts import OutputFacts
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.leaderboard import TableView, update_table
from longsumbench.views.notes import (
    caution,
    describe_budget,
    describe_starts,
    describe_training_differences,
)
from longsumbench.views.published import OUR_PAPERS, published_blocks
from longsumbench.views.tables import Block, Stressed

HEADER = (
    "model,variant,dataset,split,n,rouge1,rouge1_lo,rouge1_hi,rouge2,rouge2_lo,rouge2_hi,rougeL,rougeL_lo,rougeL_hi,"
    "rougeLsum,rougeLsum_lo,rougeLsum_hi,source_seen,targets_cut,outputs_cut,parameters,train_steps,train_examples,"
    "train_source_tokens,train_target_tokens,train_seconds,tokens_per_second,peak_memory_gb,seed,signature,run_id,"
    "rouge1_p,rouge1_r,rouge2_p,rouge2_r,rougeL_p,rougeL_r,rougeLsum_p,rougeLsum_r,path,fingerprint,train_split"
)
HEALTHY = OutputFacts(20, 20, 20, 0, words=52.4, reference_words=60.0)


@pytest.fixture
def update(tmp_path: Path) -> Callable[..., TableView]:
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
    update: Callable[..., TableView], tmp_path: Path
) -> None:
    """The CSV has exactly the columns that others rely on, and holds no published number."""
    update(record("lead", 30))
    lines = (tmp_path / "leaderboard" / "arxiv.csv").read_text().splitlines()
    assert lines[0] == f"{HEADER},block"
    assert len(lines) == 2


def test_a_row_holds_scores_what_was_read_and_costs(update: Callable[..., TableView]) -> None:
    """A row holds F1 with its interval, precision, recall, what was read and cut in percent, and the cost."""
    ledger = Truncation(200, 100, (Cut("input_length", 150, 70), Cut("snippet_length", 10, 5)))
    (row,) = rows(update(record("trunc", 30.123456, fit=TRAINED, source=ledger, seed=4)))
    assert (row["rougeLsum"], row["rougeLsum_lo"], row["rougeLsum_hi"]) == (
        "30.1235",
        "29.1235",
        "30.7235",
    )
    assert (row["rougeLsum_p"], row["rougeLsum_r"]) == ("40.1235", "25.1235")
    assert (row["source_seen"], row["targets_cut"], row["outputs_cut"]) == ("20.0", "5.0", "25.0")
    assert (row["train_steps"], row["train_examples"], row["train_seconds"], row["seed"]) == (
        "300",
        "4800",
        "90.0",
        "4",
    )
    assert (row["tokens_per_second"], row["peak_memory_gb"]) == ("12.5", "1.5")


def precise(model: str, f: float, precision: float, **changes: object) -> RunRecord:
    """Return a run whose precision is the same in every type of ROUGE."""
    made = record(model, f, **changes)
    return changed(
        made,
        scores={
            kind: replace(score, p=precision) for kind, score in made.evaluation.scores.items()
        },
    )


def test_by_precision(update: Callable[..., TableView], tmp_path: Path) -> None:
    """By precision, runs are ranked by it, which every cell shows; the files, which hold F1, stay as they are."""
    by_f1 = update(
        precise("a", 30, 20), precise("b", 20, 40), precise("c", 10, 30), record("lead", 5)
    )
    before = {path.name: path.read_bytes() for path in (tmp_path / "leaderboard").iterdir()}
    table = TableView(read_table(Results(tmp_path), "arxiv", "p"))
    (block, *published) = table.blocks()
    assert cells(block, "system") == ["b", "c", "a", "lead"]
    assert cells(by_f1.blocks()[0], "system") == ["a", "b", "c", "lead"]
    assert cells(block, "R-1") == ["40.0", "30.0", "20.0", "18.0"]
    assert isinstance(cells(block, "R-L")[0], Stressed)
    assert block.groups.count("ROUGE precision") == 4
    (numbers,) = [line for line in block.footnotes if line.startswith("ROUGE precision")]
    assert "over examples, where the scores of each example (scores.csv) exist." in numbers
    assert "Not tested, because its scores.csv or that of the best row is missing: " in numbers
    assert "# arxiv, ROUGE precision" in table.markdown()
    assert "F1" not in table.render() + table.latex()
    assert all("precision, not ranked" in one.footnotes[0] for one in published)
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "leaderboard").iterdir()}


def test_order_of_finishing(update: Callable[..., TableView], tmp_path: Path) -> None:
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
        ({"fingerprint": "f2"}, "other texts (f2 instead of f1)"),
        ({"examples": "e2", "n": 7}, "other examples (7 instead of 20)"),
        ({"examples": "e2"}, "other examples"),
        ({"split": "validation"}, "validation instead of test split"),
    ],
)
def test_a_run_under_another_condition_is_in_a_separate_block(
    update: Callable[..., TableView], changes: dict[str, object], difference: str
) -> None:
    """A run under another condition is in a separate block; the heading has the reason."""
    table = update(record("lead", 30), record("random", 20), record("winner", 99, **changes))
    assert [[row.first.key.model for row in block.rows] for block in table.table.comparable] == [
        ["lead", "random"],
        ["winner"],
    ]
    assert f"not comparable with the first block: {difference}" in table.markdown()
    assert "**33.0 ±0.8**" in table.markdown()


def test_a_trial_displaces_no_result(update: Callable[..., TableView]) -> None:
    """The whole test split comes first, then blocks by their examples, whatever number of runs they have."""
    trial = [record(f"trial{number}", 90, n=5, examples="e5") for number in range(4)]
    longer = [record(f"longer{number}", 80, n=12, examples="e12") for number in range(2)]
    limited = record(
        "limited", 70, fingerprint="f2", config={"dataset": {"name": "arxiv", "limit": 19}}, n=19
    )
    validation = record("lead", 60, run_id="validation", split="validation", n=900, examples="v")
    left_out = record("lead", 50, n=18, empty_references=("x", "y"))
    table = update(*trial, *longer, limited, validation, left_out)
    blocks = [[row.first.key.model for row in block.rows] for block in table.table.comparable]
    order = [
        ["lead"],
        ["lead"],
        ["limited"],
        ["longer0", "longer1"],
        ["trial0", "trial1", "trial2", "trial3"],
    ]
    assert blocks == order
    assert table.table.comparable[1].rows[0].first.key.split == "validation"
    assert table.frame()["block"].tolist() == [1, 2, 3, 4, 4, 5, 5, 5, 5]


def test_one_block_is_printed_by_its_number(
    update: Callable[..., TableView], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--block prints one block, by the number in its heading and in the CSV; a number without a block is refused."""
    update(record("lead", 30), record("trial", 90, n=5, examples="e5"))
    command = ["leaderboard", "arxiv", "--results-dir", str(tmp_path)]
    assert main([*command, "--block", "2"]) == 0
    printed = capsys.readouterr().out
    assert "block 2: test split, 5 examples; not comparable with the first block" in printed
    assert "trial" in printed
    assert "lead" not in printed
    assert "Published" not in printed
    assert main([*command, "--block", "1", "--latex"]) == 0
    assert capsys.readouterr().out.count("begin{tabular") == 1
    assert main([*command, "--block", "1", "--ledger"]) == 0
    assert "trial" not in capsys.readouterr().out
    assert main([*command, "--block", "3"]) == 2
    assert "--block=3" in capsys.readouterr().err


def test_oracles_are_labelled_last_and_never_best(update: Callable[..., TableView]) -> None:
    """A run that its record calls an oracle is labelled, last, and never the best."""
    as_long = {"model": {"length": "reference"}}
    best = record("lead", 50, oracle=True, run_id="best", config=as_long)
    recipe = record("random", 45, oracle=True, run_id="recipe", config=as_long)
    table = update(
        record("oracle", 60, oracle=True), best, recipe, record("lead", 30), record("random", 20)
    )
    assert [row["run_id"][:6] for row in rows(table)] == [
        "lead00",
        "random",
        "oracle",
        "best",
        "recipe",
    ]
    (block,) = table.blocks()[:1]
    assert cells(block, "") == ["1", "2", "", "", ""]
    assert cells(block, "system") == [
        "lead",
        "random",
        "oracle",
        "lead (oracle)",
        "random (oracle)",
    ]
    assert [type(cell) for cell in cells(block, "R-Lsum")] == [Stressed, str, str, str, str]
    assert (
        "Oracles, in rows without a place, saw the references or their lengths." in block.footnotes
    )


def recall(single: float, silent: float, **others: float) -> dict[str, MeasureMean]:
    """Measures of a run that states so many percent of single and of silent facts right."""
    means = {
        "fact_recall": (single + silent) / 2,
        "fact_recall_single": single,
        "fact_recall_silent_other": silent,
    }
    return measured({**means, **others, "fact_recall_chance": 4.2})


def test_what_was_measured_beside_rouge_is_ranked_by(update: Callable[..., TableView]) -> None:
    """Runs are ranked by their first measure; the main ones come before ROUGE, with the best of each stressed."""
    blind = record("blind", 80, measures=recall(90, 10))
    table = update(
        blind, record("far", 40, measures=recall(88, 60)), record("mute", 1, measures=recall(0, 0))
    )
    assert [row["model"] for row in rows(table)] == ["far", "blind", "mute"]
    (block, *_) = table.blocks()
    assert block.columns[:6] == ("", "system", "facts", "single", "silent\nother", "R-Lsum")
    assert block.groups[:6] == ("", "", *["facts stated right"] * 3, "ROUGE F1")
    assert [list(map(str, row[2:6])) for row in block.rows[:2]] == [
        ["74.0 ±1.5", "88.0 ±1.5", "60.0 ±1.5", "40.0 ±0.8"],
        ["50.0 ±1.5", "90.0 ±1.5", "10.0 ±1.5", "80.0 ±0.8"],
    ]
    assert [[isinstance(cell, Stressed) for cell in row[2:6]] for row in block.rows[:2]] == [
        [True, False, True, False],
        [False, True, False, True],
    ]
    assert any("chance reaches 4.2" in note for note in block.footnotes)


def test_measures_in_the_csv(update: Callable[..., TableView]) -> None:
    """After the fixed columns come all measures with their intervals, empty for runs without them."""
    table = update(
        record("far", 40, measures=recall(90, 60, extra=5.123456)),
        record("b", 30, measures=recall(8, 9)),
    )
    header = table.csv().splitlines()[0]
    names = (
        "fact_recall",
        "fact_recall_single",
        "fact_recall_silent_other",
        "extra",
        "fact_recall_chance",
    )
    assert header == ",".join(
        [HEADER, *(f"{name}{bound}" for name in names for bound in ("", "_lo", "_hi")), "block"]
    )
    far, other = rows(table)
    assert (far["extra"], far["extra_lo"], far["extra_hi"]) == ("5.1235", "3.1235", "6.1235")
    assert (other["extra"], other["fact_recall_single_hi"]) == ("", "9.0")


def test_one_note_compares_the_budgets_of_trained_runs() -> None:
    """One note compares the steps × examples per step of all trained runs."""
    one = record("a", 1, fit=TRAINED)
    assert describe_budget([one, record("b", 1, fit=TRAINED), record("lead", 1)]) == (
        "Equal budget: 300 steps × 16 examples."
    )
    longer = record("b", 1, fit=replace(TRAINED, steps=2000, examples=32000))
    assert (
        describe_budget([one, longer])
        == "Budgets differ: 300 steps × 16 examples (a); 2,000 steps × 16 examples (b)."
    )
    assert describe_budget([record("lead", 1)]) == "Nothing was trained for these rows."
    by_words = {"train": {"batch_size": 16, "batch_words": 2048, "accumulation": 2}}
    of_seeds = [
        record("a", 1, fit=replace(TRAINED, examples=drawn), config=by_words)
        for drawn in (5_000, 5_020)
    ]
    assert (
        describe_budget(of_seeds)
        == "Equal budget: 300 steps × 2 × batches of 2,048 source words, 4 to 64 examples."
    )
    by_tokens = {
        "train": {"batch_size": 16, "batch_words": None, "batch_tokens": 4096, "accumulation": 4}
    }
    of_tokens = [
        record("a", 1, fit=replace(TRAINED, examples=drawn), config=by_tokens)
        for drawn in (900, 2_000)
    ]
    budget = "Equal budget: 300 steps × 4 × batches of 4,096 source tokens"
    assert describe_budget(of_tokens[:1]) == f"{budget}, 900 examples in all."
    assert describe_budget(of_tokens) == f"{budget}, 900 to 2,000 examples in all."


def test_rows_that_differ_in_training() -> None:
    """Train settings in which trained rows differ are listed with the runs they belong to; seeds and budget are not."""

    def trained(name: str, **recipe: object) -> RunRecord:
        train = {
            "learning_rate": 0.001,
            "schedule": "linear",
            "patience": None,
            "batch_size": 16,
            "seed": 1,
            **recipe,
        }
        return record(name, 1, fit=TRAINED, config={"train": train})

    lead = record("lead", 1, config={"train": {"learning_rate": 9.0}})
    alike = [trained("aaaaaaaaaa"), trained("bbbbbbbbbb", seed=2, batch_size=8), lead]
    assert describe_training_differences(alike) == ""
    unlike = [*alike, trained("cccccccccc", learning_rate=0.002, patience=3)]
    assert describe_training_differences(unlike) == (
        "Rows differ in training: learning_rate 0.001 (aaaaaaaa, bbbbbbbb), 0.002 (cccccccc); "
        "patience 3 (cccccccc), null (aaaaaaaa, bbbbbbbb)."
    )


def started(model: str, init: str, **changes: object) -> RunRecord:
    """A run with random initial weights, or weights from a checkpoint."""
    return record(model, 30, config={"model": {"init": init}}, **changes)


def test_where_weights_came_from(update: Callable[..., TableView]) -> None:
    """A table names models by their initial weights, once for each start; without any there is no note."""
    assert (
        describe_starts([record("lead", 1), record("theirs", 1, config={"model": {"init": 0.02}})])
        == ""
    )
    runs = [
        started("seal", "random", run_id="1"),
        started("seal", "random", run_id="2"),
        started("ca", "random"),
    ]
    runs += [started("pagesum", "facebook/bart_large"), record("lead", 20)]
    note = "Random initial weights: ca, seal. From a checkpoint: pagesum (facebook/bart_large)."
    assert describe_starts(runs) == note
    table = update(*runs)
    assert note in " ".join(table.render().split())
    assert all(note.replace("_", r"\_") in text for text in (table.markdown(), table.latex()))


@pytest.mark.parametrize(("f", "warned"), [(20, True), (30, True), (30.1, False), (40, False)])
def test_no_trained_system_is_ahead_of_lead(f: float, warned: bool) -> None:
    """The table says so where no trained run has a higher mean than Lead's 30; whether it is tied, the marks say."""
    made = [record("trunc", f, fit=TRAINED), record("seal", 5, fit=TRAINED), record("lead", 30)]
    runs = [group_by_seed([run], {})[0] for run in made]
    assert caution(runs) == ("No trained system is above Lead in R-Lsum." if warned else "")
    assert caution(runs[:2]) == caution(runs[2:]) == ""


def test_what_is_wrong_with_the_outputs(update: Callable[..., TableView]) -> None:
    """A run of few texts, cut outputs or repetitions is named below the table; the table and the CSV have lengths."""
    wrong = record("trunc", 30, outputs=replace(HEALTHY, distinct=3, repetitive=12), outputs_cut=19)
    table = update(wrong, record("lead", 20, outputs=HEALTHY), record("old", 10, outputs_cut=20))
    (block, *_) = table.blocks()
    (warning,) = [note for note in block.footnotes if note.startswith("Warning")]
    assert warning == (
        "Warning, trunc trunc000: nearly identical outputs, 3 of 20 distinct; "
        "12 of 20 outputs repeat themselves; 19 of 20 outputs stopped at the length limit."
    )
    assert cells(block, "words /\nreference") == ["52 / 60", "52 / 60", ""]
    assert [
        (row["output_words"], row["reference_words"], row["outputs_distinct"])
        for row in rows(table)
    ] == [
        ("52.4", "60.0", "3"),
        ("52.4", "60.0", "20"),
        ("", "", ""),
    ]


def test_published_numbers_are_a_separate_block(update: Callable[..., TableView]) -> None:
    """Published numbers are a separate block, with source, input and ROUGE-L by kind."""
    ours, published = update(record("lead", 30)).markdown().split("## Published numbers")
    assert "liu2022pagesum" not in ours
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in published.splitlines()
        if "|" in line
    ]
    table = [dict(zip(cells[0], line, strict=True)) for line in cells[2:]]
    spatial = {
        (row["R-L sentence"], row["R-L summary"], row["input tokens"])
        for row in table
        if row["R-1"] == "49.72"
    }
    assert spatial == {("", "44.69", "7168")}
    assert [
        (row["R-L sentence"], row["R-L summary"]) for row in table if row["system"] == "SEAL"
    ] == [("26.3", "39.3")]


def test_published_on_the_terminal(update: Callable[..., TableView]) -> None:
    """The terminal shows the best row that the suite's own papers report of each system, and counts the rest."""
    table = update(record("lead", 30))
    (published,) = [
        block for block in table.published(brief=True) if block.heading == "Published numbers"
    ]
    assert all(source.startswith(OUR_PAPERS) for source in cells(published, "source"))
    assert {"SEAL", "PageSum"} <= set(cells(published, "system"))
    assert len(set(cells(published, "system"))) == len(published.rows)
    assert (
        f"{len(read_published('arxiv')) - len(published.rows)} more rows" in published.footnotes[0]
    )


def test_every_published_dataset_has_a_name() -> None:
    """Every dataset of published.csv is one of ours, so that no published number is lost; pydoc has none."""
    names = set(PUBLISHED_AS.values())
    assert sum(len(read_published(name)) for name in names) > 200
    assert published_blocks("pydoc", []) == []


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_line_is_wider_than_the_terminal(
    update: Callable[..., TableView], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """No line is wider than the terminal, with all measures at their widest, best and tied; a wide one shows all."""
    kinds = {f"fact_recall_{kind}": 100.0 for kind in ("relayed", "silent_same")}
    variant = ",".join(f"setting_{number}=123456" for number in range(6))
    wide = {
        "variant": variant,
        "seed": 12,
        "fit": replace(TRAINED, steps=10_000),
        "source": Truncation(200, 100),
    }
    without_seed = {**wide, "seed": None}
    best = record(
        "hierarchical_transformer",
        100,
        measures=recall(100, 100, **kinds),
        outputs=HEALTHY,
        **without_seed,
    )
    near = record(
        "hiersumm", 99.99, measures=recall(99.99, 99.99, **dict.fromkeys(kinds, 99.99)), **wide
    )
    table = update(best, near, record("lead", 31, measures=recall(1, 1, **kinds)))
    keys = [(near.run_id, name) for name in (*near.evaluation.measures, *ROUGE_HEADINGS)]
    tied = AgainstBest(dict.fromkeys(keys, judged(UNDISTINGUISHED)))
    monkeypatch.setenv("COLUMNS", str(width))
    block = replace(table.table.comparable[0], tests=tied)
    text = TableView(replace(table.table, comparable=(block,))).render()
    assert "*100.0 ±1.5" in text
    assert "100.0 ±1.5≈" in text
    assert max(map(len, text.splitlines())) <= width
    assert ("relayed" in text.partition("*")[0]) == (width == 200)


def test_what_was_typed_is_shown_as_it_was_typed(update: Callable[..., TableView]) -> None:
    """Special characters of Markdown and LaTeX are escaped, and the table keeps its columns."""
    table = update(
        record("trunc", 30, variant="tokenizer=a|b_<img src=x>*[`\\&%~~&lt;"), record("lead", 20)
    )
    line = next(line for line in table.markdown().splitlines() if "| trunc " in line)
    assert r"tokenizer=a\|b\_&lt;img src=x>\*\[\`\\&%&#126;&#126;&amp;lt;" in line
    assert len(re.findall(r"(?<!\\)\|", line)) == len(table.blocks()[0].columns) + 1
    assert "**30.0 ±0.8**" in line
    assert r"a|b\_\ensuremath{<}img src=x\ensuremath{>}*[`\textbackslash{}\&\%" in table.latex()


def test_a_dataset_without_runs_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    """A dataset without finished runs is an error that names the nearest one with runs."""
    record("lead", 30).write(tmp_path / "runs" / "arxiv" / "lead" / "1")
    with pytest.raises(
        UsageError, match=r"unknown dataset with results 'arxv'.*did you mean 'arxiv'"
    ):
        update_table(Results(tmp_path), "arxv")
