"""The schema of the user's own texts."""

from typing import Any

import pytest

from longsumbench.core import Document, Section
from longsumbench.corpora.jsonl import jsonl_example
from longsumbench.corpora.reading.fields import BadRow


def test_blank_lines_separate_paragraphs() -> None:
    """Blank lines separate paragraphs, soft line breaks do not, a number may be the id."""
    example = jsonl_example(
        {
            "id": 7,
            "document": "One. Two\nlines.\n \n\nThree.",
            "summary": "Good. Bad.",
            "title": "",
            "query": "Q",
        }
    )
    assert (example.id, example.title, example.query) == ("7", None, "Q")
    assert example.documents == (
        Document(None, (Section(None, (("One.", "Two lines."), ("Three.",))),)),
    )
    assert example.references == (("Good.", "Bad."),)


def test_documents_keep_sources_names_and_paragraphs() -> None:
    """Documents keep sources, section names and paragraphs; references are split unless given as sentences."""
    documents = [
        {
            "source": "s",
            "sections": [
                {"name": "n", "paragraphs": ["One. Two.", "", "Three."]},
                {"text": "D.\n\nE."},
            ],
        },
        {"sections": [{"text": " "}]},
    ]
    example = jsonl_example(
        {"id": "x", "documents": documents, "references": ["Good. Bad.", ["Good. Bad.", " C "]]}
    )
    expected = Document(
        "s", (Section("n", (("One.", "Two."), ("Three.",))), Section(None, (("D.",), ("E.",))))
    )
    assert example.documents == (expected,)
    assert example.references == (("Good.", "Bad."), ("Good. Bad.", "C"))


def test_empty_references_are_dropped_next_to_others() -> None:
    """Empty ones next to others are dropped, lest the first of all be empty; an example without any keeps one."""
    for given, expected in (
        (["", "Real."], (("Real.",),)),
        (["A.", [" "], "B."], (("A.",), ("B.",))),
        (["", []], ((),)),
    ):
        assert (
            jsonl_example({"id": "x", "document": "D.", "references": given}).references == expected
        )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"documents": [{}]}, "'sections' is missing"),
        ({"documents": [{"sections": [{}]}]}, "'paragraphs' and 'text' are missing"),
        (
            {"documents": [], "references": [{}]},
            "'references' must be a list of sentences or text, not an object",
        ),
    ],
)
def test_a_bad_row_says_why(changes: dict[str, Any], expected: str) -> None:
    """A missing field, or a value of another kind, is named."""
    row = {"id": "x", **({} if "references" in changes else {"summary": "S."}), **changes}
    with pytest.raises(BadRow, match=expected):
        jsonl_example(row)
