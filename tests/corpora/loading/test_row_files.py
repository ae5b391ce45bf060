"""One reader for texts and outputs: every format, the usual names of their fields, and what is refused."""

import csv
import gzip
import json
import logging
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, strategies as st
from support.reading import read_texts

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.corpora.loading.fields import BadRow
from longsumbench.corpora.loading.row_files import describe_file, file_rows
from longsumbench.corpora.loading.usual_keys import (
    OUTPUT_FIELDS,
    OWN_FIELDS,
    describe_keys,
    rename_keys,
)
from longsumbench.corpora.own_files import list_files
from longsumbench.errors import DataError
from longsumbench.outputs.files import read_outputs, read_pairs

TEXTS = [
    {"id": "a", "document": 'One; "two", three.\n\nFour.', "summary": "One, two."},
    {"id": "b", "document": "Grüße. Five.", "summary": "Five;\tsix."},
    {"id": "c", "document": "Seven.", "summary": "Eight."},
]
OUTPUTS = [{"id": row["id"], "prediction": f"One {row['id']}."} for row in TEXTS]


def as_lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",") -> str:
    return pd.DataFrame(rows).to_csv(index=False, sep=delimiter)


FORMATS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "x.jsonl": lambda rows: as_lines(rows).encode(),
    "lines.json": lambda rows: as_lines(rows).encode(),
    "array.json": lambda rows: json.dumps(rows, indent=1).encode(),
    "x.csv": lambda rows: as_csv(rows).encode("utf-8-sig"),
    "semicolons.csv": lambda rows: as_csv(rows, ";").encode(),
    "x.TSV": lambda rows: as_csv(rows, "\t").encode(),
    "x.csv.gz": lambda rows: gzip.compress(as_csv(rows).encode()),
    "utf16.csv": lambda rows: as_csv(rows, ";").encode("utf-16"),
    "header.txt": lambda rows: as_csv(rows, "\t").encode(),
    "objects.out": lambda rows: as_lines(rows).encode(),
    "mac.jsonl": lambda rows: as_lines(rows).replace("\n", "\r").encode(),
    "mac_and_feed.jsonl": lambda rows: as_lines(rows).strip().replace("\n", "\r").encode() + b"\n",
    "x.parquet": lambda rows: pd.DataFrame(rows).to_parquet(),
}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_bytes(FORMATS[path.name](rows))
    return path


read = partial(read_texts, "mine")


def rows_of(path: Path) -> list[Any]:
    return [dict(row.load()) for row in file_rows(path)]


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_changes_no_text_and_no_score(name: str, tmp_path: Path) -> None:
    """The same rows have the same values in every format, as texts, outputs and references."""
    texts = write(tmp_path / name, TEXTS)
    assert rows_of(texts) == TEXTS
    (tmp_path / "outputs").mkdir()
    pairs = read_pairs(write(tmp_path / "outputs" / name, OUTPUTS), texts).pairs
    for pair, text, output in zip(pairs, TEXTS, OUTPUTS, strict=True):
        assert (pair.id, pair.prediction) == tuple(output.values())
        assert pair.references == (text["summary"],)


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")).map(str.strip)


