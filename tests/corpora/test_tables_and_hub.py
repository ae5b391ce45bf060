"""Own texts in tables: CSV and Parquet files, any dataset of the hub, and columns with other names."""

import re
from pathlib import Path

import pytest
from support.hub import offer_on_hub
from support.reading import reading_problem

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings
from longsumbench.corpora.loading.load import load_texts
from longsumbench.errors import UsageError
from longsumbench.runs.plan import plan_dataset

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
    name: str, tmp_path: Path, cache: ArtifactCache
) -> None:
    """What is no table, and a row that cannot be used, are named with the file and the row."""
    (tmp_path / name).write_bytes(BAD[name][0])
    assert re.search(BAD[name][1], reading_problem("mine", tmp_path / name, cache))


def test_any_dataset_of_the_hub(
    tmp_path: Path, cache: ArtifactCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named as on the command line, with its columns, a dataset of the hub is read."""
    rows = [{"article": f"Text {number}.", "highlights": "One."} for number in range(2)]
    calls = offer_on_hub(monkeypatch, tmp_path, rows)
    columns = "dataset.columns.document=article dataset.columns.summary=highlights"
    texts = load_texts(
        plan_dataset(f"dataset=hub dataset.path=me/news/v2 {columns}".split()), cache
    )
    assert calls == [("me/news", "v2")]
    assert texts.splits["train"][0].references == (("One.",),)


def test_a_hub_dataset_needs_its_name(cache: ArtifactCache) -> None:
    """Without OWNER/NAME the error says what to write."""
    for path in (None, "news", "a/b/c/d"):
        with pytest.raises(UsageError, match=r"dataset=hub needs dataset\.path=OWNER/NAME"):
            load_texts(DatasetSettings("hub", path=path), cache)
