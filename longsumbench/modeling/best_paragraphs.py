"""Readers of the best paragraphs of an example, in the order of a ranker."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from longsumbench.api import RANKABLE_UNITS, Example, Split
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.modeling.paragraph_orders import Orders
from longsumbench.modeling.paragraphs import Limits, Paragraph, best_paragraphs, join_sentences, paragraphs_of
from longsumbench.modeling.ranked_systems import RankedConfig
from longsumbench.modeling.unit_reader import Rows, UnitReader
from longsumbench.modeling.units import EncodedSentence, Units, group_units, prepend_query


class BestParagraphs(UnitReader):
    """Reads the title and the best paragraphs as one unit.

    The input length of training may differ from that of summarizing (`test_input_length`).
    """

    config: RankedConfig
    _orders: Orders | None = None  # set while `rows` runs

    def rows(self, split: Split, examples: int, stages: ArtifactCache) -> Rows:
        """As UnitReader, except: the orders of a learned ranker are cached, and shared between systems."""
        unit = self.config.unit

        def rank(example: Example) -> list[int]:
            return self.ranking.order(example, [paragraph.text for paragraph in paragraphs_of(example, unit)])

        if self.ranking.learned and unit in RANKABLE_UNITS:
            decided_by = {**self.ranking.fitted_identity(), "unit": unit}
            self._orders = Orders(split, examples, rank, decided_by, stages)
        try:
            return super().rows(split, examples, stages)
        finally:
            self._orders = None

    def training_units(self, example: Example) -> Units:
        """Return the units of an example of the training or validation split."""
        return self.read(example, self.limits(training=True))

    def units(self, example: Example) -> Units:
        """Return the units of an example to summarize."""
        return self.read(example, self.limits(training=False))

    def limits(self, training: bool) -> Limits:
        """Return the limits of the input."""
        config = self.config
        length = config.input_length if training else config.test_input_length or config.input_length
        return Limits(None, config.paragraph_length, length)

    def read(self, example: Example, limits: Limits) -> Units:
        """Return the query, the title and the best paragraphs as one unit, cut at the input length."""
        query = self.query(example, limits.input_length)
        limits = replace(limits, input_length=limits.input_length - len(query))
        separate = self.marked(self.best(example, limits)[0])
        units = prepend_query(group_units(separate, [0] * len(separate.ids)), query)
        return units if any(units.ids) else replace(units, ids=(), documents=(), words=())

    def marked(self, units: Units) -> Units:
        """Add separators to units that will be joined; by default none."""
        return units

    def best(self, example: Example, limits: Limits) -> tuple[Units, list[Paragraph]]:
        """Return the title and the best paragraphs as units, and these paragraphs."""
        paragraphs, encoded = self.paragraphs(example, limits.paragraph_length)
        title = self.encode([example.title])[0] if example.title else None
        texts = [paragraph.text for paragraph in paragraphs]
        order = self._orders(example.id) if self._orders else self.ranking.order(example, texts)
        ranked = [paragraphs[index] for index in order]
        documents = [paragraph.place[0] for paragraph in ranked]
        units = best_paragraphs(title, [encoded[index] for index in order], documents, limits)
        return units, ranked[: len(units.ids) - 1]

    def paragraphs(self, example: Example, snippet_length: int) -> tuple[list[Paragraph], list[EncodedSentence]]:
        """Return the paragraphs, sections or snippets to rank, and their tokens.

        Snippets have at most `snippet_length` tokens, or are one longer sentence.
        """
        unit = self.config.unit
        found = paragraphs_of(example, "sentence" if unit == "snippet" else unit)
        sentences = self.encode([sentence for paragraph in found for sentence in paragraph.sentences])
        encoded, start = [], 0
        for paragraph in found:
            encoded.append(join_sentences(sentences[start : start + len(paragraph.sentences)]))
            start += len(paragraph.sentences)
        return _packed(found, encoded, snippet_length) if unit == "snippet" else (found, encoded)


def _packed(
    sentences: Sequence[Paragraph], encoded: Sequence[EncodedSentence], length: int
) -> tuple[list[Paragraph], list[EncodedSentence]]:
    """Pack consecutive sentences of a document into snippets; a sentence above `length` tokens is its own snippet."""
    groups: list[list[int]] = []
    tokens = 0
    for index, (sentence, encoding) in enumerate(zip(sentences, encoded, strict=True)):
        same_document = bool(groups) and sentences[groups[-1][0]].place[0] == sentence.place[0]
        if not same_document or tokens + len(encoding.ids) > length:
            groups.append([])
            tokens = 0
        groups[-1].append(index)
        tokens += len(encoding.ids)
    texts = [tuple(text for index in group for text in sentences[index].sentences) for group in groups]
    places = [sentences[group[0]].place[0] for group in groups]
    counts: Counter[int] = Counter()
    numbered = []
    for document in places:
        numbered.append((document, counts[document]))
        counts[document] += 1
    return (
        [Paragraph(place, text) for place, text in zip(numbered, texts, strict=True)],
        [join_sentences([encoded[index] for index in group]) for group in groups],
    )
