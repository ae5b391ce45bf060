"""An example's text as a place for further sentences: how it is written, who speaks, and the gaps between its sentences."""

import json
import re
from collections.abc import Collection, Iterable
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from longsumbench.core import Example, word_pattern

# At the beginning of a turn: "Project Manager: …".
_SPEAKER = re.compile(r"([^\W\d_][\w .'()/-]{0,39}): ")
# Those who state facts in a session of an agent; its tools do not.
_USER = "user"
_SESSION_ROLES = {_USER, "assistant"}


class _Gap(NamedTuple):
    """A place after a sentence: words before it; numbers of section, paragraph and sentence; characters before it."""

    words: int
    section: int
    paragraph: int
    sentence: int
    end: int


class PlacedSentence(NamedTuple):
    """A sentence to plant after a share of the words; in a session, an instruction is in a user's turn."""

    share: float
    sentence: str
    is_instruction: bool


class PlantableText:
    """The sentences of an example, and the gaps for further ones.

    Attributes:
        example: the example.
        speakers: those of a transcript whose paragraphs begin with them, each once; empty for other texts.
        register: how it is written: "prose", "meeting" (a transcript) or "session" (of an agent; its turns are
            sections with a role as their name).
        positions: sentence → share of the words before it.
    """

    def __init__(self, example: Example) -> None:
        self.example = example
        self._names = [section.name for section in example.sections()]
        self.speakers = _speakers_in(example)
        self.register = "meeting" if self.speakers else "prose"
        if _SESSION_ROLES.intersection(self._names):
            self.speakers, self.register = [], "session"
        pattern = word_pattern(example.source_text())
        self._gaps: list[_Gap] = []
        words_before: dict[str, int] = {}
        words = 0
        for number, section in enumerate(example.sections()):
            spans = iter(section.sentence_spans())
            for place, paragraph in enumerate(section.paragraphs):
                for index, sentence in enumerate(paragraph, start=1):
                    words_before[sentence] = words
                    words += len(pattern.findall(sentence))
                    _, end = next(spans)
                    # A turn is not interrupted
                    if self.register == "prose" or index == len(paragraph):
                        self._gaps.append(_Gap(words, number, place, index, end))
        # Tools state no facts
        self._gaps = self._gaps_in(_SESSION_ROLES) or self._gaps
        self._num_words = max(1, words)
        self.positions = {
            sentence: before / self._num_words for sentence, before in words_before.items()
        }

    def _gaps_in(self, roles: Collection[str | None]) -> list[_Gap]:
        return [gap for gap in self._gaps if self._names[gap.section] in roles]

    def with_sentences(self, placed: Iterable[PlacedSentence]) -> Example:
        """Return the example with further sentences, none before the first one."""
        in_order = []
        for share, sentence, is_instruction in placed:
            gaps = self._gaps
            if is_instruction:
                gaps = self._gaps_in({_USER}) or gaps
            words = share * self._num_words
            gap = min(gaps, key=lambda gap: abs(gap.words - words))
            in_order.append((gap, share, sentence))
        in_order.sort(key=itemgetter(0, 1))
        plain = json.loads(json.dumps(self.example.to_dict()))
        sections = list(chain.from_iterable(item["sections"] for item in plain["documents"]))
        # The last comes first, so that the numbers of the others stay.
        for gap, _, sentence in reversed(in_order):
            section = sections[gap.section]
            blanks = " "
            if self.register == "prose":
                section["paragraphs"][gap.paragraph].insert(gap.sentence, sentence)
            else:
                blanks = "\n\n"
                section["paragraphs"].insert(gap.paragraph + 1, [sentence])
            if "text" in section:
                text = section["text"]
                section["text"] = f"{text[: gap.end]}{blanks}{sentence}{text[gap.end :]}"
        return Example.from_dict(plain)


def _speakers_in(example: Example) -> list[str]:
    """Return who speaks in a transcript, each once; none if most paragraphs do not begin with a speaker."""
    turns = [paragraph[0] for paragraph in example.texts("paragraph")]
    speakers = [match[1] for match in map(_SPEAKER.match, turns) if match]
    return list(dict.fromkeys(speakers)) if 2 * len(speakers) > len(turns) else []
