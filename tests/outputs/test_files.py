"""Predictions and references as other systems write them: JSON lines, lines of text, folders."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from longsumbench.errors import DataError, UsageError
from longsumbench.metrics.evaluate import RawText
from longsumbench.outputs.files import PairedTexts, ScoredPair, read_pairs

LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n\ufeff"))
Written = Callable[..., Path]


@pytest.fixture
def rows(tmp_path: Path) -> Written:
    """Write JSON lines under a name."""

    def write(name: str, *values: Any) -> Path:
        path = tmp_path / name
        content = "".join(f"{json.dumps(value)}\n" for value in values).encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


def folder(path: Path, **texts: str) -> Path:
    """Write a folder of files; "__" in a name is a point."""
    path.mkdir()
    for name, text in texts.items():
        (path / name.replace("__", ".")).write_text(text)
    return path


def predicted(name: object, text: object = "a b") -> dict[str, object]:
    return {"id": name, "prediction": text}


def referenced(name: object, *texts: object) -> dict[str, object]:
    return {"id": name, "references": list(texts or ("a b",))}


@pytest.mark.parametrize("ending", ["jsonl", "json", "jsonl.gz", "JSONL"])
def test_json_lines_are_matched_by_id(rows: Written, ending: str) -> None:
    """By hand: ids match, numbers are their digits, texts are strings or lists; the predictions' order stays."""
    ours = rows(f"ours.{ending}", predicted(7, "One. Two."), predicted("x", ["One.", " ", "Two."]))
    theirs = rows(
        f"theirs.{ending}", referenced("x", "T", ["S", "U"]), {"id": "7", "reference": ["V", "W"]}
    )
    expected = (
        ScoredPair("7", "One. Two.", (("V", "W"),)),
        ScoredPair("x", ("One.", "Two."), ("T", ("S", "U"))),
    )
    assert read_pairs(ours, theirs) == PairedTexts(expected)


def test_one_file_may_have_both(rows: Written) -> None:
    """Rows with a prediction and references need no second file, whichever name the references go by."""
    both = rows("a.jsonl", predicted(1) | {"summary": "s"}, predicted(2) | {"references": []})
    assert read_pairs(both).pairs == (ScoredPair("1", "a b", ("s",)), ScoredPair("2", "a b", ()))


@settings(max_examples=50)
@given(texts=st.lists(st.tuples(LINES, LINES), min_size=1), newline=st.sampled_from(["\n", "\r\n"]))
def test_line_n_belongs_to_line_n(
    tmp_path: Path, texts: list[tuple[str, str]], newline: str
) -> None:
    """Whatever lines hold (other line breaks too, or nothing), the n-th of both files make the pair n."""
    sides = list(zip(*texts, strict=True))
    ours, theirs = tmp_path / "ours.txt", tmp_path / "theirs.out"
    for path, lines in zip((ours, theirs), sides, strict=True):
        path.write_bytes("".join(f"{line}{newline}" for line in lines).encode())
    expected = tuple(
        ScoredPair(f"{n}", text, (target,)) for n, (text, target) in enumerate(texts, start=1)
    )
    assert read_pairs(ours, theirs).pairs == expected


def test_folders_are_matched_by_name(tmp_path: Path) -> None:
    """By hand: a sentence a line; NAME.A.ref and NAME.B.ref are two references; one folder may have both sides."""
    files = {
        "doc__1__dec": "A b.\n\nC d.\n",
        "doc__1__A__ref": "E.\n",
        "doc__1__B__ref": "F.\nG.",
        "other__dec": "H\n",
    }
    here = folder(tmp_path / "here", **files, other__ref="I\n", notes__txt="not read")
    expected: tuple[tuple[str, RawText, tuple[RawText, ...]], ...] = (
        ("doc.1", ("A b.", "C d."), (("E.",), ("F.", "G."))),
        ("other", ("H",), (("I",),)),
    )
    assert (
        read_pairs(here).pairs
        == read_pairs(here, here).pairs
        == tuple(ScoredPair(*values) for values in expected)
    )


@pytest.mark.parametrize("text", ["bx", ""])
def test_an_id_that_occurs_twice(rows: Written, text: str) -> None:
    """It is an error, whether the texts differ or not."""
    ours = rows("ours.jsonl", predicted("a"), predicted("b", ""), predicted("b", text))
    with pytest.raises(DataError, match=r"ours.jsonl: the id 'b' occurs twice; keep one of each"):
        read_pairs(ours, rows("theirs.jsonl", referenced("a"), referenced("b")), intersect=True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"id": "a", "prediction": NaN}',
            "the field 'prediction' must be text or a list of sentences, not NaN",
        ),
        ('{"id": "a"}', "the field 'prediction' is missing"),
        ('{"prediction": "x"}', "the field 'id' is missing"),
        ('{"id": "a", "prediction": "x', "not a JSON object on one line"),
        ('{"id": "a", "prediction": "\\ud800", "x": "\udcff"}', "not UTF-8: byte"),
    ],
)
def test_a_row_that_cannot_be_used(tmp_path: Path, rows: Written, line: str, message: str) -> None:
    """The error names the file and the line."""
    path = tmp_path / "ours.jsonl"
    path.write_text(f'{{"id": "z", "prediction": "x"}}\n\n{line}\n', errors="surrogateescape")
    with pytest.raises(DataError) as raised:
        read_pairs(path, rows("theirs.jsonl", referenced("a"), referenced("z")))
    assert f"{raised.value}".startswith(f"{path}:3: ")
    assert message in f"{raised.value}"


def test_files_that_cannot_be_used(tmp_path: Path, rows: Written) -> None:
    """No file, an empty one, one that is no whole gzip, and a folder without outputs are errors that name it."""
    good = rows("good.jsonl", predicted("a") | {"summary": "x"})
    (tmp_path / "empty.jsonl").write_text("\n \n")
    (tmp_path / "torn.jsonl.gz").write_bytes(gzip.compress(good.read_bytes() * 99)[:-9])
    folder(tmp_path / "bare", x__txt="x")
    folder(tmp_path / "half", x__dec="x")
    for name, message in {
        "none.jsonl": "no such file or folder",
        "empty.jsonl": "the file is empty",
        "torn.jsonl.gz": "not a whole gzip file",
    }.items():
        with pytest.raises(DataError, match=f"{name}: {message}"):
            read_pairs(tmp_path / name, good)
    with pytest.raises(DataError, match=r"bare: the folder has no \.dec files"):
        read_pairs(tmp_path / "bare")
    with pytest.raises(DataError, match=r"half: the folder has no \.ref files"):
        read_pairs(tmp_path / "half")


def test_sides_of_different_kinds(tmp_path: Path, rows: Written) -> None:
    """Lines of text have no ids: they match neither rows nor nothing."""
    good = rows("good.jsonl", predicted("a"))
    (tmp_path / "a.txt").write_text("x\n")
    with pytest.raises(
        UsageError, match=r"a.txt is lines of text, .*good.jsonl is JSON lines; both sides"
    ):
        read_pairs(tmp_path / "a.txt", good)
    with pytest.raises(UsageError, match="add a file of REFERENCES"):
        read_pairs(tmp_path / "a.txt")
