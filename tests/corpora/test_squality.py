"""SQuALITY: a question is an example, and every response a reference."""

from typing import Any

from longsumbench.core import Document, Example, Section
from longsumbench.corpora.squality import squality_example


def question(number: int, *responses: str) -> dict[str, Any]:
    """A question and what people answered."""
    return {
        "question_text": f"Why {number}?",
        "question_number": number,
        "responses": [
            {"worker_id": "1", "uid": "u", "response_text": response} for response in responses
        ],
    }


def story(*questions: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A story of two paragraphs."""
    return {
        "metadata": {"passage_id": "63521", "uid": "u", "license": "free"},
        "document": "\n\nIt rained. She\nleft.\n \n  He stayed.\n",
        "questions": list(questions),
        **changes,
    }


def test_a_story_by_hand() -> None:
    """Questions share the story; each response is a reference in its order, whose line breaks end sentences."""
    documents = (
        Document("63521", (Section(None, (("It rained.", "She left."), ("He stayed.",))),)),
    )
    row = story(question(1, "One. Two.", "A\n\n B"), question(2, "Only."))
    assert squality_example(row) == (
        Example("63521-1", None, "Why 1?", documents, (("One.", "Two."), ("A", "B"))),
        Example("63521-2", None, "Why 2?", documents, (("Only.",),)),
    )


def test_empty_responses_are_no_references() -> None:
    """An empty response is none; without any the one reference is empty, which training refuses and a test keeps."""
    first, second = squality_example(story(question(1, " ", "Yes."), question(2)))
    assert first.references == (("Yes.",),)
    assert second.references == ((),)