@given(
    st.lists(st.tuples(CELLS, CELLS), min_size=1),
    st.sampled_from(",;\t"),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_a_table_keeps_every_value(
    tmp_path: Path, values: list[tuple[str, str]], delimiter: str, newline: str
) -> None:
    """Whatever values hold (delimiters, quotes, line breaks), a table that pandas writes is read as it was."""
    rows = [{"id": "a", "document": text, "summary": other} for text, other in values]
    path = tmp_path / "a.csv"
    table = pd.DataFrame(rows)
    table.to_csv(
        path,
        index=False,
        sep=delimiter,
        lineterminator=newline,
        # Python 3.11 writes \n without quotes where lines end in \r
        quoting=csv.QUOTE_ALL if newline == "\r" else csv.QUOTE_MINIMAL,
    )
    assert rows_of(path) == rows


@pytest.mark.parametrize("ending", ["txt", "TXT.gz"])
def test_a_folder_of_pairs_has_a_row_per_name(
    ending: str, tmp_path: Path, cache: ArtifactCache
) -> None:
    """Files of texts and references with the same name are an example; a reference without its text is refused."""
    pack = gzip.compress if ending.endswith("gz") else bytes
    for folder, field in (("texts", "document"), ("references", "summary"), ("decoded", "id")):
        (tmp_path / folder).mkdir()
        for row in TEXTS:
            path = tmp_path / folder / f"{row['id']}.{ending}"
            path.write_bytes(pack(row[field].encode()))
    assert [row["summary"].strip() for row in rows_of(tmp_path)] == [
        row["summary"] for row in TEXTS
    ]
    (tmp_path / "references" / "b.docx").write_bytes(b"")
    assert read(tmp_path, cache).metadata["unread"] == [
        "files ending in .docx: 1 left out (b.docx)"
    ]
    pairs = read_pairs(tmp_path / "decoded", tmp_path).pairs
    assert [pair.prediction for pair in pairs] == ["a", "b", "c"]
    assert len(list_files([str(tmp_path / "texts")])) == len(TEXTS)
    (tmp_path / "texts" / f"b.{ending}").unlink()
    with pytest.raises(DataError, match=rf"b\.{ending}: a summary without its text"):
        read(tmp_path, cache)


FORMS = {  # how many characters "ü" has → what writes it so
    "one": partial(unicodedata.normalize, "NFC"),
    "two": partial(unicodedata.normalize, "NFD"),
}


@pytest.mark.parametrize("of_texts", FORMS)
def test_names_with_the_same_letters_are_the_same(of_texts: str, tmp_path: Path) -> None:
    """A Mac may write "ü" as two characters: the text, its reference and its output still belong together."""
    names = list(map(FORMS[of_texts], ("Zürich", "Öl")))
    for folder, form in {"texts": of_texts, "references": "one", "decoded": "two"}.items():
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / f"{FORMS[form](name)}.txt").write_text(name)
    assert {row["id"]: row["summary"].strip() for row in rows_of(tmp_path)} == dict(
        zip(names, names, strict=True)
    )
    outputs = tmp_path / "out.jsonl"
    outputs.write_text(as_lines([{"id": FORMS["one"](name), "prediction": name} for name in names]))
    for path in (tmp_path / "decoded", outputs):
        assert read_outputs(path, names) == {name: name for name in names}
        assert len(read_pairs(path, tmp_path).pairs) == 2


def test_a_folder_of_texts_alone_is_a_split(
    tmp_path: Path, cache: ArtifactCache, caplog: pytest.LogCaptureFixture
) -> None:
    """Plain text and Markdown are read as they are; other files are counted and named, except hidden ones."""
    folder = tmp_path / "texts alone"
    folder.mkdir()
    caplog.set_level(logging.INFO)
    for name in ("a.txt", "B.MD", "c.markdown", "d.docx", ".e.txt", "._a.txt", "README"):
        (folder / name).write_text(f"# {name}. Two.")
    texts = read(folder, cache)
    assert texts.splits["test"].ids == ["B", "a", "c"]
    assert texts.splits["test"][0].source_text() == "# B.MD. Two."
    assert "files ending in .docx: 1 left out (d.docx)" in caplog.messages
    (folder / "a.md").write_text("Twice.")
    with pytest.raises(DataError, match=r"a\.txt: a\.md has the same name"):
        read(folder, cache)


@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
def test_the_line_that_names_the_delimiter_is_none_of_the_table(
    delimiter: str, tmp_path: Path
) -> None:
    """Excel writes it first; the rows stay on their lines."""
    path = tmp_path / "out.csv"
    path.write_text(f"sep={delimiter}\n{as_csv(TEXTS, delimiter)}")
    assert rows_of(path) == TEXTS
    assert next(file_rows(path)).line == 3


def test_empty_columns_without_a_name_are_left_out(tmp_path: Path) -> None:
    """A spreadsheet adds such columns at the end; two of them with values are ambiguous."""
    path = tmp_path / "out.csv"
    path.write_text("id,prediction,summary,,\na,x y,x z,,\n")
    assert [pair.prediction for pair in read_pairs(path).pairs] == ["x y"]
    path.write_text("id,prediction,summary,,\na,x y,x z,1,2\n")
    with pytest.raises(DataError, match="a column is given twice"):
        read_pairs(path)


def test_parts_of_a_split_are_read_together(tmp_path: Path, cache: ArtifactCache) -> None:
    """One part, or the folder, is the whole split in the order of the parts; without a part nothing is read."""
    whole = tmp_path / "whole.csv"
    whole.write_text(as_csv(TEXTS))
    first, second = (tmp_path / f"test-0000{number}-of-00002.parquet" for number in (0, 1))
    pd.DataFrame(TEXTS[:1]).to_parquet(first)
    for path in (first, tmp_path):
        with pytest.raises(DataError, match=r"of its 2 parts 1 are in this folder"):
            read(path, cache)
    pd.DataFrame(TEXTS[1:]).to_parquet(second)
    for path in (first, second, tmp_path):
        assert read(path, cache).fingerprint == read(whole, cache).fingerprint


