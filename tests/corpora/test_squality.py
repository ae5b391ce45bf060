"""SQuALITY: a question is an example, and every response a reference."""

import gzip
import json
from typing import Any

import pytest
from support.paths import SHARED as SHARED_ROOT
from support.requirements import SHARED_FOLDER

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Document, Example, Section
from longsumbench.corpora.reading.load import load_texts
from longsumbench.corpora.squality import squality_example

SHARED = SHARED_ROOT / "data" / "squality"


def question(number: int, *responses: str) -> dict[str, Any]:
    """A question and what people answered."""
    return {
        "question_text": f"Why {number}?",
        "question_number": number,
        "responses": [{"worker_id": "1", "uid": "u", "response_text": response} for response in responses],
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
    documents = (Document("63521", (Section(None, (("It rained.", "She left."), ("He stayed.",))),)),)
    row = story(question(1, "One. Two.", "A\n\n B"), question(2, "Only."))
    assert squality_example(row) == (
        Example("63521-1", None, "Why 1?", documents, (("One.", "Two."), ("A", "B"))),
        Example("63521-2", None, "Why 2?", documents, (("Only.",),)),
    )


def test_empty_responses() -> None:
    """An empty response is none; without any the one reference is empty, which training refuses and a test keeps."""
    first, second = squality_example(story(question(1, " ", "Yes."), question(2)))
    assert first.references == (("Yes.",),)
    assert second.references == ((),)


@pytest.mark.skipif(not SHARED.is_dir(), reason=SHARED_FOLDER)
@pytest.mark.slow
def test_the_real_stories(stages: ArtifactCache) -> None:
    """127 stories are 635 questions with four references each; no word of a story or of a response is lost."""
    texts = load_texts(DatasetSettings(name="squality", path=str(SHARED)), stages)
    assert texts.facts["examples"] == {"train": 250, "validation": 125, "test": 260}
    with gzip.open(SHARED / "test.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    asked = [(row["document"], question) for row in rows for question in row["questions"]]
    for example, (document, item) in zip(texts.splits["test"], asked, strict=True):
        assert example.query == item["question_text"].strip()
        assert " ".join(example.sentences()).split() == document.split()
        assert len(example.references) == 4
        for reference, response in zip(example.references, item["responses"], strict=True):
            assert " ".join(reference).split() == response["response_text"].split()
