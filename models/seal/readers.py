"""What Trunc, CA, EA and SEAL read: snippets, groups of them, and their proxy labels."""

from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import torch
from torch import Tensor

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Example, Split, settings_deciding
from longsumbench.modeling.collate import UnitCollator, stored_rows
from longsumbench.modeling.unit_reader import Rows, UnitReader
from longsumbench.modeling.units import (
    Units,
    group_units,
    join_units,
    number_documents,
    prepend_query,
    reorder,
    split_snippets,
)
from longsumbench.models.seal.config import CAConfig, EAConfig, FamilyConfig, TruncConfig
from longsumbench.models.seal.proxy_labels import proxy_labels, target_segments
from longsumbench.progress import track

_LABELS_VERSION = 1  # increases when proxy labels change


class SnippetReader(UnitReader):
    """Packs whole sentences into snippets."""

    config: FamilyConfig

    def snippets(self, example: Example, reserved: int = 0) -> Units:
        """Return the snippets (SEAL §3.1); `reserved` tokens of each are left free."""
        encoded = [self.encode(list(document.sentences())) for document in example.documents]
        return split_snippets(encoded, self.config.snippet_length - reserved, self.config.num_snippets)


class TruncReader(SnippetReader):
    """Reads the leading or best snippets, joined and cut at `input_length` (SEAL §3.2)."""

    config: TruncConfig

    def units(self, example: Example) -> Units:
        """Return one unit: the joined snippets."""
        units = self.snippets(example)
        if self.config.rank != "none":
            units = reorder(units, self.ranking.order(example, self.tokenizer.batch_decode(units.ids)))
        query = self.query(example, self.config.input_length)
        return prepend_query(join_units(units, self.config.input_length - len(query)), query)


class CAReader(SnippetReader):
    """Reads groups of snippets (SEAL §3.3)."""

    config: CAConfig

    def units(self, example: Example) -> Units:
        """Return the groups: consecutive snippets of a single document, or all snippets of each of several documents.

        Choice: the query is added to a group's snippets, because a group has no maximum length.
        """
        units = self.snippets(example)
        if self.multi_document:
            units = number_documents(units, self.config.max_documents)
            keys: Sequence[int] = units.documents
        else:
            keys = [index // self.config.group_size for index in range(len(units.ids))]
        return prepend_query(group_units(units, keys), self.query(example, self.config.snippet_length))


class LabelledCollator(UnitCollator):
    """As UnitCollator, plus `proxy_labels` [B, m, U], 0 for absent segments and snippets, and their number."""

    matrices = ("proxy_labels",)

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch; in generation, rows have no labels."""
        batch = super().__call__(rows)
        if "proxy_labels" in batch:
            counts = [sum(map(len, item["proxy_labels"])) for item in rows]
            batch["num_proxy_labels"] = torch.tensor(sum(counts))
        return batch


class EAReader(SnippetReader):
    """Reads the snippets, each a unit, and labels them for training (SEAL §3.4); SEAL, for every segment (§3.5)."""

    Collator = LabelledCollator
    config: EAConfig

    def units(self, example: Example) -> Units:
        """Return the snippets."""
        query = self.query(example, self.config.snippet_length)
        units = self.snippets(example, reserved=len(query))
        return prepend_query(
            number_documents(units, self.config.max_documents) if self.multi_document else units, query
        )

    def labelled_rows(self, split: Split, examples: int, stages: ArtifactCache) -> Rows:
        """As UnitReader, plus the proxy labels, which are cached for the same units and settings."""
        rows = super().labelled_rows(split, examples, stages)
        some = {} if examples == len(split) else {"examples": examples}
        inputs = {
            "units": {**self.inputs(), "split": split.fingerprint, **some},
            "labels": settings_deciding(self.config, "labels"),
            "version": _LABELS_VERSION,
        }
        columns = rows.select_columns(["units", "labels", "query_length"])
        labelled = ({"proxy_labels": self.labels_of(item)} for item in track(columns, "labelling", len(rows)))
        values = datasets.List(datasets.List(datasets.Value("float32")))
        labels = stored_rows("labels", inputs, datasets.Features({"proxy_labels": values}), labelled, stages)
        return datasets.concatenate_datasets([rows, labels], axis=1)

    def labels_of(self, item: Mapping[str, Any]) -> list[list[float]]:
        """Return the proxy labels of a training row: [m][U]; the query before a snippet is ignored."""
        config = self.config
        length = getattr(config, "segment_length", len(item["labels"]))  # EA: the whole target is one segment
        segments = target_segments(item["labels"], length, self.tokenizer.eos_token_id)
        ngram, measure, sequential = config.proxy_ngram, config.proxy_measure, config.proxy_sequential
        texts = [unit[item["query_length"] :] for unit in item["units"]]
        labels: list[list[float]] = proxy_labels(texts, segments, ngram, measure, sequential).tolist()
        return labels
