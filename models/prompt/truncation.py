"""Long texts: an example as plain text, cut to a number of tokens, or divided into parts.

Texts are cut at the borders of the model's own tokens, by their character offsets, so what is kept is verbatim.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from longsumbench.core import Cut, Document, Example, Truncation
from longsumbench.models.prompt.prompts import fill_places
from longsumbench.sentences import split_sentences

CAUSE = "input_length"  # of every cut, in the ledger
GAP_MARK = " […] "  # in the place of the middle that was cut
_BREAK = "\n\n"  # between paragraphs
Span = tuple[int, int]  # characters: the first, and the last + 1


@dataclass(frozen=True)
class Passage:
    """A text with blank lines between its paragraphs."""

    text: str
    paragraphs: tuple[int, ...]  # the index of each paragraph's first character
    sentences: tuple[int, ...]  # the same of each sentence

    @classmethod
    def of(cls, paragraphs: Iterable[Sequence[str]]) -> "Passage":
        """Join the sentences of paragraphs by blanks, and the paragraphs by blank lines; empty ones are left out."""
        texts: list[str] = []
        starts: list[int] = []
        sentence_starts: list[int] = []
        length = 0
        for paragraph in paragraphs:
            sentences = [sentence.strip() for sentence in paragraph if sentence.strip()]
            if not sentences:
                continue
            length += len(_BREAK) if texts else 0
            starts.append(length)
            for sentence in sentences:
                sentence_starts.append(length)
                length += len(sentence) + 1
            length -= 1
            texts.append(" ".join(sentences))
        return cls(_BREAK.join(texts), tuple(starts), tuple(sentence_starts))

    @classmethod
    def of_example(cls, example: Example, label: str) -> "Passage":
        """Return the documents of an example; the names of sections are paragraphs.

        The label, whose `{number}` is filled, precedes each of several documents.
        """
        several = len(example.documents) > 1
        paragraphs: list[Sequence[str]] = []
        for number, document in enumerate(example.documents, start=1):
            content = list(_paragraphs_with_text(document))
            if several and content:
                paragraphs.append((fill_places(label, {"number": str(number)}),))
            paragraphs.extend(content)
        return cls.of(paragraphs)

    @classmethod
    def of_summaries(cls, summaries: Iterable[str]) -> "Passage":
        """Join the summaries of parts of a text; each of their lines is a paragraph."""
        lines = "\n".join(summaries).splitlines()
        return cls.of(map(split_sentences, lines))


def _paragraphs_with_text(document: Document) -> Iterable[Sequence[str]]:
    for section in document.sections:
        paragraphs = [
            paragraph for paragraph in section.paragraphs if any(map(str.strip, paragraph))
        ]
        if section.name and section.name.strip() and paragraphs:
            yield (section.name,)
        yield from paragraphs


class LongText:
    """Cuts one text by the tokens of a tokenizer.

    `count` returns the tokens of the whole prompt with a text in it, which are at most `budget`.
    """

    def __init__(
        self, passage: Passage, tokenizer: Any, count: Callable[[str], int], budget: int
    ) -> None:
        self.passage, self.count, self.budget = passage, count, budget
        encoded = tokenizer(
            passage.text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        self.offsets: list[Span] = [tuple(span) for span in encoded["offset_mapping"]]
        # Tokens for the text; about, as tokens merge at the text's borders.
        self.room = budget - count("")

    @cached_property
    def excess(self) -> int:
        """Tokens of the prompt with the whole text beyond the budget; not above 0 if it fits."""
        return self.count(self.passage.text) - self.budget

    def ledger(self, spans: Sequence[Span]) -> Truncation:
        """Return the ledger of a text of which some spans are kept."""
        words = [word.span() for word in re.finditer(r"\S+", self.passage.text)]
        tokens_cut = _number_cut(self.offsets, spans)
        words_cut = _number_cut(words, spans)
        cuts = (Cut(CAUSE, tokens_cut, words_cut),) if tokens_cut or words_cut else ()
        return Truncation(len(self.offsets), len(words), cuts)

    def shortened(self, policy: str) -> tuple[str, Truncation]:
        """Cut the text so that the prompt is within its budget.

        `policy` says what is cut: "end", "start" or "middle". The text is empty if nothing fits; a cut middle has a
        mark.
        """
        room = min(self.room, len(self.offsets))
        # First down in large steps until it fits, then up token by token: tokens merge at the borders.
        excess = self._excess(policy, room)
        while room > 0 and excess > 0:
            room = max(room - excess, min(1, room - 1))
            excess = self._excess(policy, room)
        if room <= 0:
            return "", self.ledger([])
        while room < len(self.offsets) and self._excess(policy, room + 1) <= 0:
            room += 1
        spans = self._spans(policy, room)
        return GAP_MARK.join(self._texts(spans)), self.ledger(spans)

    def _excess(self, policy: str, room: int) -> int:
        """Return the tokens of the prompt beyond its budget if `room` tokens are kept."""
        kept = GAP_MARK.join(self._texts(self._spans(policy, room)))
        return self.count(kept) - self.budget

    def _texts(self, spans: Sequence[Span]) -> list[str]:
        return [self.passage.text[start:end].strip() for start, end in spans]

    def _spans(self, policy: str, room: int) -> list[Span]:
        """Return the characters of `room` tokens that a policy keeps."""
        head = {"end": room, "start": 0, "middle": (room + 1) // 2}[policy]
        tail = room - head
        spans = []
        if head > 0:
            spans.append((0, self.offsets[head - 1][1]))
        if tail > 0:
            spans.append((self.offsets[-tail][0], len(self.passage.text)))
        return spans

    def parts(self) -> list[str]:
        """Divide the text into parts whose prompts are within the budget; empty if there is no room for any.

        A part ends at the last paragraph that fits if that fills at least half of the room, else at the last sentence,
        else between two tokens. So the name of a section stays with its text.
        """
        room = self.room
        while room > 0:
            texts = list(filter(None, self._texts(self._divided(room))))
            excess = max(self.count(text) for text in texts) - self.budget
            if excess <= 0:
                return texts
            room -= excess
        return []

    def _divided(self, room: int) -> list[Span]:
        """Divide the characters into spans of at most `room` tokens."""
        starts, length = [start for start, _ in self.offsets], len(self.passage.text)
        spans: list[Span] = []
        begin = 0
        while begin < length:
            first = bisect_left(starts, begin)
            beyond = first + room  # the first token that does not fit
            end = length
            if beyond < len(starts):
                limit = max(starts[beyond], begin + 1)
                # The last paragraph, if it fills half of the room; else the last sentence; else a token.
                paragraph = _last_until(self.passage.paragraphs, limit)
                sentence = _last_until(self.passage.sentences, limit)
                if paragraph > begin and paragraph >= starts[first + room // 2]:
                    end = paragraph
                else:
                    end = sentence if sentence > begin else limit
            spans.append((begin, end))
            begin = end
        return spans


def _last_until(borders: Sequence[int], limit: int) -> int:
    """Return the last border that is not beyond a limit."""
    return borders[bisect_right(borders, limit) - 1]


def _number_cut(spans: Iterable[Span], kept: Sequence[Span]) -> int:
    """Return how many spans do not lie entirely in a kept one."""
    number = 0
    for start, end in spans:
        number += not any(first <= start and end <= last for first, last in kept)
    return number
