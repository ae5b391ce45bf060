"""The schema of the user's own texts."""

import json

from longsumbench.core import Document, Section
from longsumbench.corpora.jsonl import jsonl_example
from longsumbench.sentences import split_for_rouge


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
    row = r"""{"id": "x", "documents": [
        {"source": "s", "sections": [
            {"name": "n", "paragraphs": ["One. Two.", "", "Three."]}, {"text": "D.\n\nE."}]},
        {"sections": [{"text": " "}]}],
        "references": ["Good. Bad.", ["Good. Bad.", " C "]]}"""
    example = jsonl_example(json.loads(row))
    expected = Document(
        "s", (Section("n", (("One.", "Two."), ("Three.",))), Section(None, (("D.",), ("E.",))))
    )
    assert example.documents == (expected,)
    assert example.references == (("Good.", "Bad."), ("Good. Bad.", "C"))


def test_empty_references_are_dropped_next_to_others() -> None:
    """Empty ones next to others are dropped, lest the first of all be empty; an example without any keeps one."""
    row = {"id": "x", "document": "D."}
    listed = jsonl_example({**row, "references": ["", "A.", [" "], "B."]})
    assert listed.references == (("A.",), ("B.",))
    assert jsonl_example({**row, "references": ["", []]}).references == ((),)


def test_a_summary_has_the_sentences_that_are_scored() -> None:
    """Line breaks end its sentences, as in an output: points without full stops are sentences of their own."""
    points = "Council met on Monday\nBudget approved. Roads later\n"
    expected = split_for_rouge(points, "suite")
    assert expected == ("Council met on Monday", "Budget approved.", "Roads later")
    row = {"id": "x", "document": "D."}
    assert jsonl_example({**row, "summary": points}).references == (expected,)
    assert jsonl_example({**row, "references": [points, [points]]}).references == (
        expected,
        (" ".join(points.split()),),
    )
