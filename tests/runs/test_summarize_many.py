"""`longsumbench summarize … --output`: folders of many files, in several processes, continued after an end."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.json_files import read_rows

from longsumbench.runs import summarize_many

Typed = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def folder(here: Path) -> Path:
    """A folder of twelve texts, some in a folder inside; the current folder is the one around it."""
    texts = Path("texts")
    (texts / "inner" / ".hidden").mkdir(parents=True)
    for number in range(12):
        place = texts / "inner" if number % 3 == 0 else texts
        (place / f"t{number:02}.txt").write_text(f"Text {number} is short. It ends here.")
    (texts / "b.md").write_text("# B\n\nMarked down.")
    for other in (".secret.txt", "inner/.hidden/x.txt", "picture.png"):
        (texts / other).write_bytes(b"\0")
    return texts


def read_lines(path: str) -> list[dict[str, object]]:
    """Return the objects of a file of JSON lines."""
    return read_rows(Path(path))


def test_a_folder_into_a_file_of_json_lines(folder: Path, typed: Typed) -> None:
    """Each text has one line, in the order of the names, with the summary that is printed for it alone."""
    code, out, err = typed("lead", folder, "model.length=4", "--output", "out.jsonl")
    files = sorted(
        f"{file}"
        for file in folder.rglob("[!.]*.*")
        if file.suffix in (".txt", ".md") and "hidden" not in f"{file}"
    )
    rows = read_lines("out.jsonl")
    assert (code, out, [row["file"] for row in rows]) == (0, "", files)
    assert all(
        f"{row['summary']}\n" == typed("lead", row["file"], "model.length=4")[1] for row in rows
    )
    assert err == [
        "texts: files ending in .png: 1 left out (picture.png)",
        "out.jsonl: 13 texts summarized, 0 before; read 58 % of the text: length cut 36 words",
    ]


def test_a_folder_into_a_folder(folder: Path, typed: Typed) -> None:
    """Each text has a file of the same name, at the same place, with its summary; a second time nothing is written."""
    words = ["lead", folder, "model.length=4", "--output", "out"]
    assert typed(*words)[0] == 0
    assert Path("out/inner/t03.txt").read_text() == "Text 3 is short.\n"
    assert Path("out/b.md.txt").read_text() == "Marked down.\n"
    assert len([file for file in Path("out").rglob("*") if file.is_file()]) == 13
    Path("out/t01.txt").unlink()
    assert typed(*words)[2][-1].startswith("out: 1 text summarized, 12 before")


@pytest.mark.parametrize("kept", [0, 250])
def test_an_interrupted_command_continues(kept: int, folder: Path, typed: Typed) -> None:
    """Cut off anywhere, also within a line, the same command writes the same file, and only what is missing."""
    words = ["lexrank", folder, "model.length=4", "--output", "out.jsonl"]
    assert typed(*words)[0] == 0
    whole = Path("out.jsonl").read_bytes()
    Path("out.jsonl").write_bytes(whole[:kept])
    code, _, err = typed(*words)
    assert (code, Path("out.jsonl").read_bytes()) == (0, whole)
    before = whole[:kept].count(b"\n")
    assert f"out.jsonl: {13 - before} texts summarized, {before} before" in err[-1]


def test_processes_change_nothing(
    folder: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several processes write the file that one process writes."""
    words = ["lexrank", folder, "model.length=4", "decode.batch_size=2", "--output"]
    for cores, file in ((1, "one.jsonl"), (2, "two.jsonl")):
        monkeypatch.setattr(summarize_many, "num_cores", lambda cores=cores: cores)
        monkeypatch.setattr(summarize_many, "_SERIAL_BATCHES", 1)
        assert typed(*words, file)[0] == 0
    assert Path("one.jsonl").read_bytes() == Path("two.jsonl").read_bytes()


def test_what_cannot_be_read_stops_no_other(folder: Path, typed: Typed) -> None:
    """Each such text is named and ends the command with 3 after all others; corrected, it alone is summarized."""
    (folder / "t01.txt").write_bytes(b"\xff")
    rows = '{"id": "a", "document": "Row a."}\n{"id": "b"}\n{"id": "a", "document": "Another a."}\n'
    (folder / "r.jsonl").write_text(rows)
    words = ["lead", folder, "model.length=4", "--output", "out.jsonl"]
    code, _, err = typed(*words)
    assert (code, len(read_lines("out.jsonl"))) == (3, 14)
    problems = [line.split(": ")[1:3] for line in err if line.startswith("not summarized: ")]
    assert problems == [
        ["texts/r.jsonl:2", "the fields 'document' and 'documents' are missing; give one of them"],
        ["texts/t01.txt", "not UTF-8"],
    ]
    assert err[-1].startswith("longsumbench: 2 texts not summarized, the first: texts/r.jsonl:2: ")
    (folder / "t01.txt").write_text("Text again.")
    rows = rows.replace('"b"', '"b", "document": "Row b."')
    (folder / "r.jsonl").write_text(rows)
    assert typed(*words)[0] == 0
    names = [row["file"] for row in read_lines("out.jsonl")[14:]]
    assert names == ["texts/r.jsonl:2", "texts/t01.txt"]


REFUSED = """
lexrank texts --output out.jsonl → out.jsonl exists, and another system
lead texts --output mine.jsonl → mine.jsonl exists, and another system
lead texts --output texts/out → one of the inputs or inside them
lead texts --together --output out.jsonl → --together makes one summary
lead texts decode.evidence=3 --output new → decode.evidence and decode.keep_inputs are
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_outputs_are_not_mixed(line: str, folder: Path, typed: Typed) -> None:
    """Another system, other settings, a file of something else, and a place among the texts are refused."""
    words, problem = line.split(" → ")
    assert typed("lead", folder, "--output", "out.jsonl")[0] == 0
    Path("mine.jsonl").write_text("{}\n")
    before = [Path(name).read_bytes() for name in ("out.jsonl", "mine.jsonl")]
    code, out, err = typed(*words.split())
    assert (code, out) == (2, "")
    assert problem in err[-1]
    assert [Path(name).read_bytes() for name in ("out.jsonl", "mine.jsonl")] == before
