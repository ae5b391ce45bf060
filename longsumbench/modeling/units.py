"""Packing sentences or ranked paragraphs into units: pure functions to token ids and the ledger of what was cut.

A unit is a list of token ids with the index of its document. The caller tokenizes. Lengths are in tokens without
special ones; the caller adds those and reserves their places.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, groupby, islice
from operator import itemgetter
from typing import Any

from longsumbench.core import Cut, Example, Sentences, Truncation


@dataclass(frozen=True, slots=True)
class EncodedSentence:
    """A tokenized sentence."""

    ids: Sequence[int]  # its tokens, without special ones
    words: int  # the number of its whitespace-separated words

    def head(self, length: int) -> "EncodedSentence":
        """Return the first `length` tokens, with the number of whole words in them.

        Words count as spread evenly over the tokens, and a cut word as left out. So cutting c of t tokens removes
        ⌈words · c / t⌉ words.
        """
        return self if len(self.ids) <= length else self.between(0, length)

    def between(self, start: int, end: int) -> "EncodedSentence":
        """Return the tokens from `start` to before `end`, with the number of words that end in them.

        Words count as spread evenly over the tokens. Consecutive spans count each word once. The sentence must have
        tokens.
        """
        before_start, before_end = (self.words * place // len(self.ids) for place in (start, end))
        return EncodedSentence(self.ids[start:end], before_end - before_start)


@dataclass(frozen=True, slots=True)
class Units:
    """The units of one example, and the ledger of what they leave out."""

    ids: tuple[list[int], ...]  # a list of token ids per unit; empty for an absent unit
    documents: tuple[
        int, ...
    ]  # unit → index of its document (that of its first token, for a unit that joins several)
    words: tuple[int, ...]  # unit → number of whole words in it
    truncation: Truncation  # the example's ledger: the size of the input, and what no unit contains
    query_length: int = (
        0  # number of query tokens at the start of every unit with text; not counted in `words`
    )
    # further values of the example's row, such as a graph between the units
    columns: Mapping[str, Any] = field(default_factory=dict)
    # unit → its sentences, first and last + 1, as indices of all sentences of the source; (0, 0) if it has none; empty
    # where a unit is no such span
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A query, which starts every unit of an example."""

    text: EncodedSentence = field(
        default_factory=lambda: EncodedSentence((), 0)
    )  # the query as given
    # its first tokens, at most half of a unit's length; the other half is for the text
    head: EncodedSentence = field(default_factory=lambda: EncodedSentence((), 0))

    @classmethod
    def within(cls, text: EncodedSentence, unit_length: int) -> "Query":
        """Cut a query for units of at most `unit_length` tokens, the query included."""
        return cls(text, text.head(unit_length // 2))

    def __len__(self) -> int:
        return len(self.head.ids)


def first_tokens(sentences: Iterable[EncodedSentence], length: int) -> list[EncodedSentence]:
    """Return the first `length` tokens of sentences."""
    heads = []
    for sentence in sentences:
        heads.append(sentence.head(length))
        length -= len(heads[-1].ids)
    return heads


def split_snippets(
    encoded: Sequence[Sequence[EncodedSentence]], snippet_length: int, num_snippets: int
) -> Units:
    """Pack whole consecutive sentences into snippets, in order of appearance (SEAL, §3.1).

    A snippet ends when the next sentence would exceed `snippet_length`, and at the end of a document. A sentence longer
    than `snippet_length` is cut to it (cause "snippet_length"). Sentences after the last snippet are left out (cause
    "num_snippets"). Sentences without tokens are ignored.
    """
    every = (
        (index, span)
        for index, document in enumerate(encoded)
        for span in pack_sentences(document, snippet_length)
        if any(sentence.ids for sentence in document[span])
    )
    places = list(islice(every, num_snippets))
    snippets = [(index, encoded[index][span]) for index, span in places]
    heads = [[sentence.head(snippet_length) for sentence in packed] for _, packed in snippets]
    ids = tuple(list(chain.from_iterable(sentence.ids for sentence in unit)) for unit in heads)
    words = tuple(sum(sentence.words for sentence in unit) for unit in heads)

    counts = tokens_and_words(sentence for document in encoded for sentence in document)
    packed_counts = tokens_and_words(sentence for _, packed in snippets for sentence in packed)
    seen = (sum(map(len, ids)), sum(words))
    cuts = (
        Cut("snippet_length", packed_counts[0] - seen[0], packed_counts[1] - seen[1]),
        Cut("num_snippets", counts[0] - packed_counts[0], counts[1] - packed_counts[1]),
    )
    truncation = Truncation(*counts, tuple(cut for cut in cuts if cut.tokens))
    starts = [0, *accumulate(map(len, encoded))]
    spans = tuple((starts[index] + span.start, starts[index] + span.stop) for index, span in places)
    return Units(ids, tuple(index for index, _ in snippets), words, truncation, spans=spans)


def reorder(units: Units, order: Sequence[int]) -> Units:
    """Return the units in another order, a permutation of their indices; the ledger stays."""
    ids = tuple(units.ids[index] for index in order)
    documents = tuple(units.documents[index] for index in order)
    words = tuple(units.words[index] for index in order)
    spans = tuple(units.spans[index] for index in order) if units.spans else ()
    return replace(units, ids=ids, documents=documents, words=words, spans=spans)


def join_units(units: Units, input_length: int) -> Units:
    """Join the units into one and cut it at `input_length` tokens, the cause in the ledger (Trunc: SEAL, §3.2).

    Words of the unit that crosses the limit are counted as in `EncodedSentence.head`.
    """
    if not units.ids:
        return units
    head = join_sentences(first_tokens(map(EncodedSentence, units.ids, units.words), input_length))
    joined, words = list(head.ids), head.words
    left_out = Cut("input_length", sum(map(len, units.ids)) - len(joined), sum(units.words) - words)
    ledger = units.truncation
    cuts = (*ledger.cuts, left_out) if left_out.tokens else ledger.cuts
    return Units((joined,), units.documents[:1], (words,), replace(ledger, cuts=cuts))


def group_units(units: Units, keys: Sequence[int]) -> Units:
    """Join consecutive units with the same key, one key per unit (CA's groups of snippets: SEAL, §3.3).

    Nothing is cut.
    """
    members = [
        [index for index, _ in run] for _, run in groupby(enumerate(keys), key=itemgetter(1))
    ]
    ids = tuple([token for index in run for token in units.ids[index]] for run in members)
    documents = tuple(units.documents[run[0]] for run in members)
    words = tuple(sum(units.words[index] for index in run) for run in members)
    return Units(ids, documents, words, units.truncation)


def prepend_query(units: Units, query: Query) -> Units:
    """Put a query before every unit with text.

    The ledger counts the query once, as text. What `query.head` leaves out is cut for the cause "query".
    """
    if not query.text.ids:
        return units
    ids = tuple([*query.head.ids, *unit] if unit else unit for unit in units.ids)
    ledger, left_out = units.truncation, len(query.text.ids) - len(query)
    cut = (Cut("query", left_out, query.text.words - query.head.words),) if left_out else ()
    counts = (ledger.tokens + len(query.text.ids), ledger.words + query.text.words)
    truncation = Truncation(*counts, (*ledger.cuts, *cut), ledger.documents_merged)
    return replace(units, ids=ids, truncation=truncation, query_length=len(query))


def number_documents(units: Units, max_documents: int) -> Units:
    """Number the documents that have units from 0; those beyond `max_documents` share the last number.

    The ledger counts the documents beyond the limit; nothing is cut.
    """
    numbers = {document: number for number, document in enumerate(dict.fromkeys(units.documents))}
    documents = tuple(min(numbers[document], max_documents - 1) for document in units.documents)
    merged = max(0, len(numbers) - max_documents)
    return replace(
        units, documents=documents, truncation=replace(units.truncation, documents_merged=merged)
    )


def tokens_and_words(sentences: Iterable[EncodedSentence]) -> tuple[int, int]:
    """Return the number of tokens and the number of words."""
    tokens = words = 0
    for sentence in sentences:
        tokens += len(sentence.ids)
        words += sentence.words
    return tokens, words


def pack_sentences(sentences: Sequence[EncodedSentence], length: int) -> Iterator[slice]:
    """Yield spans of consecutive sentences with at most `length` tokens; a longer sentence is its own span."""
    start = tokens = 0
    for place, sentence in enumerate(sentences):
        if tokens and tokens + len(sentence.ids) > length:
            yield slice(start, place)
            start, tokens = place, 0
        tokens += len(sentence.ids)
    yield slice(start, len(sentences))


@dataclass(frozen=True)
class Paragraph:
    """A text that is ranked and read as one: a paragraph, a section, or a few sentences."""

    place: tuple[int, int]  # its document, and its number in that document
    sentences: Sentences  # its text
    span: tuple[
        int, int
    ]  # its sentences, first and last + 1, as indices of all sentences of the example

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
    """Limits of the input."""

    num_paragraphs: int | None  # maximum number of paragraphs; None: as many as fit
    paragraph_length: int  # maximum tokens of a paragraph
    input_length: int  # maximum tokens of all, the title included
    reserved: int = 0  # tokens of `input_length` reserved before each paragraph


def best_paragraphs(
    title: EncodedSentence | None,
    ranked: Sequence[EncodedSentence],
    documents: Sequence[int],
    limits: Limits,
) -> Units:
    """Return the title as the first unit (empty if there is none) and the best paragraphs that fit.

    A paragraph without tokens stays as an empty unit, so that the ranks of the others stay; empty units at the end are
    left out. The ledger counts the title as text.
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
