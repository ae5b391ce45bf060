"""QMSum: meetings, and questions about them that people answered (Zhong et al. 2021).

Paper: https://aclanthology.org/2021.naacl-main.472. Each question is an example: 1,810 about 232 meetings. Two layouts,
both at `dataset.path=`:

* JSON lines, one meeting per line, with the release's fields and the meeting's name:

      meeting_id, topic_list [{topic, relevant_text_span}], general_query_list [{query, answer}],
      specific_query_list [{query, answer}], meeting_transcripts [{speaker, content}]

* the release's folder (`data/ALL`, or one of its domains): `train`, `val` and `test`, with one file per meeting. The
  file's name is the meeting's.

A meeting is a document. Each turn is a paragraph that begins with its speaker ("Grad C: Right."). Sections are unbroken
stretches of turns on one annotated topic; the stretches between them have no name. Each turn is in one section. If the
spans of two topics overlap, the topic that begins later gets the turn. A question's relevant_text_span is ignored: it
would show a system where the answer is.

Marks of sounds and breaks ({vocalsound}, {disfmarker} …) are removed and counted, once for each example of the meeting.
So are turns without other words. Everything else stays as released, including marks in answers.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from longsumbench.core import Corpus, Document, Entry, Example, PartialExample, Row, Section, Source
from longsumbench.corpora.loading.fields import (
    BadRow,
    id_in,
    list_in,
    objects_in,
    references_in,
    text_in,
    words_in,
)
from longsumbench.corpora.loading.files import local_source, one_per_split
from longsumbench.corpora.loading.text_files import row_in_file, visible_files
from longsumbench.sentences import split_sentences

SOUND_MARKS = "marks of sounds and breaks"  # names in the record
SILENT = "turns without words"
_SOUND_MARK = re.compile(r" ?\{\s*(?:vocalsound|nonvocalsound|disfmarker|pause|gap|comment)\s*\} ?")
_TURN_INDEX = re.compile(r"[0-9]{1,9}")


def qmsum_example(row: Row) -> tuple[PartialExample, ...]:
    """Turn one meeting into Examples, one per question. An id joins meeting, kind of question and its index."""
    meeting = id_in(row, "meeting_id")
    document, left_out = _meeting(row, meeting)
    examples = []
    for kind in ("general", "specific"):
        for index, item in enumerate(objects_in(row, f"{kind}_query_list")):
            query = words_in(item, "query")
            answers = references_in([text_in(item, "answer")])
            identity = f"{meeting}-{kind}-{index}"
            example = Example(identity, None, query, (document,), answers)
            examples.append(PartialExample(example, left_out))
    if not examples:
        raise BadRow("the meeting has no question", f"'{meeting}'")
    return tuple(examples)


def _meetings_source(path: Path) -> Source | None:
    """Return the meetings of the release's folders, one per file, in the order of their names.

    The result is None for a path without such folders.
    """
    inside = path.iterdir() if path.is_dir() else ()
    with_meetings = (folder for folder in inside if visible_files(folder, "*.json"))
    folders = one_per_split((folder.name, folder) for folder in with_meetings)
    meetings: list[tuple[str, Path]] = []
    for split, folder in folders.items():
        meetings += ((split, file) for file in visible_files(folder, "*.json"))
    if not meetings:
        return None
    entries = partial(_meeting_entries, meetings)
    return local_source(path, [file for _, file in meetings], entries)


def _meeting_entries(meetings: list[tuple[str, Path]], full: set[str]) -> Iterator[Entry]:
    for split, file in meetings:
        yield Entry(split, partial(_read_meeting, file), file)


def _read_meeting(file: Path) -> tuple[PartialExample, ...]:
    return qmsum_example({**row_in_file(file), "meeting_id": file.stem})


def _meeting(row: Row, meeting: str) -> tuple[Document, Mapping[str, int]]:
    """Return the transcript, and the counts of what was removed from it."""
    turns, marks = [], 0
    for item in objects_in(row, "meeting_transcripts"):
        words, num_marks = _SOUND_MARK.subn(" ", text_in(item, "content"))
        speaker = text_in(item, "speaker").strip()
        sentences = split_sentences(words)
        text = words.strip()
        if sentences and speaker:
            sentences = (f"{speaker}: {sentences[0]}", *sentences[1:])
            text = f"{speaker}: {text}"
        turns.append((sentences, text))
        marks += num_marks
    sections = []
    topics_of_turns = zip(_topics(row, len(turns)), turns, strict=True)
    for name, stretch in groupby(topics_of_turns, key=itemgetter(0)):
        spoken = [turn for _, turn in stretch if turn[0]]
        if spoken:
            paragraphs, texts = zip(*spoken, strict=True)
            sections.append(Section.written(name, paragraphs, "\n\n".join(texts)))
    left_out = {SOUND_MARKS: marks, SILENT: turns.count(((), ""))}
    return Document(meeting, tuple(sections)), left_out


def _topics(row: Row, num_turns: int) -> list[str | None]:
    """Return the topic of every turn; if spans overlap, the one that begins last."""
    spans: list[tuple[int, int, str | None]] = []
    for item in objects_in(row, "topic_list", required=False):
        name = " ".join(text_in(item, "topic").split()) or None
        for span in list_in(item, "relevant_text_span"):
            spans.append((*_turn_span(span, num_turns), name))
    topics: list[str | None] = [None] * num_turns
    for first, last, name in sorted(spans, key=itemgetter(0)):
        topics[first : last + 1] = [name] * (last + 1 - first)
    return topics


def _turn_span(span: Any, num_turns: int) -> tuple[int, int]:
    """Return the first and the last turn of a span. The release writes them as text."""
    places = list(map(str, span)) if isinstance(span, list) else []
    if len(places) != 2 or not all(map(_TURN_INDEX.fullmatch, places)):
        raise BadRow("a span of a topic must be two numbers of turns", 'write ["0", "64"]')
    first, last = map(int, places)
    if not first <= last < num_turns:
        raise BadRow(
            "a span of a topic is not in the meeting", f"{first} to {last}, of {num_turns} turns"
        )
    return first, last


CORPUS = Corpus(
    name="qmsum",
    title="QMSum: meetings and a question, which is the query → its answer: "
    "dataset.path=FOLDER with its JSON lines, or of the release.",
    licence="MIT; the meetings of AMI and ICSI: CC BY 4.0",
    homepage="https://github.com/Yale-LILY/QMSum",
    published="2021-04",
    from_file_row=qmsum_example,
    release=_meetings_source,
)
