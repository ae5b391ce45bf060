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
from itertools import accumulate
from typing import Any

from longsumbench.core import Cut, Document, Example, Message, Section, Span, Truncation
from longsumbench.models.prompt.prompts import fill_places
from longsumbench.sentences import split_sentences

CAUSE = "input_length"  # of every cut, in the ledger
GAP_MARK = " […] "  # in the place of what was left out between two spans
MARK_TOKENS = len(GAP_MARK.encode())  # at most
_BREAK = "\n\n"  # between paragraphs


@dataclass(frozen=True)
class Passage:
    """Texts as they were written, with blank lines between sections. A heading is a line of the text after it."""

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
        """Join the summaries of parts of a text, as they are; each of their lines is a paragraph."""
        text = _BREAK.join(summaries)
        section = Section.written(None, tuple(map(split_sentences, text.splitlines())), text)
        builder = _PassageBuilder()
        builder.add_document(Document(None, (section,)), "")
        return builder.passage()

    @cached_property
    def sentence_starts(self) -> list[int]:
        """The index of the first character of each sentence that is not empty."""
        return [start for start, end in self.sentences if start < end]


class _PassageBuilder:
    """Collects paragraphs, and where documents, sections and sentences begin."""

    def __init__(self) -> None:
        # Paragraphs, each with the headings before it.
        self.pieces: list[str] = []
        self.documents: list[int] = []
        self.sections: list[int] = []
        self.paragraphs: list[int] = []
        self.sentences: list[Span] = []
        # The index of the next paragraph's first character, and the headings that belong to it.
        self.next_start = 0
        self.headings: list[str] = []

    def add_document(self, document: Document, heading: str) -> None:
        """Add the sections of a document that have text."""
        if _has_text(document.sentences()):
            self.documents.append(self.next_start)
            self.headings.append(heading)
        for section in document.sections:
            self._add_section(section)

    def _add_section(self, section: Section) -> None:
        text, start = section.as_written(), self.next_start
        text_start = start
        if text:
            headings = filter(str.strip, [*self.headings, section.name or ""])
            piece = _BREAK.join([*headings, text])
            text_start += len(piece) - len(text)
            self.headings = []
            self.sections.append(start)
            self.pieces.append(piece)
            self.next_start += len(piece) + len(_BREAK)
        spans = []
        for first, end in section.sentence_spans():
            # The first sentence includes the headings before it.
            begin = text_start + first if first else start
            spans.append((begin, text_start + end if end else start))
        self.sentences += spans
        index = 0
        for paragraph in section.paragraphs:
            starts = [first for first, end in spans[index : index + len(paragraph)] if first < end]
            self.paragraphs += starts[:1]
            index += len(paragraph)

    def passage(self) -> Passage:
        """Return what was collected."""
        return Passage(
            _BREAK.join(self.pieces),
            tuple(self.documents),
            tuple(self.sections),
            tuple(self.paragraphs),
            tuple(self.sentences),
        )


def _has_text(sentences: Iterable[str]) -> bool:
    return any(map(str.strip, sentences))


