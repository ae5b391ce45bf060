"""Long texts: an example as plain text, and what of it has room in a prompt.

    Example --Passage.of_example--> Passage --LongText--> spans of characters --joined--> the text of a prompt

Texts are cut at the borders of the model's own tokens, by their character offsets, so what is kept is verbatim. Every
way of reading (`readings/`) chooses spans with the methods of `LongText`.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from longsumbench.core import Cut, Document, Example, Section, Truncation
from longsumbench.models.prompt.prompts import fill_places
from longsumbench.sentences import split_sentences

CAUSE = "input_length"  # of every cut, in the ledger
GAP_MARK = " […] "  # in the place of what was left out between two spans
_BREAK = "\n\n"  # between paragraphs
Span = tuple[int, int]  # characters: the first, and the last + 1


@dataclass(frozen=True)
class Passage:
    """A text with blank lines between its paragraphs. A heading is a paragraph, and belongs to the text after it."""

    text: str
    # The index of the first character of each document, section and paragraph.
    documents: tuple[int, ...]
    sections: tuple[int, ...]
    paragraphs: tuple[int, ...]
    # The characters of each sentence, as `Example.sentences` has them; none of an empty one.
    sentences: tuple[Span, ...]

    @classmethod
    def of_example(cls, example: Example, label: str) -> "Passage":
        """Return the documents of an example; the names of sections are headings.

        The label, whose `{number}` is filled, precedes each of several documents.
        """
        builder = _PassageBuilder()
        several = len(example.documents) > 1
        for number, document in enumerate(example.documents, start=1):
            heading = fill_places(label, {"number": str(number)}) if several else ""
            builder.add_document(document, heading)
        return builder.passage()

    @classmethod
    def of_summaries(cls, summaries: Iterable[str]) -> "Passage":
        """Join the summaries of parts of a text; each of their lines is a paragraph."""
        lines = "\n".join(summaries).splitlines()
        paragraphs = tuple(tuple(split_sentences(line)) for line in lines)
        builder = _PassageBuilder()
        builder.add_document(Document(None, (Section(None, paragraphs),)), "")
        return builder.passage()

    @cached_property
    def sentence_starts(self) -> list[int]:
        """The index of the first character of each sentence that is not empty."""
        return [start for start, end in self.sentences if start < end]


class _PassageBuilder:
    """Collects the paragraphs of a passage, and where its parts begin."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0
        self.documents: list[int] = []
        self.sections: list[int] = []
        self.paragraphs: list[int] = []
        self.sentences: list[Span] = []
        # Where the headings begin that belong to the next sentence.
        self.heading: int | None = None

    def add_document(self, document: Document, heading: str) -> None:
        """Add the sections of a document that have text."""
        is_empty = not any(map(str.strip, document.sentences()))
        if not is_empty:
            self.documents.append(self._next_start())
            self._add_heading(heading)
        for section in document.sections:
            if any(map(str.strip, section.sentences())):
                self.sections.append(self._next_start())
                self._add_heading(section.name or "")
            for paragraph in section.paragraphs:
                self._add_paragraph(paragraph)

    def _next_start(self) -> int:
        """Return where the next paragraph begins; headings that wait for their text belong to it."""
        if self.heading is not None:
            return self.heading
        return self.length + (len(_BREAK) if self.pieces else 0)

    def _append(self, text: str) -> int:
        """Append a paragraph; return the index of its first character."""
        if self.pieces:
            self.pieces.append(_BREAK)
            self.length += len(_BREAK)
        start = self.length
        self.pieces.append(text)
        self.length += len(text)
        return start

    def _add_heading(self, heading: str) -> None:
        if heading.strip():
            start = self._append(heading)
            if self.heading is None:
                self.heading = start

    def _add_paragraph(self, paragraph: Sequence[str]) -> None:
        texts = [sentence.strip() for sentence in paragraph]
        joined = " ".join(filter(None, texts))
        start = self._next_start()
        if joined:
            self.paragraphs.append(start)
            place = self._append(joined)
        for text in texts:
            if not text:
                self.sentences.append((start, start))
                continue
            # The first sentence includes the headings before it.
            self.sentences.append((start, place + len(text)))
            place += len(text) + 1
            start = place
            self.heading = None

    def passage(self) -> Passage:
        """Return what was collected."""
        return Passage(
            "".join(self.pieces),
            tuple(self.documents),
            tuple(self.sections),
            tuple(self.paragraphs),
            tuple(self.sentences),
        )


