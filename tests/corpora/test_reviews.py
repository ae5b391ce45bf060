"""Opinosis and FewSum: users' reviews with several references."""

from typing import Any

from support.paths import SHARED as SHARED_ROOT

from longsumbench.core import Document, Example, Section
from longsumbench.corpora import fewsum, opinosis

SHARED = SHARED_ROOT / "data"


def group(**changes: Any) -> dict[str, Any]:
    """Eight reviews and three summaries; a field set to None is left out."""
    reviews = {f"rev{number}": f"Review {number}. Good." for number in range(1, 9)}
    summaries = {f"summ{number}": f"Summary {number}." for number in range(1, 4)}
    row = {
        "cat": "cloth",
        "group_id": "B0",
        **reviews,
        **summaries,
        "rating1": "4.0",
        "domain": "amazon",
        **changes,
    }
    return {field: value for field, value in row.items() if value is not None}


def test_a_topic_by_hand() -> None:
    """Every sentence is a paragraph as given, the topic is the title, and a summary's lines are its sentences."""
    row = {
        "topic": "battery-life_amazon_kindle",
        "sentences": ["It lasts . Long .", " ", "Not  bad"],
        "summaries": ["Good.\r\nIt lasts", "Good.", "Good."],
    }
    document = Document(None, (Section(None, (("It lasts . Long .",), ("Not bad",))),))
    references = (("Good.", "It lasts"), ("Good.",), ("Good.",))
    expected = Example(
        "battery-life_amazon_kindle", "battery-life amazon kindle", None, (document,), references
    )
    assert opinosis.opinosis_example(row) == expected


def test_a_group_by_hand() -> None:
    """Eight documents, three references, and the domain in the id."""
    read = fewsum.fewsum_example(group())
    assert (read.id, len(read.documents)) == ("amazon/B0", 8)
    assert read.documents[2] == Document("review 3", (Section(None, (("Review 3.", "Good."),)),))
    assert read.references == (("Summary 1.",), ("Summary 2.",), ("Summary 3.",))