@dataclass(frozen=True)
class PromptRoom:
    """A prompt before it has a text, which has room for some tokens.

    Attributes:
        messages: returns the whole prompt with a text.
        count_tokens: returns the tokens of a prompt.
        budget: the most tokens of the prompt.
    """

    messages: Callable[[str], list[Message]]
    count_tokens: Callable[[Sequence[Message]], int]
    budget: int

    @cached_property
    def tokens(self) -> int:
        """Tokens for the text; about, as tokens merge at the text's borders."""
        return self.budget - self.count("")

    def count(self, text: str) -> int:
        """Return the tokens of the prompt with a text."""
        return self.count_tokens(self.messages(text))

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
        """The span of all characters."""
        return [(0, len(self.passage.text))]

    @cached_property
    def _token_starts(self) -> list[int]:
        return [start for start, _ in self.offsets]

    def ledger(self, spans: Iterable[Span]) -> Truncation:
        """Return the ledger of a text of which some spans are read; they may overlap."""
        is_read = bytearray(len(self.passage.text))
        for start, end in _merged(spans, self.passage.text):
            is_read[start:end] = b"\1" * (end - start)
        words = [word.span() for word in re.finditer(r"\S+", self.passage.text)]
        tokens_cut = sum(not all(is_read[start:end]) for start, end in self.offsets)
        words_cut = sum(not all(is_read[start:end]) for start, end in words)
        cuts = (Cut(CAUSE, tokens_cut, words_cut),) if tokens_cut or words_cut else ()
        return Truncation(len(self.offsets), len(words), cuts)

    def token_slice(self, span: Span) -> slice:
        """Return the indices of the tokens that begin in a span."""
        start, end = span
        return slice(bisect_left(self._token_starts, start), bisect_left(self._token_starts, end))

    def length(self, span: Span) -> int:
        """Return the number of tokens that begin in a span."""
        tokens = self.token_slice(span)
        return int(tokens.stop - tokens.start)

    def joined(self, spans: Iterable[Span]) -> str:
        """Return the text of some spans in the order of the text, with marks where text between them is left out."""
        merged = _merged(spans, self.passage.text)
        return GAP_MARK.join(self.passage.text[start:end].strip() for start, end in merged)

    def shortened(self, kept: str, room: PromptRoom) -> list[Span]:
        """Return the spans that are kept of a text that does not fit; none if nothing fits.

        `kept` is "beginning", "ending" or "ends".
        """

        def excess(number: int) -> int:
            return room.excess(self.joined(self.outer_spans(kept, number)))

        number = _most_that_fits(room.tokens, len(self.offsets), excess)
        return self.outer_spans(kept, number)

    def outer_spans(self, kept: str, number: int) -> list[Span]:
        """Return the characters of `number` tokens that are kept; see `shortened`."""
        head = {"beginning": number, "ending": 0, "ends": (number + 1) // 2}[kept]
        tail = number - head
        spans = []
        if head > 0:
            spans.append((0, self.offsets[head - 1][1]))
        if tail > 0:
            spans.append((self.offsets[-tail][0], len(self.passage.text)))
        return spans

    def best(self, spans: Sequence[Span], order: Sequence[int], room: PromptRoom) -> list[int]:
        """Return indices whose spans fit into a prompt together: the first of an order, then each that fits as well.

        A beginning of the order may fit although a shorter one does not: a span that fills a gap saves its mark.
        """

        def excess(indices: Sequence[int]) -> int:
            return room.excess(self.joined(spans[index] for index in indices))

        # The sum of tokens is about right: tokens merge at borders, and gaps have marks.
        lengths = [self.length(spans[index]) for index in order]
        guess = bisect_right(list(accumulate(lengths)), room.tokens)
        number = _most_that_fits(guess, len(order), lambda number: excess(order[:number]))
        chosen = list(order[:number])
        free_tokens = -excess(chosen)
        for index, length in list(zip(order, lengths, strict=True))[number:]:
            # A span that fills a gap saves a mark.
            if length <= free_tokens + MARK_TOKENS:
                beyond = excess([*chosen, index])
                if beyond <= 0:
                    chosen.append(index)
                    free_tokens = -beyond
        return chosen

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


def _most_that_fits(guess: int, most: int, excess: Callable[[int], int]) -> int:
    """Return the largest number, from 0 to `most`, that is not in excess; the search starts at a guess."""
    number = max(0, min(guess, most))
    # First down in large steps until it fits, then up one by one: tokens merge at the borders.
    while number > 0:
        beyond = excess(number)
        if beyond <= 0:
            break
        number = max(number - beyond, min(1, number - 1))
    while number < most and excess(number + 1) <= 0:
        number += 1
    return number


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