@dataclass(frozen=True)
class PromptRoom:
    """The room of a prompt: `count` returns the tokens of the whole prompt with a text, which are at most `budget`."""

    count: Callable[[str], int]
    budget: int

    @cached_property
    def tokens(self) -> int:
        """Tokens for the text; about, as tokens merge at the text's borders."""
        return self.budget - self.count("")

    def excess(self, text: str) -> int:
        """Return the tokens of the prompt with a text beyond the budget; not above 0 if it fits."""
        return self.count(text) - self.budget


class LongText:
    """A passage with the tokens of a tokenizer."""

    def __init__(self, passage: Passage, tokenizer: Any) -> None:
        self.passage = passage
        encoded = tokenizer(
            passage.text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        self.offsets: list[Span] = []
        for start, end in encoded["offset_mapping"]:
            token = passage.text[start:end]
            if token.strip():
                # Blanks around a text are no part of it: spans begin and end at texts.
                start = end - len(token.lstrip())
                end = start + len(token.strip())
            self.offsets.append((start, end))

    @property
    def whole(self) -> list[Span]:
        """The span of all characters; none of an empty text."""
        return [(0, len(self.passage.text))] if self.passage.text else []

    @cached_property
    def _token_starts(self) -> list[int]:
        return [start for start, _ in self.offsets]

    def ledger(self, spans: Iterable[Span]) -> Truncation:
        """Return the ledger of a text of which some spans are read; they may overlap."""
        kept = _merged(spans, self.passage.text)
        words = [word.span() for word in re.finditer(r"\S+", self.passage.text)]
        tokens_cut = _number_cut(self.offsets, kept)
        words_cut = _number_cut(words, kept)
        cuts = (Cut(CAUSE, tokens_cut, words_cut),) if tokens_cut or words_cut else ()
        return Truncation(len(self.offsets), len(words), cuts)

    def length(self, span: Span) -> int:
        """Return the number of tokens that begin in a span."""
        start, end = span
        return bisect_left(self._token_starts, end) - bisect_left(self._token_starts, start)

    def joined(self, spans: Iterable[Span]) -> str:
        """Return the text of some spans in the order of the text, with marks where text between them is left out."""
        merged = _merged(spans, self.passage.text)
        return GAP_MARK.join(self.passage.text[start:end].strip() for start, end in merged)

    def shortened(self, kept: str, room: PromptRoom) -> list[Span]:
        """Return the spans that are kept of a text that does not fit; none if nothing fits.

        `kept` is "beginning", "ending" or "ends".
        """
        number = min(room.tokens, len(self.offsets))
        # First down in large steps until it fits, then up token by token: tokens merge at the borders.
        excess = room.excess(self.joined(self._outer_spans(kept, number)))
        while number > 0 and excess > 0:
            number = max(number - excess, min(1, number - 1))
            excess = room.excess(self.joined(self._outer_spans(kept, number)))
        if number <= 0:
            return []
        while number < len(self.offsets):
            longer = self._outer_spans(kept, number + 1)
            if room.excess(self.joined(longer)) > 0:
                break
            number += 1
        return self._outer_spans(kept, number)

    def _outer_spans(self, kept: str, number: int) -> list[Span]:
        """Return the characters of `number` tokens that are kept."""
        head = {"beginning": number, "ending": 0, "ends": (number + 1) // 2}[kept]
        tail = number - head
        spans = []
        if head > 0:
            spans.append((0, self.offsets[head - 1][1]))
        if tail > 0:
            spans.append((self.offsets[-tail][0], len(self.passage.text)))
        return spans

    def best(self, spans: Sequence[Span], order: Sequence[int], room: PromptRoom) -> list[int]:
        """Return the first indices of an order whose spans fit into a prompt together."""
        number, free = 0, room.tokens
        for index in order:
            free -= self.length(spans[index])
            if free < 0:
                break
            number += 1
        # The sum of tokens is about right: tokens merge at borders, and gaps have marks.
        while number > 0 and self._excess(spans, order[:number], room) > 0:
            number -= 1
        while number < len(order) and self._excess(spans, order[: number + 1], room) <= 0:
            number += 1
        return list(order[:number])

    def _excess(self, spans: Sequence[Span], indices: Iterable[int], room: PromptRoom) -> int:
        return room.excess(self.joined(spans[index] for index in indices))

    def parts(
        self, room: PromptRoom, borders: Sequence[int] = (), longest: int | None = None
    ) -> list[Span]:
        """Divide the text into parts whose prompts are within the budget; none if there is no room for any.

        A part crosses none of the borders, and has at most `longest` tokens. Without these, a text that fits is one part.
        """
        if not borders and longest is None and room.excess(self.passage.text) <= 0:
            return self.whole
        length = min(room.tokens, longest or room.tokens)
        while length > 0:
            spans = self.divided(length, borders)
            excess = max((room.excess(self.joined([span])) for span in spans), default=0)
            if excess <= 0:
                return spans
            length -= excess
        return []

    def divided(
        self, length: int, borders: Sequence[int] = (), by_paragraph: bool = True
    ) -> list[Span]:
        """Divide the text into spans with text of at most `length` tokens, which cross none of the borders.

        A span ends at the last sentence that fits, else between two tokens. With `by_paragraph`, it ends at the last
        paragraph that fits if that fills at least half of the length. So the name of a section stays with its text.
        """
        spans = []
        begin = 0
        while begin < len(self.passage.text):
            end = self.part_end(begin, length, borders, by_paragraph)
            if self.passage.text[begin:end].strip():
                spans.append((begin, end))
            begin = end
        return spans

    def snippets(self, length: int) -> list[Span]:
        """Pack whole sentences of a document into spans of at most `length` tokens (SEAL, §3.1).

        A longer sentence is divided between tokens, so that nothing is cut.
        """
        return self.divided(length, self.passage.documents, by_paragraph=False)

    def part_end(
        self, begin: int, length: int, borders: Sequence[int] = (), by_paragraph: bool = True
    ) -> int:
        """Return the end of the part that begins at a character; see `divided`."""
        first = bisect_left(self._token_starts, begin)
        end = _first_after(borders, begin, len(self.passage.text))
        beyond = first + length  # the first token that does not fit
        if beyond >= len(self._token_starts) or self._token_starts[beyond] >= end:
            return end
        limit = max(self._token_starts[beyond], begin + 1)
        # Blanks at the end of a part are not sent.
        while limit < end and self.passage.text[limit].isspace():
            limit += 1
        if limit == end:
            return end
        paragraph = _last_until(self.passage.paragraphs, limit)
        fills_half = paragraph >= self._token_starts[first + length // 2]
        if by_paragraph and paragraph > begin and fills_half:
            return paragraph
        sentence = _last_until(self.passage.sentence_starts, limit)
        return sentence if sentence > begin else limit


def _first_after(borders: Sequence[int], place: int, end: int) -> int:
    """Return the first border after a place, else the end."""
    index = bisect_right(borders, place)
    return borders[index] if index < len(borders) else end


def _last_until(borders: Sequence[int], limit: int) -> int:
    """Return the last border that is not beyond a limit; -1 if there is none."""
    index = bisect_right(borders, limit)
    return borders[index - 1] if index else -1


def _merged(spans: Iterable[Span], text: str) -> list[Span]:
    """Return the spans in order; those with nothing but blanks between them become one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and not text[merged[-1][1] : start].strip():
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _number_cut(spans: Iterable[Span], kept: Sequence[Span]) -> int:
    """Return how many spans do not lie entirely in a kept one."""
    starts = [start for start, _ in kept]
    number = 0
    for start, end in spans:
        index = bisect_right(starts, start) - 1
        number += index < 0 or end > kept[index][1]
    return number
