"""An example's text as a place for further sentences: its register, its speakers, and the gaps between its sentences."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain, count

from longsumbench.core import Example, Sentences, word_pattern

# At the beginning of a turn: "Project Manager: …".
_SPEAKER = re.compile(r"([^\W\d_][\w .'()/-]{0,39}): ")
# Those who state facts in a session of an agent; its tools do not.
_ROLES = {"user", "human", "assistant", "agent", "ai"}


class PlantableText:
    """The sentences of an example, and the gaps where others can stand.

    Attributes:
        example: the example.
        sentences: its sentences, in reading order.
        speakers: those of a transcript who can state a fact, each once; empty for other texts.
        register: how it is written: "prose", "meeting" or "session".
    """

    def __init__(self, example: Example) -> None:
        self.example = example
        self.sentences = list(example.sentences())
        speakers = _speakers_in(example)
        roles = [speaker for speaker in speakers if speaker.split()[0].lower() in _ROLES]
        self.speakers = roles or speakers
        self.register = "prose"
        if speakers:
            self.register = "session" if roles else "meeting"
        pattern = word_pattern(example.source_text())
        lengths = [len(pattern.findall(sentence)) for sentence in self.sentences]
        # Words before each sentence, then all words.
        self._words_before = [0, *accumulate(lengths)]
        # Numbers of sentences after which others can stand: in a transcript, whole turns.
        self._gaps: Sequence[int] = range(len(self.sentences) + 1)
        if speakers:
            self._gaps = [0, *accumulate(map(len, self._paragraphs()))]

    def _paragraphs(self) -> Iterator[Sentences]:
        for document in self.example.documents:
            for section in document.sections:
                yield from section.paragraphs

    def positions(self) -> dict[str, float]:
        """Return sentence → share of the text's words before it."""
        num_words = max(1, self._words_before[-1])
        pairs = zip(self.sentences, self._words_before, strict=False)
        return {sentence: words / num_words for sentence, words in pairs}

    def with_sentences(self, placed: Sequence[tuple[float, str]]) -> Example:
        """Return the example with further sentences, each after a share of the words; those at one place in order."""
        after: dict[int, list[str]] = {}
        for share, sentence in placed:
            words = share * self._words_before[-1]
            gap = min(self._gaps, key=lambda number: abs(self._words_before[number] - words))
            after.setdefault(gap, []).append(sentence)
        # Paragraphs are taken in order, wherever they are.
        changed = self._changed_paragraphs(after)
        documents = []
        for document in self.example.documents:
            sections = []
            for section in document.sections:
                paragraphs = chain.from_iterable(next(changed) for _ in section.paragraphs)
                sections.append(replace(section, paragraphs=tuple(paragraphs)))
            documents.append(replace(document, sections=tuple(sections)))
        return replace(self.example, documents=tuple(documents))

    def _changed_paragraphs(self, after: dict[int, list[str]]) -> Iterator[list[Sentences]]:
        """Yield each paragraph with its further sentences, or between further turns."""
        numbers = count(1)
        for paragraph in self._paragraphs():
            sentences = after.pop(0, [])
            start = len(sentences)
            for sentence in paragraph:
                sentences += [sentence, *after.pop(next(numbers), ())]
            if not self.speakers:
                yield [tuple(sentences)]
                continue
            end = start + len(paragraph)
            before = [(turn,) for turn in sentences[:start]]
            behind = [(turn,) for turn in sentences[end:]]
            yield [*before, tuple(sentences[start:end]), *behind]


def _speakers_in(example: Example) -> list[str]:
    """Return who speaks in a transcript, each once; none if most paragraphs do not begin with a speaker."""
    turns = [paragraph[0] for paragraph in example.texts("paragraph")]
    matches = [match[1] for match in map(_SPEAKER.match, turns) if match]
    return list(dict.fromkeys(matches)) if 2 * len(matches) > len(turns) else []
