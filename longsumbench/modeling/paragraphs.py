"""What is read of an example: the title and the best paragraphs, as many as fit. Pure functions.

example → paragraphs_of → a ranker → best → units and the ledger
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from longsumbench.api.documents import Cut, Example, Sentences, Truncation
from longsumbench.modeling.units import EncodedSentence, Units, tokens_and_words

_Place = tuple[int, int]  # of a paragraph: its document, and its number in it


@dataclass(frozen=True)
class Paragraph:
    """What is ranked and read as one: a paragraph, a section, or a few sentences.

    Attributes:
        place: where it stands; neighbours of one document have neighbouring numbers.
        sentences: its text.
    """

    place: _Place
    sentences: Sentences

    @property
    def text(self) -> str:
        """Its sentences in one string."""
        return " ".join(self.sentences)


def paragraphs_of(example: Example, unit: str) -> list[Paragraph]:
    """Return an example's paragraphs, sections, or sentences, in reading order, none without text.

    Args:
        example: the texts.
        unit: "paragraph", "section" (their names are left out), or "sentence".
    """
    return [
        Paragraph((index, number), sentences)
        for index, document in enumerate(example.documents)
        for number, sentences in enumerate(document.texts(unit))
    ]


def join_sentences(sentences: Sequence[EncodedSentence]) -> EncodedSentence:
    """Join the tokens and words of a paragraph's sentences."""
    return EncodedSentence(list(chain.from_iterable(one.ids for one in sentences)), sum(one.words for one in sentences))


@dataclass(frozen=True)
class Limits:
    """How much is read.

    Attributes:
        num_paragraphs: of the best ones; None: as many as fit.
        paragraph_length: tokens of each at most.
        input_length: tokens of all, the title included.
        taken: tokens of `input_length` that are taken by something else before each paragraph that is read.
    """

    num_paragraphs: int | None
    paragraph_length: int
    input_length: int
    taken: int = 0


def best_paragraphs(
    title: EncodedSentence | None, ranked: Sequence[EncodedSentence], documents: Sequence[int], limits: Limits
) -> Units:
    """Return the title as the first unit, empty where there is none, and the best paragraphs that fit.

    A paragraph without tokens keeps its place, so that the others have the rank they have; those behind the last token
    are left out. The ledger counts the title as text.

    Args:
        title: read first.
        ranked: the paragraphs, the best first.
        documents: of which each is.
        limits: how much is read.
    """
    first = title or EncodedSentence([], 0)
    chosen = ranked[: limits.num_paragraphs]
    heads = [first, *(one.head(limits.paragraph_length) for one in chosen)]
    fitting, room = [], limits.input_length
    for one in heads:
        fitting.append(one.head(max(0, room - limits.taken)))
        room -= len(fitting[-1].ids) + limits.taken * bool(fitting[-1].ids)
    while len(fitting) > 1 and not fitting[-1].ids:
        fitting.pop()
    stages = [[first, *ranked], [first, *chosen], heads, fitting]
    counts = [tokens_and_words(stage) for stage in stages]
    causes = ("num_paragraphs", "paragraph_length", "input_length")
    cuts = tuple(
        Cut(cause, before[0] - after[0], before[1] - after[1])
        for cause, before, after in zip(causes, counts, counts[1:], strict=False)
        if before[0] > after[0]
    )
    of = (documents[0] if documents else 0, *documents)
    ids, words = tuple(list(one.ids) for one in fitting), tuple(one.words for one in fitting)
    return Units(ids, of[: len(fitting)], words, Truncation(*counts[0], cuts))