def test_parts_may_have_a_hash(tmp_path: Path, cache: ArtifactCache) -> None:
    """As earlier releases of `datasets` name them: each part has its own, and still belongs to its split."""
    names = [
        f"{part}-{content:016x}.parquet"
        for content, part in enumerate(
            ("train-00000-of-00001", "test-00000-of-00002", "test-00001-of-00002"),
            0xB42A775F407CEE45,
        )
    ]
    for name, row in zip(names, (TEXTS[0], *TEXTS), strict=False):
        pd.DataFrame([row]).to_parquet(tmp_path / name)
    splits = read(tmp_path, cache).splits
    assert {name: split.ids for name, split in splits.items()} == {
        "train": ["a"],
        "test": ["a", "b"],
    }
    pd.DataFrame(TEXTS[:1]).to_parquet(tmp_path / "test-00001-of-00002-0000000000000000.parquet")
    with pytest.raises(DataError, match="is the same part; remove one"):
        read(tmp_path, cache)


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["xsum_train.jsonl", "xsum_val.jsonl", "xsum_test.jsonl"], "train validation test"),
        (["news.train.csv.gz", "news.dev.csv.gz"], "train validation"),
        (["a_test.jsonl", "b_test.jsonl"], "test"),  # one and the same: two sources of its texts
        (["a_test.jsonl", "a_train.jsonl", "more.jsonl"], "test"),
        (["a_test.jsonl", "a_train.jsonl", "more.txt"], "test"),
    ],
)
def test_a_name_may_end_in_its_split(
    names: list[str], splits: str, tmp_path: Path, cache: ArtifactCache
) -> None:
    """If all files of rows do, and they name different splits; a README next to them is none of the texts."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "README.md").write_text("About the texts.")
    for number, name in enumerate(names):
        rows = [{**row, "id": f"{number}{row['id']}"} for row in TEXTS]
        text = as_csv(rows) if ".csv" in name else "\n".join(map(json.dumps, rows))
        packed = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
        (folder / name).write_bytes(packed)
    read_splits = read(folder, cache).splits
    assert " ".join(read_splits) == splits
    sizes = [1 if name.endswith(".txt") else len(TEXTS) for name in names]
    assert sum(map(len, read_splits.values())) == sum(sizes) + (splits == "test")  # with the README
    if len(read_splits) > 1:
        (folder / names[0].replace("train", "training_train")).write_text("{}")
        with pytest.raises(DataError, match="two files for the split 'train'"):
            read(folder, cache)


ROWS_AND_NAMES = """
{"ID": 1, "Text ": "d", " Abstract": "s"} → {"id": 1, "document": "d", "summary": "s"}
{"doc_id": "x", "article": "d", "highlights": "s"} → {"id": "x", "document": "d", "summary": "s"}
{"id": "x", "source": "cnn", "article": "d", "references": ["s"]} → {"id": "x", "document": "d", "references": ["s"]}
{"text": "d", "summaries": ["s", "t"]} → {"document": "d", "references": ["s", "t"]}
{"text": "d", "Targets": "s"} → {"document": "d", "summary": "s"}
{"text": "d", "references": "s"} → {"document": "d", "summary": "s"}
{"article": "d", "highlights": ["s", "t"]} → {"document": "d", "summary": ["s", "t"]}
{"text": "d", "references": null} → {"document": "d", "references": null}
{"id": "x", "document": null, "documents": []} → {"id": "x", "documents": []}
{"text": "d", "document": "e", "reference": "s"} → {"document": "e", "summary": "s"}
"""


@pytest.mark.parametrize("line", ROWS_AND_NAMES.strip().splitlines())
def test_usual_names_are_recognized(line: str) -> None:
    """By hand: in any case, with blanks around them; the suite's own names go first, "source" last."""
    row, expected = map(json.loads, line.split(" → "))
    renamed = rename_keys(row, OWN_FIELDS)
    assert {name: renamed[name] for name in expected} == expected
    unusual = expected.keys() - row.keys() - ({"summary"} if "reference" in row else set())
    assert (describe_keys(row, OWN_FIELDS) != "") == bool(unusual)


def test_a_chosen_column_leaves_the_others_recognized() -> None:
    """`columns` chooses a field, and drops only what would be the same field; columns may change places."""
    row = {"id": "x", "document": "d", "documents": [], "abstract": "s", "teaser": "t"}
    renamed = {"id": "x", "document": "t", "summary": "s"}
    assert rename_keys(row, OWN_FIELDS, {"document": "teaser"}) == renamed
    swapped = {"id": "x", "document": "s", "summary": "d", "teaser": "t"}
    columns = {"document": "abstract", "summary": "document"}
    assert rename_keys(row, OWN_FIELDS, columns) == swapped
    with pytest.raises(BadRow, match="the column 'body' is missing: the row has 'id', 'document'"):
        rename_keys(row, OWN_FIELDS, {"document": "body"})


