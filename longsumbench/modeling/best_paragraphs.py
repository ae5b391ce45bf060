"""Readers of the best paragraphs of an example, in the order of a ranker."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import datasets

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import RANKABLE_UNITS, Example, Split
from longsumbench.modeling.collate import stored_rows
from longsumbench.modeling.neural_config import RankedConfig
from longsumbench.modeling.paragraphs import Limits, Paragraph, best_paragraphs, join_sentences, paragraphs_of
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.modeling.units import EncodedSentence, Units, group_units, pack_sentences, prepend_query
from longsumbench.progress import track

_ORDERS_VERSION = 1  # rises, with the version of every learned ranker, when the same scores give another order
_ORDERS = datasets.Features({"order": datasets.List(datasets.Value("int32"))})


class BestParagraphs(UnitReader):
    """Reads the title and the best paragraphs as one unit.

    The input length of training may differ from that of summarizing (`test_input_length`).
    """

    config: RankedConfig
    _orders: Iterator[list[int]] | None = None  # set while `read_rows` runs

    def read_rows(self, split: Split, examples: int, stages: ArtifactCache) -> Iterator[dict[str, Any]]:
        """As UnitReader, except: the orders of a learned ranker are cached, and shared between systems."""
        if self.ranking.learned and self.config.unit in RANKABLE_UNITS:
            self._orders = self.stored_orders(split, examples, stages)
        try:
            yield from super().read_rows(split, examples, stages)
        finally:
            self._orders = None

    def stored_orders(self, split: Split, examples: int, stages: ArtifactCache) -> Iterator[list[int]]:
        """Return the orders of the paragraphs of a split's first examples: the stage "orders"."""
        unit, counts = self.config.unit, {"split": split.fingerprint, "examples": examples}
        inputs = {**self.ranking.fitted_identity(), "unit": unit, **counts, "version": _ORDERS_VERSION}

        def ranked() -> Iterator[dict[str, list[int]]]:
            for index in track(range(examples), f"ranking {split.name}", examples):
                example = split[index]
                texts = [paragraph.text for paragraph in paragraphs_of(example, unit)]
                yield {"order": self.ranking.order(example, texts)}

        return iter(stored_rows("orders", inputs, _ORDERS, ranked(), stages)["order"])

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
        order = next(self._orders) if self._orders else self.ranking.order(example, texts)
        ranked = [paragraphs[index] for index in order]
        documents = [paragraph.place[0] for paragraph in ranked]
        units = best_paragraphs(title, [encoded[index] for index in order], documents, limits)
        fitting = ranked[: len(units.ids) - 1]
        return replace(units, spans=((0, 0), *(paragraph.span for paragraph in fitting))), fitting

    def paragraphs(self, example: Example, snippet_length: int) -> tuple[list[Paragraph], list[EncodedSentence]]:
        """Return the paragraphs, sections or snippets to rank, and their tokens.

        Snippets have at most `snippet_length` tokens, or are one longer sentence.
        """
        unit = self.config.unit
        paragraphs = paragraphs_of(example, "sentence" if unit == "snippet" else unit)
        sentences = self.encode([sentence for paragraph in paragraphs for sentence in paragraph.sentences])
        encoded, start = [], 0
        for paragraph in paragraphs:
            encoded.append(join_sentences(sentences[start : start + len(paragraph.sentences)]))
            start += len(paragraph.sentences)
        return _packed(paragraphs, encoded, snippet_length) if unit == "snippet" else (paragraphs, encoded)


def _packed(
    sentences: Sequence[Paragraph], encoded: Sequence[EncodedSentence], length: int
) -> tuple[list[Paragraph], list[EncodedSentence]]:
    """Pack consecutive sentences of a document into snippets; a sentence above `length` tokens is its own snippet."""
    snippets, packed = [], []
    for document, members in groupby(range(len(sentences)), key=lambda index: sentences[index].place[0]):
        indices = list(members)
        for number, span in enumerate(pack_sentences([encoded[index] for index in indices], length)):
            group = [sentences[index] for index in indices[span]]
            texts = tuple(text for sentence in group for text in sentence.sentences)
            snippets.append(Paragraph((document, number), texts, (group[0].span[0], group[-1].span[1])))
            packed.append(join_sentences([encoded[index] for index in indices[span]]))
    return snippets, packed
