"""Checkpoints that were not trained here: their own block, what their rows say, and their columns."""

import csv
import io

import pytest
from support.run_records import TRAINED, record

from longsumbench.leaderboards.seed_groups import group_rows_by_seed
from longsumbench.leaderboards.significance import build_blocks
from longsumbench.leaderboards.table import Table
from longsumbench.metrics.output_stats import OutputStats
from longsumbench.runs.record import RunRecord
from longsumbench.views.column_list import collect_columns
from longsumbench.views.columns import remarks
from longsumbench.views.leaderboard import TableView

OUTPUTS = OutputStats(20, 20, 20, 0, words=120.0, reference_words=96.0)
BART = {
    "checkpoint": "facebook/bart-large-cnn",
    "revision": "37f520fa929c961707657b28798b30c003dd100b",
    "weights": "safetensors",
    "parameters": 406_290_432,
    "context": 1024,
    "released": "2019-10-29",
}
CHAT = {
    "checkpoint": "/data/models/qwen-8b",
    "engine": "api",
    "context": 32_768,
    "prompt": "document",
    "prompt_hash": "0123456789abcdef",
}
COUNTS = {
    "requests": 20,
    "prompt_tokens": 123_456,
    "output_tokens": 2_000,
    "refused": 1,
    "price": 0.01234,
}


def bart(**changes: object) -> RunRecord:
    """A checkpoint as it is."""
    return record("seq2seq", 40, **{"system": BART, "outputs": OUTPUTS, **changes})


def chat(**changes: object) -> RunRecord:
    """A language model behind a server."""
    return record("prompt", 35, **{"system": CHAT, "outputs": OUTPUTS, "counts": COUNTS, **changes})


SEAL, LEAD = record("seal", 30, fit=TRAINED), record("lead", 20)
ORACLE = record("oracle", 50, oracle=True)


def table_of(*runs: RunRecord) -> TableView:
    """Return the table of runs without scores per example."""
    return TableView(Table("arxiv", build_blocks(runs)))


def test_trained_systems_and_checkpoints_have_their_own_blocks() -> None:
    """Each has the baselines, the CSV has every run once; only the block of checkpoints says that they are."""
    table = table_of(SEAL, LEAD, ORACLE, bart(), chat())
    systems = [
        " ".join(row.representative.key.model for row in block.rows)
        for block in table.table.comparable
    ]
    assert systems == ["seal lead oracle", "seq2seq prompt lead oracle"]
    rows = csv.DictReader(io.StringIO(table.csv()))
    assert " ".join(row["model"] for row in rows) == "seal lead oracle seq2seq prompt"
    trained, untrained = table.blocks()[:2]
    assert trained.notes == ()
    assert untrained.heading.startswith("block 2: test split, 20 examples, systems that were not")
    (note,) = untrained.notes
    assert note.startswith("Not trained here: seq2seq (facebook/bart-large-cnn), prompt (qwen-8b).")


def test_a_row_says_what_it_is() -> None:
    """Not trained here, parameters, context length, prompt with its hash, and length ratio are there by default."""
    view = table_of(LEAD, bart(variant="checkpoint=facebook/bart-large-cnn"), chat())
    block = view.blocks()[0]
    names = ("remarks", "parameters", "context", "prompt", "length\nratio")
    places = [block.columns.index(name) for name in names]
    assert [" | ".join(row[place] for place in places) for row in block.rows] == [
        "not trained here | 406,290,432 | 1,024 |  | 1.25",
        "not trained here |  | 32,768 | document@01234567 | 1.25",
        " |  |  |  | ",
    ]


def test_a_row_says_if_its_server_read_less_than_was_sent() -> None:
    """The share is that of all prompts together; without unread tokens nothing is said."""
    cut = chat(counts={"prompt_tokens": 500, "unread_tokens": 1_500})
    assert remarks(cut) == ["not trained here", "read 25 % of what was sent"]
    assert remarks(chat()) == ["not trained here"]


CELLS = {
    "trained": "no | no | here | ",
    "checkpoint": "facebook/bart-large-cnn | qwen-8b |  | ",
    "revision": "37f520fa |  |  | ",
    "released": "2019-10-29, after the dataset |  |  | ",
    "price": " | 0.012 |  | ",
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_of_checkpoints(name: str) -> None:
    """Facts and counts are columns that one can ask for; a run without them has an empty cell."""
    runs = [bart(texts={"published": "2018-04"}), chat(), SEAL, LEAD]
    column = collect_columns(runs)[name]
    assert " | ".join(map(column.cell, group_rows_by_seed(runs, {}))) == CELLS[name]


RELEASES = {
    "2018-03": "2018-03, before the dataset",
    "2018-04-30": "2018-04-30",
    "2018-05-01": "2018-05-01, after the dataset",
    None: "",
}


@pytest.mark.parametrize("released", RELEASES)
def test_a_release_is_before_or_after_the_dataset(released: str | None) -> None:
    """Months decide; without a date, or in the same month, nothing is said."""
    release = RELEASES[released]
    run = bart(system={**BART, "released": released}, texts={"published": "2018-04"})
    assert collect_columns([run])["released"].cell(group_rows_by_seed([run], {})[0]) == release
    (row,) = csv.DictReader(io.StringIO(table_of(run).csv()))
    assert row["release_order"] == release.partition(", ")[2]
