"""An example's text as a place for further sentences: how it is written, who speaks, and the gaps between its sentences."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from longsumbench.core import Example, word_pattern

# At the beginning of a turn: "Project Manager: …".
_SPEAKER = re.compile(r"([^\W\d_][\w .'()/-]{0,39}): ")
# Those who state facts in a session of an agent; its tools do not.
_USER = "user"
_ROLES = {_USER, "assistant"}


class _Gap(NamedTuple):
    """A place behind a sentence: the words and the sentences before it, and the name of its section."""

    words: int
    sentences: int
    section: str | None


class PlacedSentence(NamedTuple):
    """A sentence to plant after a share of the words; in a session, an instruction stands in a user's turn."""

    share: float
    sentence: str
    is_instruction: bool


class PlantableText:
    """The sentences of an example, and the gaps where others can stand.

    Attributes:
        example: the example.
        speakers: those of a transcript whose paragraphs begin with them, each once; empty for other texts.
        register: how it is written: "prose", "meeting" (a transcript) or "session" (of an agent; its turns are
            sections with a role as their name).
        positions: sentence → share of the words before it.
    """

    def __init__(self, example: Example) -> None:
        self.example = example
        sections = list(chain.from_iterable(item.sections for item in example.documents))
        has_roles = any(section.name in _ROLES for section in sections)
        self.speakers = [] if has_roles else _speakers_in(example)
        self.register = "meeting" if self.speakers else "prose"
        if has_roles:
            self.register = "session"
        pattern = word_pattern(example.source_text())
        self._gaps: list[_Gap] = []
        words_before: dict[str, int] = {}
        words = number = 0
        for section in sections:
            for paragraph in section.paragraphs:
                for place, sentence in enumerate(paragraph, start=1):
                    words_before[sentence] = words
                    words += len(pattern.findall(sentence))
                    number += 1
                    # A turn is not interrupted
                    if self.register == "prose" or place == len(paragraph):
                        self._gaps.append(_Gap(words, number, section.name))
        if has_roles:
            self._gaps = self._gaps_in(_ROLES)
        self._num_words = max(1, words)
        self.positions = {
            sentence: before / self._num_words for sentence, before in words_before.items()
        }

    def _gaps_in(self, names: Collection[str | None]) -> list[_Gap]:
        return [gap for gap in self._gaps if gap.section in names]

    def with_sentences(self, placed: Iterable[PlacedSentence]) -> Example:
        """Return the example with further sentences, none before the first one."""
        of_users = self._gaps_in({_USER}) or self._gaps
        added: dict[int, list[str]] = defaultdict(list)
        for share, sentence, is_instruction in sorted(placed, key=attrgetter("share")):
            words = share * self._num_words
            gaps = of_users if is_instruction else self._gaps
            gap = min(gaps, key=lambda gap: abs(gap.words - words))
            added[gap.sentences].append(sentence)
        number = 0
        documents = []
        for document in self.example.documents:
            sections = []
            for section in document.sections:
                paragraphs: list[tuple[str, ...]] = []
                for paragraph in section.paragraphs:
                    extended: list[str] = []
                    for sentence in paragraph:
                        number += 1
                        extended += [sentence, *added[number]]
                    # What is added to a turn is another turn
                    end = len(extended) if self.register == "prose" else len(paragraph)
                    paragraphs.append(tuple(extended[:end]))
                    paragraphs += [(turn,) for turn in extended[end:]]
                sections.append(replace(section, paragraphs=tuple(paragraphs)))
            documents.append(replace(document, sections=tuple(sections)))
        return replace(self.example, documents=tuple(documents))


def _speakers_in(example: Example) -> list[str]:
    """Return who speaks in a transcript, each once; none if most paragraphs do not begin with a speaker."""
    turns = [paragraph[0] for paragraph in example.texts("paragraph")]
    speakers = [match[1] for match in map(_SPEAKER.match, turns) if match]
    return list(dict.fromkeys(speakers)) if 2 * len(speakers) > len(turns) else []
