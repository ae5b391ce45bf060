"""What Trunc, CA, EA and SEAL read: snippets, groups of them, and their proxy labels.

A proxy label says how much of the reference, or of a segment of it, a snippet says (SEAL, §3.4, §3.5, Appendix A).
Letters: N snippets, S segments.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Example, Split, settings_deciding
from longsumbench.core.versions import LOADING_VERSION
from longsumbench.modeling import units as packing
from longsumbench.modeling.collate import UnitCollator, stored_rows
from longsumbench.modeling.unit_reader import Rows, UnitReader
from longsumbench.models.seal.config import CAConfig, EAConfig, FamilyConfig, TruncConfig
from longsumbench.progress import track
from longsumbench.rouge.all_pairs import rouge_n
from longsumbench.rouge.selection import sequential_selection


class SnippetReader(UnitReader):
    """Packs whole sentences into snippets."""

    config: FamilyConfig

    def snippets(self, example: Example, reserved: int = 0) -> packing.Units:
        """Return the snippets (SEAL §3.1); `reserved` tokens of each are left free."""
        encoded = [self.encode(list(document.sentences())) for document in example.documents]
        return packing.split_snippets(
            encoded, self.config.snippet_length - reserved, self.config.num_snippets
        )


class TruncReader(SnippetReader):
    """Reads the leading or best snippets, joined and cut at `input_length` (SEAL §3.2)."""

    config: TruncConfig

    def units(self, example: Example) -> packing.Units:
        """Return one unit: the joined snippets."""
        units = self.snippets(example)
        if self.config.rank != "none":
            texts = self.tokenizer.batch_decode(units.ids)
            units = packing.reorder(units, self.ranking.order(example, texts))
        query = self.query(example, self.config.input_length)
        units = packing.join_units(units, self.config.input_length - len(query))
        return packing.prepend_query(units, query)


class CAReader(SnippetReader):
    """Reads groups of snippets (SEAL §3.3)."""

    config: CAConfig

    def units(self, example: Example) -> packing.Units:
        """Return the groups: consecutive snippets of a single document, or all snippets of each of several documents.

        Choice: the query is added to a group's snippets, because a group has no maximum length.
        """
        units = self.snippets(example)
        if self.multi_document:
            units = packing.number_documents(units, self.config.max_documents)
            keys: Sequence[int] = units.documents
        else:
            keys = [index // self.config.group_size for index in range(len(units.ids))]
        query = self.query(example, self.config.snippet_length)
        return packing.prepend_query(packing.group_units(units, keys), query)


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

    def units(self, example: Example) -> packing.Units:
        """Return the snippets."""
        query = self.query(example, self.config.snippet_length)
        units = self.snippets(example, reserved=len(query))
        if self.multi_document:
            units = packing.number_documents(units, self.config.max_documents)
        return packing.prepend_query(units, query)

    def rows(
        self, split: Split, examples: int, cache: ArtifactCache, with_labels: bool = False
    ) -> Rows:
        """As UnitReader; the labels are the proxy labels, which are cached for the same units and settings."""
        rows = super().rows(split, examples, cache)
        if not with_labels:
            return rows
        some = {} if examples == len(split) else {"examples": examples}
        inputs = {
            "units": {**self.inputs(), "split": split.fingerprint, **some},
            "labels": settings_deciding(self.config, "labels"),
            "reading": LOADING_VERSION,
        }
        columns = rows.select_columns(["units", "labels", "query_length"])
        labelled = (
            {"proxy_labels": self.label_row(item)}
            for item in track(columns, "labelling", len(rows))
        )
        values = datasets.List(datasets.List(datasets.Value("float32")))
        labels = stored_rows(
            "labels", inputs, datasets.Features({"proxy_labels": values}), labelled, cache
        )
        return datasets.concatenate_datasets([rows, labels], axis=1)

    def label_row(self, item: Mapping[str, Any]) -> list[list[float]]:
        """Return the proxy labels of a training row: [m][U]; the query before a snippet is ignored."""
        config = self.config
        length = config.choose_segment_length(len(item["labels"]))
        segments = target_segments(item["labels"], length, self.tokenizer.eos_token_id)
        texts = [unit[item["query_length"] :] for unit in item["units"]]
        kind = config.proxy_ngram, config.proxy_measure, config.proxy_sequential
        labels: list[list[float]] = proxy_labels(texts, segments, *kind).tolist()
        return labels


def target_segments(labels: Sequence[int], segment_length: int, end: int) -> list[list[int]]:
    """Cut a target into segments, without the end token (SEAL, §3.5).

    The end token takes a place: if it is alone in the last segment, that segment is empty. If `segment_length` is at
    least the target's length, there is one segment, the whole summary, as EA's labels need. The end token is the last
    label, and counts in `segment_length`.
    """
    segments = []
    for start in range(0, len(labels), segment_length):
        segment = labels[start : start + segment_length]
        segments.append([token for token in segment if token != end])
    return segments


def proxy_labels(
    snippets: Sequence[Sequence[int]],
    segments: Sequence[Sequence[int]],
    ngram: int = 2,
    measure: str = "f1",
    sequential: bool = False,
) -> NDArray[np.float32]:
    """Label every snippet with its ROUGE-n against every segment of the reference (SEAL, Table 3).

    The count of a shared n-gram is the smaller of its two counts. N-grams cross neither snippets nor segments. Snippets
    and segments of fewer than n tokens have label 0.

    Args:
        snippets: token ids, without special tokens.
        segments: token ids of the reference's segments; the whole reference is one segment for EA.
        ngram: n.
        measure: "f1", "precision" (over the snippet's n-grams) or "recall" (over the segment's).
        sequential: labels are 1 for the snippets that `sequential_selection` selects for the segment, 0 for others.

    Returns:
        [S, N], 0–1.
    """
    if not sequential:
        return rouge_n(snippets, segments, ngram)[measure].astype(np.float32)
    labels = np.zeros((len(segments), len(snippets)), np.float32)
    selections = sequential_selection(snippets, segments, ngram, measure)
    for row, indices in zip(labels, selections, strict=True):
        row[indices] = 1
    return labels
