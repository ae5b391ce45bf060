"""Peer reviews as documents: the form's fields as sections, the reviewers' own words untouched."""

from typing import Any

from hypothesis import given, strategies as st

from longsumbench.core import Document, Example, Section
from longsumbench.corpora.peer_reviews import FIELDS, peer_reviews_example

HEADINGS = tuple(f"{field}:" for field in FIELDS)

FIRST = """SUMMARY:
The paper counts sheep. It does so
fast.

It sleeps well.

STRENGTHS:
- It is fast.
- EDIT: still fast.

WEAKNESSES:
QUESTIONS:  \nMINOR:
Why SUMMARY: of sheep?"""


def paper(*comments: Any, **changes: Any) -> dict[str, Any]:
    reviews = [
        {"comments": text, "RECOMMENDATION": 7, "REVIEWER_CONFIDENCE": 4} for text in comments
    ]
    return {
        "id": "p1",
        "title": "Sheep",
        "abstract": "We count.",
        "reviews": reviews,
        "meta_review": "All agree.\n\nAccept it. Thanks.",
        "decision": "Accept (poster)",
        **changes,
    }


def without_headings(text: str) -> str:
    """A review's text without the lines that are headings of the form, and without any white space."""
    return "".join(
        "".join(line for line in text.split("\n") if line.rstrip() not in HEADINGS).split()
    )


def test_a_field_of_the_form_is_a_section() -> None:
    """A field of the form is a section, blank lines separate paragraphs, an empty field is none, an edit is text."""
    sections = (
        Section("SUMMARY", (("The paper counts sheep.", "It does so fast."), ("It sleeps well.",))),
        Section("STRENGTHS", (("- It is fast.", "- EDIT: still fast."),)),
        Section("QUESTIONS", (("MINOR: Why SUMMARY: of sheep?",),)),
    )
    assert peer_reviews_example(paper(FIRST, "Good.\nSTRENGTHS AND WEAKNESSES:\nBoth.")) == Example(
        "p1",
        "Sheep",
        None,
        (
            Document("review 1", sections),
            Document(
                "review 2",
                (Section(None, (("Good.",),)), Section("STRENGTHS AND WEAKNESSES", (("Both.",),))),
            ),
        ),
        (("All agree.", "Accept it.", "Thanks."),),
    )


LINES = st.lists(
    st.sampled_from(HEADINGS)
    | st.sampled_from(["", " ", "Q1: why?", "NOTE:"])
    | st.text(max_size=20)
)


@given(LINES.map("\n".join))
def test_nothing_is_lost(comments: str) -> None:
    """Whatever is in a review is in its sections but the form's headings, which are their names, in order."""
    (document, _) = peer_reviews_example(paper(f"Begun. {comments}", "Good.")).documents
    assert "".join("".join(document.sentences()).split()) == without_headings(f"Begun. {comments}")
    asked = [
        line.rstrip()[:-1] for line in f"Begun. {comments}".split("\n") if line.rstrip() in HEADINGS
    ]
    rest = iter(asked)
    assert all((section.name or "") in rest for section in document.sections[1:])
