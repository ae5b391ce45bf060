"""The user's own files: text, Markdown and rows, read into the structure that every system reads."""

import gzip
import json
import re
from pathlib import Path

import pytest

from longsumbench.core import Document, Example, Section
from longsumbench.corpora.own_files import Input, merge_inputs, read_inputs
from longsumbench.errors import DataError, UsageError

MARKDOWN = """\
---
title: never seen
---
Before any heading.

The *only* **title**
====================

It is `plain` words, [a link](https://example.org "hover") and ![a picture](p.png). A line
goes on<br>here &amp; <b>there</b>.

1. First item. Two sentences.
2. Second item

   - nested *item*

     ```python
     code = "is left out"
     ```

### Deep _down_

> quoted text
>
> ## Within a quote
>
> more

    indented code

## Nothing under it

## A table

| model | R-1 |
|-------|-----|
| lead  | 21. |
|       |     |

<div>
a block of HTML
</div>
"""
SECTIONS = (
    Section(None, (("Before any heading.",),)),
    Section(
        "The only title",
        (
            ("It is plain words, a link and a picture.", "A line goes on here & there."),
            ("First item.", "Two sentences.", "Second item", "nested item"),
        ),
    ),
    Section("Deep down", (("quoted text",),)),
    Section("Within a quote", (("more",),)),
    Section("A table", (("model, R-1", "lead, 21."),)),
)


def write(path: Path, content: str | bytes) -> str:
    """Write a file; return its name as a user would type it."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def only(path: str) -> Input:
    """Return the one input of a file."""
    (found,) = read_inputs([path])
    return found


def test_markdown_by_hand(tmp_path: Path) -> None:
    """Headings of either kind and any depth begin sections; a list and a table are a paragraph; code is counted."""
    path = write(tmp_path / "a.md", MARKDOWN)
    title = "The only title"
    example = Example(path, title, None, (Document(path, SECTIONS),), ((),))
    assert only(path) == Input(path, example, words_left_out=3 + 5 + 2 + 6)


@pytest.mark.parametrize(
    ("name", "newline"), [("a.txt", "\n"), ("A.TXT", "\r\n"), ("README", "\r")]
)
def test_blank_lines_separate_paragraphs(name: str, newline: str, tmp_path: Path) -> None:
    """Plain text is one section; a byte order mark is no text, a single line break no end."""
    lines = ["\ufeffOne two. Three", "four.", "", "  ", "# Five.", ""]
    path = write(tmp_path / name, newline.join(lines))
    section = Section(None, (("One two.", "Three four."), ("# Five.",)))
    expected = Example(path, None, None, (Document(path, (section,)),), ((),))
    assert only(path).example == expected
    row = write(tmp_path / "row.jsonl", json.dumps({"id": 1, "document": newline.join(lines[1:])}))
    sections = only(row).example.documents[0].sections
    assert sections[0].paragraphs == (("four.",), ("# Five.",))


def test_rows_need_no_summaries(tmp_path: Path) -> None:
    """A row is an input; whatever is where its summary would be is not looked at; the same id twice is fine."""
    rows = (
        '{"id": 1, "document": "One.\\n\\nTwo.", "title": "t", "query": "q"}\n'
        '{"id": "b", "document": "Three.", "summary": 5}\n'
        '{"id": "b", "documents": [{"sections": [{"text": "Four."}]}], "references": ["x"]}\n'
    )
    path = write(tmp_path / "a.jsonl.gz", gzip.compress(rows.encode()))
    inputs = read_inputs([path])
    assert [item.name for item in inputs] == [f"{path}: {identity}" for identity in "1bb"]
    first, second, third = (item.example for item in inputs)
    assert (first.title, first.query, first.source_text()) == ("t", "q", "One. Two.")
    assert (second.source_text(), third.source_text()) == ("Three.", "Four.")
    assert first.references == second.references == third.references == ((),)


def test_together_they_are_one_example_of_several_documents(tmp_path: Path) -> None:
    """All documents in their order, each with its source; the title or question that only one has, is kept."""
    one = write(tmp_path / "one.md", "# A title\n\nOne.\n\n```\nx y\n```\n")
    two = write(tmp_path / "two", "Two.")
    row = write(tmp_path / "r.jsonl", '{"id": "r", "document": "R.", "query": "q"}')
    found = merge_inputs(read_inputs([one, two, row]))
    assert [document.source for document in found.example.documents] == [one, two, None]
    assert list(found.example.sentences()) == ["One.", "Two.", "R."]
    assert (found.example.title, found.example.query) == ("A title", "q")
    assert (found.name, found.words_left_out) == (f"{one} + 2 more", 2)


def test_two_questions_are_not_put_together(tmp_path: Path) -> None:
    """One summary cannot answer two questions; of two titles none is the title."""
    rows = (
        '{"id": "1", "document": "A.", "query": "q"}\n{"id": "2", "document": "B.", "query": "p"}\n'
    )
    with pytest.raises(UsageError, match="2 different queries"):
        merge_inputs(read_inputs([write(tmp_path / "r.jsonl", rows)]))
    titled = [write(tmp_path / f"{name}.md", f"# {name}\ntext") for name in "ab"]
    assert merge_inputs(read_inputs(titled)).example.title is None


BAD = {
    "blank.txt": (b" \n\n", "blank.txt: the file is empty"),
    "code.md": (
        b"```\na b c\n```\n",
        "code.md: there is no text to summarize in it (3 words of code or HTML",
    ),
    "void.jsonl": (
        b'{"id": "a", "document": ""}\n',
        "void.jsonl:1: there is no text to summarize in it",
    ),
    "nested.md": (b"[" * 20_000, "nested.md: its quotes or brackets are nested too deep"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_text_is_told(name: str, tmp_path: Path) -> None:
    """An empty file, one that is no text, and a row that cannot be used are errors that say where and what."""
    content, message = BAD[name]
    with pytest.raises(DataError, match=re.escape(f"{tmp_path}/{message}")):
        read_inputs([write(tmp_path / "good.txt", "Good."), write(tmp_path / name, content)])


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """So is a folder without a file that can be read."""
    with pytest.raises(DataError, match=r"nowhere\.jsonl: no such file"):
        read_inputs([str(tmp_path / "nowhere.jsonl")])
    with pytest.raises(DataError, match=r"no file in this folder ends in \.txt"):
        read_inputs([str(tmp_path)])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "name a FILE"),
        (["-", "-"], "once only"),
        (["paper.pdf"], "paper.pdf: its name should end in .txt, .md"),
    ],
)
def test_a_file_that_cannot_be_meant_is_wrong_usage(files: list[str], message: str) -> None:
    """No file at all, standard input twice, or an ending that does not say how to read the file."""
    with pytest.raises(UsageError, match=message):
        read_inputs(files)
