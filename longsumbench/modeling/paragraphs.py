"""Selection of an example's input: the title and the best paragraphs, as many as fit. Pure functions.

example → paragraphs_of → a ranker → best_paragraphs → units and the ledger
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice

from longsumbench.core import Cut, Example, Sentences, Truncation
from longsumbench.modeling.units import EncodedSentence, Units, tokens_and_words

_ParagraphPlace = tuple[int, int]  # a paragraph's document, and its number in that document


@dataclass(frozen=True)
class Paragraph:
    """A text that is ranked and read as one: a paragraph, a section, or a few sentences.

    Attributes:
        place: its document, and its number in that document.
        sentences: its text.
        span: its sentences, first and last + 1, as indices of all sentences of the example.
    """

    place: _ParagraphPlace
    sentences: Sentences
    span: tuple[int, int]

    @property
    def text(self) -> str:
        """The sentences in one string."""
        return " ".join(self.sentences)


def paragraphs_of(example: Example, unit: str) -> list[Paragraph]:
    """Return an example's paragraphs, sections or sentences with text, in reading order.

    The unit is "paragraph", "section" (without its name) or "sentence".
    """
    places = iter([place for place, sentence in enumerate(example.sentences()) if sentence.strip()])
    paragraphs = []  # in the order of `places`: blank sentences are skipped, all others are in one of them
    for index, document in enumerate(example.documents):
        for number, sentences in enumerate(document.texts(unit)):
            indices = list(islice(places, sum(bool(sentence.strip()) for sentence in sentences)))
            paragraphs.append(Paragraph((index, number), sentences, (indices[0], indices[-1] + 1)))
    return paragraphs


def join_sentences(sentences: Sequence[EncodedSentence]) -> EncodedSentence:
    """Join the tokens and words of a paragraph's sentences."""
    ids = list(chain.from_iterable(sentence.ids for sentence in sentences))
    return EncodedSentence(ids, sum(sentence.words for sentence in sentences))


@dataclass(frozen=True)
class Limits:
    """Limits of the input.

    Attributes:
        num_paragraphs: maximum number of paragraphs; None: as many as fit.
        paragraph_length: maximum tokens of a paragraph.
        input_length: maximum tokens of all, the title included.
        reserved: tokens of `input_length` reserved before each paragraph.
    """

    num_paragraphs: int | None
    paragraph_length: int
    input_length: int
    reserved: int = 0


def best_paragraphs(
    title: EncodedSentence | None, ranked: Sequence[EncodedSentence], documents: Sequence[int], limits: Limits
) -> Units:
    """Return the title as the first unit (empty if there is none) and the best paragraphs that fit.

    A paragraph without tokens stays as an empty unit, so that the ranks of the others stay; empty units at the end are
    left out. The ledger counts the title as text.

    Args:
        title: the first unit.
        ranked: the paragraphs, the best first.
        documents: the document of each paragraph.
        limits: the limits of the input.
    """
    first = title or EncodedSentence([], 0)
    best = ranked[: limits.num_paragraphs]
    heads = [first, *(paragraph.head(limits.paragraph_length) for paragraph in best)]
    fitting, room = [], limits.input_length
    for head in heads:
        fitting.append(head.head(max(0, room - limits.reserved)))
        room -= len(fitting[-1].ids) + limits.reserved * bool(fitting[-1].ids)
    while len(fitting) > 1 and not fitting[-1].ids:
        fitting.pop()
    stages = [[first, *ranked], [first, *best], heads, fitting]
    counts = [tokens_and_words(stage) for stage in stages]
    causes = ("num_paragraphs", "paragraph_length", "input_length")
    cuts = tuple(
        Cut(cause, count[0] - next_count[0], count[1] - next_count[1])
        for cause, count, next_count in zip(causes, counts, counts[1:], strict=False)
        if count[0] > next_count[0]
    )
    unit_documents = (documents[0] if documents else 0, *documents)
    ids, words = tuple(list(unit.ids) for unit in fitting), tuple(unit.words for unit in fitting)
    return Units(ids, unit_documents[: len(fitting)], words, Truncation(*counts[0], cuts))