def test_questions_with_answers_are_no_query() -> None:
    """A list keeps its name, next to a query or without one; a text in that column is the query, as before."""
    listed = [{"question": "Who?", "answer": "Ada"}]
    for row in ({"text": "a", "Questions": listed}, {"text": "a", "Questions": [], "query": "b"}):
        renamed = rename_keys(row, OWN_FIELDS)
        assert renamed["questions"] == row["Questions"]
        assert renamed.get("query") == row.get("query")
        assert describe_keys(row, OWN_FIELDS) == "document from 'text'"
    assert rename_keys({"questions": "Who?"}, OWN_FIELDS) == {"query": "Who?"}


def test_two_names_for_one_field_are_refused() -> None:
    """Which one is meant is not guessed."""
    for names in (("text", "article"), ("summary", "references"), ("Summary", "summary")):
        with pytest.raises(BadRow, match=f"two fields could be the .*'{names[0]}', '{names[1]}'"):
            rename_keys({"id": "x", **dict.fromkeys(names, "s")}, OWN_FIELDS)


def test_what_was_recognized_is_one_line(
    tmp_path: Path, cache: ArtifactCache, log_lines: list[str]
) -> None:
    """Reading logs encoding, delimiter and names of a file that is unlike the default; of others nothing."""
    path = tmp_path / "a.csv"
    path.write_text("id;Text;summary\n1;One two.;Two.\n")
    read(path, cache)
    assert "a.csv: semicolons between columns; document from 'Text'" in log_lines
    assert describe_file(write(tmp_path / "x.csv", OUTPUTS), OUTPUT_FIELDS) == ""
    notes = describe_file(write(tmp_path / "utf16.csv", OUTPUTS), OUTPUT_FIELDS)
    assert notes == "UTF-16; semicolons between columns"


BAD_JSON = {
    '{"id": "a", "id": "b"}': "a key is given twice: 2 keys with the name 'id'",
    '{"id": "a", "documents": [{"sections": [{"text": "x", "text": "y"}]}]}': "2 keys with the name 'text'",
    '{"id": "s\\udce9"}': "half a character (a lone surrogate) in the field 'id'",
    '{"id": "a", "a\\udce9": 1}': "half a character (a lone surrogate) in the field 'a\\udce9'",
}


@pytest.mark.parametrize("line", BAD_JSON)
def test_an_object_that_is_ambiguous_or_no_text_is_refused(line: str, tmp_path: Path) -> None:
    """A key twice, on any level, and half a character are named with file and line, for texts and for outputs."""
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"id": "z", "prediction": "x"}}\n{line}\n')
    with pytest.raises(DataError) as problem:
        read_pairs(path, path)
    assert str(problem.value).startswith(f"{path}:2: ")
    assert BAD_JSON[line] in str(problem.value)


def test_a_whole_character_of_two_halves_is_text(tmp_path: Path) -> None:
    """JSON may write a character beyond 16 bits as two halves."""
    (tmp_path / "a.jsonl").write_text('{"id": "a", "prediction": "\\ud83d\\ude00"}\n')
    assert rows_of(tmp_path / "a.jsonl") == [{"id": "a", "prediction": "😀"}]


@pytest.mark.parametrize("name", ["a\nb", "a\x1bb"])
def test_an_id_with_a_control_character_is_refused(
    name: str, tmp_path: Path, cache: ArtifactCache
) -> None:
    """Tables of scores have a line for each id, which people read."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"id": name, "document": "D.", "summary": "S.", "prediction": "P."}))
    with pytest.raises(DataError, match=r"a\.jsonl:1: an id has a control character"):
        read(path, cache)
    with pytest.raises(DataError, match=r"a\.jsonl:1: an id has a control character"):
        read_pairs(path)


def test_cut_references_are_said_when_texts_are_read(
    tmp_path: Path, cache: ArtifactCache, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `score` says it, on every reading: references of one length, none longer, without an end."""
    summary = " ".join(["word"] * 30)
    rows = [{"id": f"{n}", "document": f"Text {n}.", "summary": f"{n} {summary}"} for n in range(4)]
    path = tmp_path / "a.csv"
    path.write_text(as_csv(rows))
    read(path, cache)
    warning = "warning: mine: 4 of 4 references of the test split (e.g. '0') are 31 words long, and none is longer"
    assert capsys.readouterr().err.startswith(warning)
    path.write_text(as_csv([{**row, "summary": f"{row['summary']}."} for row in rows]))
    assert "cut_references" not in read(path, cache).metadata
