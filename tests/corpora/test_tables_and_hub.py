"""Own texts in tables: CSV and Parquet files, any dataset of the hub, and columns with other names."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.hub import offer_on_hub

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.cli.main import main
from longsumbench.core import DatasetSettings, Example
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import DataError, UsageError

ROWS = [
    {"id": "7", "document": 'A "quoted", text.\n\nTwo.', "summary": "NA", "title": "Grüße"},
    {"id": "8", "document": "Three, four.", "summary": "One.", "title": ""},
]
OTHER_NAMES = {"document": "article", "summary": "highlights"}


def write_table(path: Path, rows: list[dict[str, Any]] = ROWS, /, **names: str) -> Path:
    """Write rows as a table, by the ending of its name; `names` are those of columns."""
    table = pd.DataFrame(rows).rename(columns=names)
    if path.suffix == ".csv":
        table.to_csv(
            path, index=False, encoding="utf-8-sig"
        )  # as spreadsheets write it, with a byte order mark
    else:
        table.to_parquet(path, index=False)
    return path


def examples(texts: Texts, split: str = "test") -> list[Example]:
    return list(texts.splits[split])


def test_chosen_columns_hold_the_texts(tmp_path: Path, stages: ArtifactCache) -> None:
    """Columns with other names, which `dataset.columns` gives, hold the same texts."""
    table = load_texts(DatasetSettings("mine", path=str(write_table(tmp_path / "a.csv"))), stages)
    renamed = write_table(tmp_path / "renamed.parquet", **OTHER_NAMES)
    columns = {**OTHER_NAMES, "title": "title"}
    texts = load_texts(DatasetSettings("mine", path=str(renamed), columns=columns), stages)
    assert texts.fingerprint == table.fingerprint
    assert [example.title for example in examples(texts)] == ["Grüße", None]


BAD = {
    "a.parquet": (b"no table", r"a\.parquet: not a Parquet file"),
    "a.csv": (b"\xff\xfea", r"a\.csv: not UTF-16-LE, which its first bytes announce"),
    "b.csv": (
        b"id,document\n1,a,b,c\n",
        r"b\.csv:2: the row has another number of values .*: 4 for 'id', 'document'",
    ),
    "j.csv": (b"id,document,summary\n1,a\0,c\n", r"j\.csv:2: the character NUL: character 4"),
    "k.csv": ("id,document,summary\n1,Café,c\n".encode("cp1252"), r"k\.csv:2: not UTF-8: byte 6"),
    "f.csv": (
        b'id,document,summary\n1,"a\nb",c\n2,"d,e\n',
        r"f\.csv:4: .*unexpected end of data\); close every quote",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_an_error_of_one_line(
    name: str, tmp_path: Path, stages: ArtifactCache
) -> None:
    """What is no table, and a row that cannot be used, are named with the file and the row."""
    (tmp_path / name).write_bytes(BAD[name][0])
    with pytest.raises(DataError, match=BAD[name][1]):
        load_texts(DatasetSettings("mine", path=str(tmp_path / name)), stages)


def test_any_dataset_of_the_hub(
    tmp_path: Path, own_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named by the command line with its columns, a dataset of the hub is run, and can be given a name."""
    rows = [{"article": row["document"], "highlights": row["summary"]} for row in ROWS]
    calls = offer_on_hub(monkeypatch, tmp_path, rows)
    columns = [f"dataset.columns.{field}={column}" for field, column in OTHER_NAMES.items()]
    words = ["dataset=hub", *columns, "dataset.split=train"]
    results = ["baselines=false", "score.resamples=100", f"results_dir={tmp_path}"]
    assert main(["run", "model=lead", "dataset.path=me/news/v2", *words, *results]) == 0
    assert main(["dataset", "add", "news", "me/other", *words]) == 0
    assert main(["run", "model=lead", "dataset=news", *results]) == 0
    assert calls == [("me/news", "v2"), ("me/other", None)]


def test_a_hub_dataset_needs_its_name(stages: ArtifactCache) -> None:
    """Without OWNER/NAME the error says what to write."""
    for path in (None, "news", "a/b/c/d"):
        with pytest.raises(UsageError, match=r"dataset=hub needs dataset\.path=OWNER/NAME"):
            load_texts(DatasetSettings("hub", path=path), stages)
