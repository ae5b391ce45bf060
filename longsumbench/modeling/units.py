"""Packing sentences or ranked paragraphs into units: pure functions to token ids and the ledger of what was cut.

A unit is a list of token ids with the index of its document. The caller tokenizes. Lengths are in tokens without
special ones; the caller adds those and reserves their places.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
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
        before_start, before_end = (self.words * index // len(self.ids) for index in (start, end))
        return EncodedSentence(self.ids[start:end], before_end - before_start)


@dataclass(frozen=True, slots=True)
class Units:
    """The units of one example, and the ledger of what they leave out."""

    ids: tuple[list[int], ...]  # a list of token ids per unit; empty for an absent unit
    # unit → index of its document (that of its first token, for a unit that joins several)
    documents: tuple[int, ...]
    words: tuple[int, ...]  # unit → number of whole words in it
    truncation: Truncation  # the example's ledger: the size of the input, and what no unit contains
    # number of query tokens at the start of every unit with text; not counted in `words`
    query_length: int = 0
    # further values of the example's row, such as a graph between the units
    columns: Mapping[str, Any] = field(default_factory=dict)
    # unit → its sentences, first and last + 1, as indices of all sentences of the source; (0, 0) if it has none; empty
    # where a unit is no such span
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A query, which starts every unit of an example."""

    text: EncodedSentence = EncodedSentence((), 0)  # the query as given
    # its first tokens, at most half of a unit's length; the other half is for the text
    head: EncodedSentence = EncodedSentence((), 0)

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
    documents: list[int] = []
    whole: list[EncodedSentence] = []  # the snippets before sentences are cut
    snippets: list[EncodedSentence] = []
    spans: list[tuple[int, int]] = []
    start = 0  # of a document, as an index of all sentences
    for index, document in enumerate(encoded):
        for span in pack_sentences(document, snippet_length):
            snippet = join_sentences(document[span])
            if not snippet.ids or len(snippets) == num_snippets:
                continue
            documents.append(index)
            whole.append(snippet)
            # only a snippet of one sentence can be longer
            heads = [sentence.head(snippet_length) for sentence in document[span]]
            snippets.append(join_sentences(heads))
            spans.append((start + span.start, start + span.stop))
        start += len(document)
    stages = [tokens_and_words(chain.from_iterable(encoded))]
    stages += [tokens_and_words(whole), tokens_and_words(snippets)]
    causes = ("num_snippets", "snippet_length")
    ids, words = ids_and_words(snippets)
    truncation = Truncation(*stages[0], _cuts_between(stages, causes)[::-1])
    return Units(ids, tuple(documents), words, truncation, spans=tuple(spans))


def ids_and_words(
    texts: Iterable[EncodedSentence],
) -> tuple[tuple[list[int], ...], tuple[int, ...]]:
    """Return the token ids and the number of words of each text, as `Units` has them."""
    texts = list(texts)
    ids = tuple(list(text.ids) for text in texts)
    return ids, tuple(text.words for text in texts)


def _cuts_between(stages: Sequence[tuple[int, int]], causes: Sequence[str]) -> tuple[Cut, ...]:
    """Return what each cause cut: the difference of two successive (tokens, words), if tokens differ."""
    cuts = []
    for cause, before, after in zip(causes, stages, stages[1:], strict=False):
        if before[0] > after[0]:
            cuts.append(Cut(cause, before[0] - after[0], before[1] - after[1]))
    return tuple(cuts)


def reorder(units: Units, order: Sequence[int]) -> Units:
    """Return the units in another order, a permutation of their indices; the ledger stays."""
    return replace(
        units,
        ids=tuple(map(units.ids.__getitem__, order)),
        documents=tuple(map(units.documents.__getitem__, order)),
        words=tuple(map(units.words.__getitem__, order)),
        spans=tuple(map(units.spans.__getitem__, order)) if units.spans else (),
    )


def join_units(units: Units, input_length: int) -> Units:
    """Join the units into one and cut it at `input_length` tokens, the cause in the ledger (Trunc: SEAL, §3.2).

    Words of the unit that crosses the limit are counted as in `EncodedSentence.head`.
    """
    if not units.ids:
        return units
    texts = list(map(EncodedSentence, units.ids, units.words))
    head = join_sentences(first_tokens(texts, input_length))
    ledger = units.truncation
    stages = [tokens_and_words(texts), tokens_and_words([head])]
    ledger = replace(ledger, cuts=ledger.cuts + _cuts_between(stages, ["input_length"]))
    return Units((list(head.ids),), units.documents[:1], (head.words,), ledger)


def group_units(units: Units, keys: Sequence[int]) -> Units:
    """Join consecutive units with the same key, one key per unit (CA's groups of snippets: SEAL, §3.3).

    Nothing is cut.
    """
    texts = list(map(EncodedSentence, units.ids, units.words))
    joined, documents = [], []
    for _, run in groupby(range(len(keys)), key=keys.__getitem__):
        indices = list(run)
        joined.append(join_sentences([texts[index] for index in indices]))
        documents.append(units.documents[indices[0]])
    ids, words = ids_and_words(joined)
    return Units(ids, tuple(documents), words, units.truncation)


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
    for index, sentence in enumerate(sentences):
        if tokens and tokens + len(sentence.ids) > length:
            yield slice(start, index)
            start, tokens = index, 0
        tokens += len(sentence.ids)
    yield slice(start, len(sentences))


@dataclass(frozen=True)
class Paragraph:
    """A text that is ranked and read as one: a paragraph, a section, or a few sentences."""

    position: tuple[int, int]  # its document, and its number in that document
    sentences: Sentences  # its text
    # its sentences, first and last + 1, as indices of all sentences of the example
    span: tuple[int, int]

    @property
    def text(self) -> str:
        """The sentences in one string."""
        return " ".join(self.sentences)


def split_paragraphs(example: Example, unit: str) -> list[Paragraph]:
    """Return an example's paragraphs, sections or sentences with text, in reading order.

    The unit is "paragraph", "section" (without its name) or "sentence".
    """
    indices = [index for index, sentence in enumerate(example.sentences()) if sentence.strip()]
    paragraphs = []
    start = 0  # every sentence with text is in one paragraph, in this order
    for index, document in enumerate(example.documents):
        for number, sentences in enumerate(document.texts(unit)):
            end = start + sum(bool(sentence.strip()) for sentence in sentences)
            span = indices[start], indices[end - 1] + 1
            paragraphs.append(Paragraph((index, number), sentences, span))
            start = end
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
    heads = [first]
    heads += [paragraph.head(limits.paragraph_length) for paragraph in best]
    fitting, room = [], limits.input_length
    for head in heads:
        fitting.append(head.head(max(0, room - limits.reserved)))
        room -= len(fitting[-1].ids) + limits.reserved * bool(fitting[-1].ids)
    while len(fitting) > 1 and not fitting[-1].ids:
        fitting.pop()
    counts = [
        tokens_and_words(stage) for stage in ([first, *ranked], [first, *best], heads, fitting)
    ]
    cuts = _cuts_between(counts, ("num_paragraphs", "paragraph_length", "input_length"))
    # the title counts as text of the best paragraph's document
    unit_documents = (*documents[:1], *documents) or (0,)
    ids, words = ids_and_words(fitting)
    return Units(ids, unit_documents[: len(fitting)], words, Truncation(*counts[0], cuts))
