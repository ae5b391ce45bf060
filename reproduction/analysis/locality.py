"""Computes the similarity of two sentences of a source by their distance (PageSum, Figure 1).

    source --SentenceVectors--> [N, width] --similarity_by_distance--> sums and numbers of cosines, one column per bin

Sentence vectors have length 1, so that their dot products are cosines: tf-idf, or those of a sentence encoder. A
distance is a difference of positions; it is 1 for neighbours. Each example's mean counts once. N is the number of
sentences in a source, E the number of examples. Start reading with `compare_sentences`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench import sentences
from longsumbench.core import Between, DatasetSettings, Device, OneOf, Text, setting
from longsumbench.core.versions import LOADING_VERSION
from longsumbench.errors import DataError
from longsumbench.formatting import format_count
from longsumbench.metrics.aggregate import MEAN_RESAMPLES, Estimate
from longsumbench.metrics.statistics import bootstrap_intervals
from longsumbench.modeling.embeddings import POOLINGS, SentenceEncoder
from longsumbench.modeling.ranking import tfidf_vectors
from longsumbench.runs.results import Results
from longsumbench.views.series import Panel, PanelRow, Series, SeriesFigure, draw_series
from longsumbench.views.tables import Block
from longsumbench_reproduction.analysis.sampled import (
    AnalysisResult,
    Sampled,
    SampleSettings,
    sample_dataset,
)

_WIDENING = 1.4  # ratio of the last distances of two consecutive bins
_COSINES_AT_ONCE = 1 << 21  # in memory, of 8 bytes each
# Distances on the terminal; the CSV has all
_PRINTED_DISTANCES = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100)
A_DISTANCE, ALL = "a distance", "all pairs"
WITHIN, ACROSS = "within a document", "across documents"

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Pooling = Annotated[str, OneOf("auto", *POOLINGS)]
Distance = Annotated[int, Between(1, 10**6)]


class SentenceVectors(Protocol):
    """Computes vectors of the sentences of one text."""

    name: str  # for titles
    signature: str  # how the vectors are computed
    num_cut: int  # number of truncated sentences so far

    def __call__(self, sentences: Sequence[str], /) -> Any:
        """Return an array or a sparse matrix, [sentences, width], with rows of length 1 or of zeros."""


class TfIdf:
    """tf-idf vectors, with the sentences of the text as documents; a sentence without terms is a row of zeros."""

    name = "tf-idf"
    signature = "tfidf"
    num_cut = 0

    def __call__(self, sentences: Sequence[str]) -> Any:
        """Return a sparse matrix."""
        return tfidf_vectors(sentences)


@dataclass
class LocalitySettings(SampleSettings):
    """Settings of `longsumbench analyze locality`."""

    encoder: Text | None = setting(None, "folder or hub name of a sentence encoder; null: tf-idf")
    pooling: _Pooling = setting(
        "auto", "pooling of its states: mean | cls | max; auto: from its configuration, or mean"
    )
    device: Device = setting("auto", "auto | cpu | cuda | mps")
    distance: Distance = setting(
        50, "greater distances share bins of increasing width", "sentences"
    )


@dataclass(frozen=True)
class Locality(AnalysisResult):
    """The result of `longsumbench analyze locality`; a group is a set of pairs that are averaged together."""

    analysis: ClassVar[str] = "locality"
    vectors: str  # name of the sentence vectors
    groups: pd.DataFrame  # one row per group: `pairs of`, and its distances `from` and `to`
    sums: _Floats  # [E, groups], sums of cosines
    pairs: _Ints  # [E, groups], numbers of pairs
    too_short: int = 0  # number of examples left out because they have fewer than two sentences
    num_cut: int = 0  # number of sentences that the encoder truncated

    @property
    def title(self) -> str:
        """Heading of the table."""
        return f"Similarity of two sentences of a source by their distance: {self.dataset}, {self.vectors}"

    def table(self) -> pd.DataFrame:
        """Return one row per bin, and rows for all pairs and for those within and across documents.

        `similarity` is the mean cosine; `above` is the mean of its difference from the mean over all pairs of the same
        example. Examples without such a pair do not count.
        """
        means = _divide(self.sums, self.pairs)
        above = means - means[:, self.groups["pairs of"] == ALL]
        table = self.groups.copy()
        table[["similarity", "low", "high"]] = _means_with_intervals(means)
        table[["above", "above_low", "above_high"]] = _means_with_intervals(above)
        return table.assign(examples=(self.pairs > 0).sum(axis=0), pairs=self.pairs.sum(axis=0))

    def reach(self) -> int | None:
        """Return the first distance at which sentences are not more similar than any two of the text; None without one.

        There the 95 % interval of `above` reaches 0.
        """
        table = self.table()
        distances = table[(table["pairs of"] == A_DISTANCE) & (table["above_low"] <= 0)]
        return int(distances["from"].iloc[0]) if len(distances) else None

    def blocks(self) -> list[Block]:
        """Return the table, without the distances that only the CSV has."""
        rows = []
        for _, row in self.table().iterrows():
            name, first, last = row["pairs of"], row["from"], row["to"]
            if name == A_DISTANCE:
                if first == last and first not in _PRINTED_DISTANCES:
                    continue
                name = f"{first:,}" if first == last else f"{first:,}–{last:,}"
            gap = f"{row['above']:+.4f}{_half(row['above_low'], row['above_high'])}"
            cell = f"{row['similarity']:.4f}{_half(row['low'], row['high'])}"
            counts = f"{row['examples']:,}", f"{row['pairs']:,}"
            rows.append([name, cell, "" if name == ALL else gap, *counts])
        columns = ("distance", "mean cosine", "above the mean pair", "examples", "pairs")
        return [Block("", tuple(self.notes()), columns, "lrrrr", rows)]

    def near_minus_far(self, distance: int) -> _Floats:
        """Return the mean cosine of pairs up to `distance`, minus that of the others: [E], NaN without such pairs.

        `distance` has to be the last one of a bin.
        """
        is_distance = self.groups["pairs of"] == A_DISTANCE
        near = self.groups["to"] <= distance
        means = []
        for chosen in (is_distance & near, is_distance & ~near):
            means.append(
                _divide(self.sums[:, chosen].sum(axis=1), self.pairs[:, chosen].sum(axis=1))
            )
        return means[0] - means[1]

    def notes(self) -> list[str]:
        """Return lines about the examples, the columns and the reach of similarity."""
        reach = self.reach()
        if len(self.sums) == 1:
            extent = "one example does not show the reach"
        elif reach is None:
            extent = "above 0 at every distance"
        else:
            extent = f"from distance {reach} on not distinguishable from 0"
        lines = [
            f"{self.sample}; means over examples ± half the 95 % interval (bootstrap over examples)",
            f"above the mean pair: cosine minus that of any two sentences of the same example; {extent}",
        ]
        if self.too_short:
            left_out = format_count(self.too_short, "example")
            lines.append(f"{left_out} left out: fewer than two sentences")
        if self.num_cut:
            cut = format_count(self.num_cut, "sentence")
            lines.append(f"{cut} cut: longer than the encoder reads")
        return lines

    def csv(self, table: pd.DataFrame | None = None) -> str:
        """Return the whole table as CSV, with the name of the vectors."""
        return super().csv(self.table().assign(dataset=self.dataset, vectors=self.vectors))

    def pictures(self) -> dict[str, bytes]:
        """Draw the curve and the mean over all pairs; return "png" and "svg" → bytes."""
        return draw_series(_curve_figure(self), ("png", "svg"))


def _half(low: float, high: float) -> str:
    return f" ±{(high - low) / 2:.4f}" if np.isfinite(low) else ""


def _divide(sums: _Floats, pairs: _Ints) -> _Floats:
    """Return the means; NaN without pairs."""
    return np.asarray(sums / np.where(pairs > 0, pairs, np.nan))


def _means_with_intervals(values: _Floats) -> _Floats:
    """Return for each column its mean and interval, NaN for the interval of one value: [E, B] with NaN → [B, 3]."""
    intervals = np.full((values.shape[1], 2), np.nan)
    applies = ~np.isnan(values)
    # columns of the same examples are resampled together; one example has no spread
    for mask in np.unique(applies, axis=1).T:
        if mask.sum() > 1:
            columns = (applies == mask[:, None]).all(axis=0)
            same = values[mask][:, columns]
            intervals[columns] = bootstrap_intervals(same, MEAN_RESAMPLES)
    return np.column_stack([np.nanmean(values, axis=0), intervals])


# Begin to read here: the command and the papers call it.
def analyze_locality(
    dataset: DatasetSettings, settings: LocalitySettings, results: Results | None = None
) -> Locality:
    """Compare all pairs of sentences of each source; `results` is not used.

    Raises:
        UsageError: the encoder cannot be used.
        DataError: no source has two sentences, or a file is damaged.
    """
    vectors: SentenceVectors = TfIdf()
    if settings.encoder:
        pooling = None if settings.pooling == "auto" else settings.pooling
        vectors = SentenceEncoder(settings.encoder, "encoder", settings.device, pooling)
    return compare_sentences(sample_dataset(dataset, settings), vectors, settings.distance)


def compare_sentences(sampled: Sampled, vectors: SentenceVectors, distance: int = 50) -> Locality:
    """Compare all pairs of sentences of each source; distances up to `distance` have separate bins.

    Raises:
        DataError: no source has two sentences.
    """
    cosines, counts, too_short = [], [], 0  # per example, by distance
    within_sums, within_pairs = [], []
    for example in sampled.examples("comparing sentences"):
        ends = [0]  # of the documents
        texts: list[str] = []
        for document in example.documents:
            texts += [text for text in document.sentences() if text.strip()]
            ends.append(len(texts))
        if len(texts) < 2:
            too_short += 1
            continue
        matrix = vectors(texts)
        cosines.append(similarity_by_distance(matrix))
        counts.append(len(texts) - np.arange(len(texts)))
        documents = [matrix[first:end] for first, end in pairwise(ends)]
        within_sums.append(sum(similarity_by_distance(rows).sum() for rows in documents))
        within_pairs.append(sum(math.comb(rows.shape[0], 2) for rows in documents))
    if not cosines:
        problem = f"no example of split '{sampled.split.name}' has two sentences"
        raise DataError(f"{problem}: there is nothing to compare")
    edges = bins(distance, max(map(len, cosines)) - 1)
    within = np.array(within_sums), np.array(within_pairs)
    groups, sums, pairs = _group_pairs(
        _add_bins(cosines, edges), _add_bins(counts, edges), within, edges
    )
    parts = {"sentences": sentences.SPLITTER_NAME, "distance": distance}
    return Locality(
        dataset=sampled.dataset,
        sample=sampled.describe(),
        vectors=vectors.name,
        signature=sampled.signature(
            "locality", LOADING_VERSION, vectors=vectors.signature, **parts
        ),
        groups=pd.DataFrame(groups, columns=["pairs of", "from", "to"]),
        sums=sums,
        pairs=pairs.astype(np.int64),
        too_short=too_short,
        num_cut=vectors.num_cut,
    )


def _group_pairs(
    sums: _Floats, pairs: _Floats, within: tuple[_Floats, _Ints], edges: _Ints
) -> tuple[list[tuple[str, int, int]], _Floats, _Floats]:
    """Return (name, first distance, last distance) of each group, and sums and numbers of pairs, [E, groups].

    The groups are the bins, all pairs and, if there are pairs of two documents, those within and across documents.
    """
    groups = [(A_DISTANCE, first, end - 1) for first, end in pairwise(edges.tolist())]
    totals = sums.sum(axis=1), pairs.sum(axis=1)
    across = totals[0] - within[0], totals[1] - within[1]
    further = {ALL: totals}
    if across[1].any():
        further |= {WITHIN: within, ACROSS: across}
    for name, (group_sums, group_pairs) in further.items():
        if group_pairs.any():
            groups.append((name, 1, int(edges[-1]) - 1))
            sums, pairs = np.c_[sums, group_sums], np.c_[pairs, group_pairs]
    return groups, sums, pairs


def similarity_by_distance(vectors: Any) -> _Floats:
    """Return the sum of the cosines of all pairs of rows at each distance: [N], indexed by distance.

    The value at distance 0 is 0. Memory is bounded, because rows are multiplied in batches. The rows of `vectors`, an
    array or a sparse matrix, have length 1, or are zeros.
    """
    size = vectors.shape[0]
    sums = np.zeros(size)
    start = 0
    # a batch of rows is multiplied with all later rows
    while start < size:
        rows = max(1, min(size - start, _COSINES_AT_ONCE // (size - start)))
        product = vectors[start : start + rows] @ vectors[start:].T  # [rows, size − start]
        if isinstance(product, np.ndarray):
            distances = (np.arange(size - start) - np.arange(rows)[:, None]).ravel()
            cosines = product.ravel()
        else:
            product = product.tocoo()
            cosines, distances = product.data, product.col - product.row
        # each pair counts once
        is_later = distances > 0
        sums += np.bincount(distances[is_later], cosines[is_later], minlength=size)
        start += rows
    return sums


def bins(distance: int, longest: int) -> _Ints:
    """Return the first distance of each bin, then the first distance after the last bin.

    Distances up to `distance` have separate bins; later bins end at `_WIDENING` times the end of the one before.
    """
    edges = list(range(1, min(distance, longest) + 1))
    last = edges[-1]
    while last < longest:
        edges.append(last + 1)
        last = max(last + 1, int(last * _WIDENING))
    return np.array([*edges, longest + 1], np.int64)


def _add_bins(by_distance: Sequence[NDArray[Any]], edges: _Ints) -> _Floats:
    """Return the sum of the values in each bin, [E, bins]."""
    table = np.zeros((len(by_distance), edges[-1]))
    for row, values in zip(table, by_distance, strict=True):
        row[: len(values)] = values
    return np.add.reduceat(table, edges[:-1], axis=1)


_FEWEST_EXAMPLES = 5  # examples; points of fewer are not drawn, unless there are fewer in all
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)


def _curve_figure(result: Locality) -> SeriesFigure:
    table = result.table()
    (mean,) = table[table["pairs of"] == ALL]["similarity"]
    enough = table["examples"] >= min(_FEWEST_EXAMPLES, len(result.sums))
    curve = table[(table["pairs of"] == A_DISTANCE) & enough]
    middles = np.log2(curve["from"] * curve["to"]) / 2  # on an axis of ratios
    numbers = map(Estimate._make, curve[["similarity", "low", "high"]].to_numpy().tolist())
    points = dict(zip(middles.tolist(), numbers, strict=True))
    last = max(1.0, *points)
    ticks = {math.log2(tick): f"{tick:,}" for tick in _TICKS if math.log2(tick) <= last}
    unit = "distance of the two sentences, in sentences (1: neighbours)"
    levels = {f"all pairs {mean:.3f}": mean}
    panel = Panel("", unit, ticks, [Series("by distance", "", points)], levels)
    caption = (
        f"{result.sample}. Band: 95 % interval over examples. "
        f"Distances of fewer than {_FEWEST_EXAMPLES} examples: CSV only."
    )
    return SeriesFigure(
        f"{result.dataset}: similarity of sentences by distance ({result.vectors})",
        [PanelRow(f"mean cosine ({result.vectors})", [panel])],
        [caption],
    )
