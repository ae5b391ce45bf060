"""QMSum: a question is an example, a turn a paragraph, and topics are sections that hold every turn once."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.json_files import write_json
from support.reading import read_texts, reading_problem

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Document, Example, Section
from longsumbench.corpora.loading.fields import BadRow
from longsumbench.corpora.qmsum import SILENT, SOUND_MARKS, qmsum_example
from longsumbench.sentences import split_summary

MEETING = """{"meeting_id": "M1",
  "topic_list": [{"topic": "Price", "relevant_text_span": [["1", "2"]]}],
  "general_query_list": [{"query": "Summarize the meeting", "answer": "It was cheap. It ended."}],
  "specific_query_list": [{"query": "What cost?", "answer": "Little.", "relevant_text_span": [["2", "2"]]}]}"""
TURNS = ("Shall we begin ? Yes {disfmarker} .", "{vocalsound}", "It is cheap .", "Bye .")


def meeting(*turns: str, **changes: Any) -> dict[str, Any]:
    """A meeting of A and B in turn, with one question of each kind."""
    numbered = enumerate(turns or TURNS)
    transcript = [{"speaker": "AB"[number % 2], "content": content} for number, content in numbered]
    return {**json.loads(MEETING), "meeting_transcripts": transcript, **changes}


def outline(*turns: str, topics: str) -> str:
    """Return names and words of sections, of a meeting with topics as "X 0 1, Y 1 2"."""
    spans = []
    for topic in topics.split(","):
        name, *span = topic.rsplit(" ", 2)
        spans.append({"topic": name, "relevant_text_span": [span]})
    document = qmsum_example(meeting(*turns, topic_list=spans))[0].example.documents[0]
    sections = [f"{section.name}({' '.join(section.sentences())})" for section in document.sections]
    return " ".join(sections)


def test_a_meeting_by_hand() -> None:
    """Each question is an example of the same document: turns are paragraphs, marks are counted, topics are named."""
    sections = (
        Section(None, (("A: Shall we begin ?", "Yes ."),)),
        Section("Price", (("A: It is cheap .",),)),
        Section(None, (("B: Bye .",),)),
    )
    documents = (Document("M1", sections),)
    general = Example(
        "M1-general-0", None, "Summarize the meeting", documents, (("It was cheap.", "It ended."),)
    )
    specific = Example("M1-specific-0", None, "What cost?", documents, (("Little.",),))
    counts = {SOUND_MARKS: 2, SILENT: 1}
    assert qmsum_example(meeting()) == ((general, counts), (specific, counts))


def test_answers_have_the_sentences_of_other_summaries() -> None:
    """Line breaks end them, as when the same answer is scored from a file."""
    text = "It was cheap\nIt ended."
    read = qmsum_example(meeting(general_query_list=[{"query": "What?", "answer": text}]))
    assert read[0].example.references == (split_summary(text),)


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ("X 0 3", "X(A: a B: b A: c B: d)"),
        ("X 0 1,Y 1 2", "X(A: a) Y(B: b A: c) None(B: d)"),
        ("X 0 3,Y 1 2", "X(A: a) Y(B: b A: c) X(B: d)"),
        ("X 0 0,X 1 2,  3 3", "X(A: a B: b A: c) None(B: d)"),
    ],
)
def test_every_turn_is_in_one_section(topics: str, expected: str) -> None:
    """Wherever topics begin and end, nothing is lost or doubled; of two on a turn, the one that begins later has it."""
    assert outline("a", "b", "c", "d", topics=topics) == expected


def test_other_braces_and_brackets_stay() -> None:
    """Only the transcript's own marks are taken out: what people wrote in brackets is text."""
    read = qmsum_example(
        meeting("{ gap } The {set} [Laughter.] {pause}ends{comment}.", topic_list=None)
    )[0]
    assert list(read.example.sentences()) == ["A: The {set} [Laughter.] ends ."]
    assert read.left_out == {SOUND_MARKS: 3, SILENT: 0}


def test_a_bad_meeting_says_why() -> None:
    """A span outside the meeting is named."""
    with pytest.raises(BadRow, match="is not in the meeting: 0 to 1, of 1 turns"):
        outline("a", topics="X 0 1")


def test_a_folder_of_meetings_reads_as_its_json_lines(tmp_path: Path, cache: ArtifactCache) -> None:
    """A folder with a file a meeting reads as the lines do, under the files' names; its errors name the file."""
    for folder, name in (("train", "T1"), ("val", "V1"), ("test", "M2"), ("test", "M1")):
        (tmp_path / folder).mkdir(exist_ok=True)
        row = {**meeting(), "meeting_id": "ignored"}
        write_json(tmp_path / folder / f"{name}.json", row)
    splits = read_texts("qmsum", tmp_path, cache).splits
    assert list(splits) == ["train", "validation", "test"]
    assert splits["test"].ids[1:] == ["M1-specific-0", "M2-general-0", "M2-specific-0"]
    assert splits["test"][0] == qmsum_example(meeting())[0].example
    (tmp_path / "val" / "V1.json").write_text("{}")
    problem = reading_problem("qmsum", tmp_path, cache)
    assert "V1.json: the field 'meeting_transcripts' is missing" in problem
