"""Computes the similarity of two sentences of a source by their distance (PageSum, Figure 1).

    source --SentenceVectors--> [N, width] --similarity_by_distance--> sums and counts of cosines, one column per bin

Sentence vectors have length 1, so that their dot products are cosines: tf-idf, or those of a sentence encoder. A
distance is a difference of positions; it is 1 for neighbours. Each example's mean counts once. N is the number of
sentences in a source, E the number of examples, B the number of bins.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from longsumbench import sentences
from longsumbench.analysis.sampled import AnalysisResult, Sampled, SampleSettings, sample_dataset
from longsumbench.core import BatchSize, Between, DatasetSettings, Device, OneOf, Text, setting
from longsumbench.core.versions import READING_VERSION
from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import format_count
from longsumbench.metrics.aggregate import MEAN_RESAMPLES, Estimate
from longsumbench.metrics.statistics import bootstrap_intervals
from longsumbench.modeling import checkpoints
from longsumbench.modeling.ranking import tfidf
from longsumbench.render.figures import (
    COLOURS,
    Level,
    Panel,
    PanelLine,
    PanelRow,
    Series,
    draw_panels,
)
from longsumbench.render.tables import Block
from longsumbench.runs.results import Results

_ENCODER_SETTING = "encoder"
POOLINGS = ("mean", "cls", "max")
_ENCODER_MODULES = {
    "Transformer",
    "Pooling",
    "Normalize",
}  # of sentence-transformers; others change the vectors
_POOLING_FILES = "*_Pooling/config.json"  # in addition to the files that every model has


class SentenceVectors(Protocol):
    """Computes vectors of the sentences of one text."""

    name: str  # for titles
    signature: str  # how the vectors are computed
    num_cut: int  # number of truncated sentences so far

    def __call__(self, sentences: Sequence[str]) -> Any:
        """Return an array or a sparse matrix, [sentences, width], with rows of length 1 or of zeros."""


class TfIdf:
    """tf-idf vectors, with the sentences of the text as documents; a sentence without terms is a row of zeros."""

    name = "tf-idf"
    signature = "tfidf"
    num_cut = 0

    def __call__(self, sentences: Sequence[str]) -> Any:
        """Return a sparse matrix."""
        vectors = tfidf(sentences)
        return (
            normalize(vectors) if vectors.nnz else vectors
        )  # the library refuses a matrix without columns


class Encoder:
    """A pretrained encoder, with its states pooled over a sentence's tokens.

    Args:
        model: folder, or name on the hub.
        pooling: "mean", "cls" or "max"; "auto": from its sentence-transformers configuration, "mean" without one.
        batch_size: number of sentences per batch.
        device: "auto", "cpu" or "cuda".

    Raises:
        UsageError: there is no such model, it cannot be read, or its configuration is not supported.
        EnvironmentProblem: the model cannot be downloaded, or there is no GPU for device "cuda".
    """

    def __init__(
        self, model: str, pooling: str = "auto", batch_size: int = 64, device: str = "auto"
    ) -> None:
        from longsumbench.modeling.nn.device import choose_device

        folder = checkpoints.model_folder(model, _ENCODER_SETTING, (_POOLING_FILES,))
        self._override = override = f"{_ENCODER_SETTING}={folder}"
        self._batch_size, self.num_cut = batch_size, 0
        self._tokenizer, network = checkpoints.load_encoder(folder, override)
        with checkpoints.reading_checkpoint(override):
            self._pooling = _pooling(folder) if pooling == "auto" else pooling
            encoder = network.get_encoder() if network.config.is_encoder_decoder else network
            self._network: Any = encoder.to(choose_device(device)).eval()
            limits = [
                self._tokenizer.model_max_length,
                getattr(network.config, "max_position_embeddings", None),
            ]
            reading = _read_model_json(folder / "sentence_bert_config.json")
            self._longest = min(
                limit for limit in (*limits, reading.get("max_seq_length")) if limit
            )
            self._lower = bool(reading.get("do_lower_case"))
            # a text longer than most encoders read: some damaged weights show only in use
            self._encode(["a sentence " * 300])
        self.num_cut = 0  # do not count the test text
        self.name = Path(model).name
        self.signature = (
            f"{checkpoints.model_signature(model, _ENCODER_SETTING)}|pooling:{self._pooling}"
        )

    def __call__(self, sentences: Sequence[str]) -> Any:
        """Return an array; sentences of similar length are encoded together to reduce padding."""
        texts = [sentence.lower() if self._lower else sentence for sentence in sentences]
        order = sorted(range(len(texts)), key=lambda place: (-len(texts[place]), place))
        vectors: list[Any] = [None] * len(texts)
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            for place, vector in zip(
                batch, self._encode([texts[place] for place in batch]), strict=True
            ):
                vectors[place] = vector
        return normalize(np.array(vectors, np.float64)) if vectors else np.zeros((0, 1))

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return [texts, width]."""
        import torch

        cut = {
            "truncation": True,
            "max_length": self._longest,
            "padding": True,
            "return_tensors": "pt",
        }
        tokens = self._tokenizer(list(texts), **cut).to(self._network.device)
        real = tokens["attention_mask"].bool()
        full = [
            text
            for text, length in zip(texts, real.sum(dim=1).tolist(), strict=True)
            if length == self._longest
        ]
        token_ids = self._tokenizer(full, verbose=False)["input_ids"] if full else []
        self.num_cut += sum(len(ids) > self._longest for ids in token_ids)
        with torch.inference_mode():
            states = self._network(**tokens).last_hidden_state.double()  # [texts, tokens, width]
            if self._pooling == "cls":
                pooled = states[:, 0]
            elif self._pooling == "max":
                pooled = states.masked_fill(~real[..., None], -torch.inf).amax(dim=1)
            else:
                pooled = (states * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)
        vectors: NDArray[np.float64] = pooled.cpu().numpy()
        checkpoints.check_finite(vectors, self._override)
        return vectors


def _pooling(folder: Path) -> str:
    """Return the pooling of a model's sentence-transformers configuration; "mean" without one."""
    if not (folder / "modules.json").is_file():
        return "mean"
    modules = {
        str(module.get("type")).rpartition(".")[2]: str(module.get("path"))
        for module in _read_model_json(folder / "modules.json")
    }
    config = (
        _read_model_json(folder / modules.get("Pooling", "") / "config.json")
        if "Pooling" in modules
        else {}
    )
    modes = config.get("pooling_mode") or [
        key for key, value in config.items() if "pooling_mode_" in key and value
    ]
    ways = {
        "pooling_mode_mean_tokens": "mean",
        "pooling_mode_cls_token": "cls",
        "pooling_mode_max_tokens": "max",
    }
    poolings = [
        ways.get(mode, mode) for mode in ([modes] if isinstance(modes, str) else modes)
    ] or ["mean"]
    prompt = _read_model_json(folder / "config_sentence_transformers.json").get(
        "default_prompt_name"
    )
    unsupported = sorted(modules.keys() - _ENCODER_MODULES) + [
        name for name in poolings if name not in POOLINGS
    ]
    unsupported += [f"prompt '{prompt}'"] if prompt else []
    if unsupported or len(poolings) > 1:
        names = ", ".join(unsupported or poolings)
        advice = "use another encoder, or pooling=mean to ignore its configuration"
        raise UsageError(
            f"{_ENCODER_SETTING}={folder}: {names} of sentence-transformers is not supported: {advice}"
        )
    return poolings[0]


def _read_model_json(path: Path) -> Any:
    """Return the content of a JSON file; empty if there is no such file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


_WIDENING = 1.4  # ratio of the last distances of two consecutive bins
_COSINES_AT_ONCE = 1 << 21  # in memory, of 8 bytes each
_PRINTED_DISTANCES = (
    1,
    2,
    3,
    4,
    5,
    7,
    10,
    15,
    20,
    30,
    40,
    50,
    70,
    100,
)  # distances on the terminal; the CSV has all
WITHIN, ACROSS, ALL = "within a document", "across documents", "all pairs"

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


_Pooling = Annotated[str, OneOf("auto", *POOLINGS)]
Distance = Annotated[int, Between(1, 10**6)]


@dataclass
class LocalitySettings(SampleSettings):
    """Settings of `longsumbench analyze locality`."""

    encoder: Text | None = setting(None, "folder or hub name of a sentence encoder; null: tf-idf")
    pooling: _Pooling = setting(
        "auto", "pooling of its states: mean | cls | max; auto: from its configuration, or mean"
    )
    batch_size: BatchSize = setting(64, "encoded together", "sentences")
    device: Device = setting("auto", "auto | cpu | cuda | mps")
    distance: Distance = setting(
        50, "greater distances share bins of increasing width", "sentences"
    )


@dataclass(frozen=True)
class Locality(AnalysisResult):
    """The result of `longsumbench analyze locality`."""

    analysis: ClassVar[str] = "locality"
    vectors: str  # name of the sentence vectors
    edges: (
        _Ints  # [B + 1], the first distance of each bin, then the first distance after the last bin
    )
    sums: _Floats  # [E, B], sums of cosines
    pairs: _Ints  # [E, B], numbers of pairs
    mean_of_all: _Floats  # [E], mean cosine of all pairs of an example
    # name → [E, 2], the sum over pairs within a document, or across two, and their number; empty if no example has
    # several documents
    by_document: dict[str, _Floats]
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
        columns = [
            "pairs of",
            "from",
            "to",
            "similarity",
            "low",
            "high",
            "above",
            "above_low",
            "above_high",
        ]
        rows: list[tuple[Any, ...]] = []
        numbers = self._numbers(self.sums, self.pairs)
        for first, end, row in zip(self.edges[:-1], self.edges[1:], numbers, strict=True):
            rows.append(("a distance", first, end - 1, *row))
        all_pairs = self._numbers(
            self.mean_of_all[:, None], np.ones((len(self.mean_of_all), 1), np.int64)
        )[0]
        total = int(self.pairs.sum())
        rows.append((ALL, 1, self.edges[-1] - 1, *all_pairs[:-1], total))
        for name, sums in self.by_document.items():
            rows.append(
                (
                    name,
                    1,
                    self.edges[-1] - 1,
                    *self._numbers(sums[:, :1], sums[:, 1:].astype(np.int64))[0],
                )
            )
        return pd.DataFrame(rows, columns=[*columns, "examples", "pairs"])

    def _numbers(self, sums: _Floats, pairs: _Ints) -> list[tuple[Any, ...]]:
        """Return for each column its mean, interval, excess over all pairs, interval, examples and pairs."""
        means = np.where(pairs > 0, sums / np.maximum(pairs, 1), np.nan)
        above = means - self.mean_of_all[:, None]
        intervals, intervals_above = _intervals(means), _intervals(above)
        rows = []
        for column, applies in enumerate((pairs > 0).T):
            mean, excess = means[applies, column].mean(), above[applies, column].mean()
            row = (mean, *intervals[column], excess, *intervals_above[column])
            rows.append((*map(float, row), int(applies.sum()), int(pairs[:, column].sum())))
        return rows

    def reach(self) -> int | None:
        """Return the first distance at which sentences are not more similar than any two of the text; None without one.

        There the 95 % interval of `above` reaches 0.
        """
        table = self.table()
        distances = table[(table["pairs of"] == "a distance") & (table["above_low"] <= 0)]
        return int(distances["from"].iloc[0]) if len(distances) else None

    def blocks(self) -> list[Block]:
        """Return the table, without the distances that only the CSV has."""
        rows = []
        for _, row in self.table().iterrows():
            if (
                row["pairs of"] != "a distance"
                or row["from"] in _PRINTED_DISTANCES
                or row["from"] < row["to"]
            ):
                span = (
                    f"{row['from']:,}"
                    if row["from"] == row["to"]
                    else f"{row['from']:,}–{row['to']:,}"
                )
                name = span if row["pairs of"] == "a distance" else row["pairs of"]
                gap = (
                    f"{row['above']:+.4f}{_half(row['above_low'], row['above_high'])}"
                    if name != ALL
                    else ""
                )
                cell = f"{row['similarity']:.4f}{_half(row['low'], row['high'])}"
                rows.append([name, cell, gap, f"{row['examples']:,}", f"{row['pairs']:,}"])
        columns = ("distance", "mean cosine", "above the mean pair", "examples", "pairs")
        return [Block("", tuple(self.notes()), columns, "lrrrr", rows)]

    def near_minus_far(self, distance: int) -> _Floats:
        """Return the mean cosine of pairs up to `distance`, minus that of the others: [E], NaN without such pairs.

        `distance` has to be the last one of a bin.
        """
        num_near_bins = int(np.searchsorted(self.edges, distance, side="right"))
        means = []
        for part in (slice(None, num_near_bins), slice(num_near_bins, None)):
            pairs = self.pairs[:, part].sum(axis=1)
            means.append(
                np.where(pairs > 0, self.sums[:, part].sum(axis=1) / np.maximum(pairs, 1), np.nan)
            )
        return means[0] - means[1]

    def notes(self) -> list[str]:
        """Return lines about the examples, the columns and the reach of similarity."""
        lines = [
            f"{self.sample}; means over examples ± half the 95 % interval (bootstrap over examples)"
        ]
        reach = self.reach()
        extent = (
            "above 0 at every distance"
            if reach is None
            else f"from distance {reach} on not distinguishable from 0"
        )
        extent = extent if len(self.sums) > 1 else "one example does not show the reach"
        lines.append(
            f"above the mean pair: cosine minus that of any two sentences of the same example; {extent}"
        )
        if self.too_short:
            lines.append(
                f"{format_count(self.too_short, 'example')} left out: fewer than two sentences"
            )
        if self.num_cut:
            lines.append(
                f"{format_count(self.num_cut, 'sentence')} cut: longer than the encoder reads"
            )
        return lines

    def csv(self, table: pd.DataFrame | None = None) -> str:
        """Return the whole table as CSV, with the name of the vectors."""
        return super().csv(self.table().assign(dataset=self.dataset, vectors=self.vectors))

    def pictures(self) -> dict[str, bytes]:
        """Draw the curve and the mean over all pairs; return "png" and "svg" → bytes."""
        return _draw_curve(self)


def _half(low: float, high: float) -> str:
    return f" ±{(high - low) / 2:.4f}" if np.isfinite(low) else ""


def _intervals(values: _Floats) -> list[tuple[float, float]]:
    """Return the interval of each column's mean, NaN for a column with one value; `values` is [E, B] with NaN."""
    intervals: list[tuple[float, float]] = [(np.nan, np.nan)] * values.shape[1]
    applies = ~np.isnan(values)
    masks = np.unique(applies, axis=1).T  # columns of the same examples are resampled together
    for mask in masks[masks.sum(axis=1) > 1]:  # one example has no spread
        columns = np.flatnonzero((applies == mask[:, None]).all(axis=0))
        bounds = bootstrap_intervals(values[np.ix_(mask, columns)], MEAN_RESAMPLES, seed=1)
        for column, (low, high) in zip(columns.tolist(), bounds.tolist(), strict=True):
            intervals[column] = low, high
    return intervals


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
        vectors = Encoder(settings.encoder, settings.pooling, settings.batch_size, settings.device)
    return compare_sentences(sample_dataset(dataset, settings), vectors, settings.distance)


def compare_sentences(sampled: Sampled, vectors: SentenceVectors, distance: int = 50) -> Locality:
    """Compare all pairs of sentences of each source; distances up to `distance` have separate bins.

    Raises:
        DataError: no source has two sentences.
    """
    sums, counts, too_short = [], [], 0  # per example, by distance
    documents: list[_Floats] = []
    for example in sampled.examples("comparing sentences"):
        texts = [text for text in example.sentences() if text.strip()]
        if len(texts) < 2:
            too_short += 1
            continue
        matrix = vectors(texts)
        sums.append(similarity_by_distance(matrix))
        counts.append(len(texts) - np.arange(len(texts)))
        sizes = [
            sum(bool(text.strip()) for text in document.sentences())
            for document in example.documents
        ]
        documents.append(_sum_within_documents(matrix, sizes))
    if not sums:
        raise DataError(
            f"no example of split '{sampled.split.name}' has two sentences: there is nothing to compare"
        )
    edges = bins(distance, max(map(len, sums)) - 1)
    num_pairs = np.array([_binned(values, edges) for values in counts]).astype(np.int64)
    totals, pairs = np.array([values[1:].sum() for values in sums]), num_pairs.sum(axis=1)
    parts = {
        "vectors": vectors.signature,
        "sentences": sentences.SPLITTER_NAME,
        "distance": distance,
    }
    return Locality(
        dataset=sampled.dataset,
        sample=sampled.describe(),
        vectors=vectors.name,
        signature=sampled.signature("locality", READING_VERSION, **parts),
        edges=edges,
        sums=np.array([_binned(values, edges) for values in sums]),
        pairs=num_pairs,
        mean_of_all=totals / pairs,
        by_document=_by_document(np.array(documents), totals, pairs),
        too_short=too_short,
        num_cut=vectors.num_cut,
    )


def similarity_by_distance(vectors: Any) -> _Floats:
    """Return the sum of the cosines of all pairs of rows at each distance: [N], indexed by distance.

    The value at distance 0 is 0. Memory is bounded, because rows are multiplied in batches. The rows of `vectors`, an
    array or a sparse matrix, have length 1, or are zeros.
    """
    size = vectors.shape[0]
    sums = np.zeros(size)
    start = 0
    while start < size:
        rows = max(1, min(size - start, _COSINES_AT_ONCE // (size - start)))
        product = vectors[start : start + rows] @ vectors[start:].T  # [rows, size − start]
        if isinstance(product, np.ndarray):
            distances = (np.arange(size - start) - np.arange(rows)[:, None]).ravel()
            cosines = product.ravel()
        else:
            product = product.tocoo()
            cosines, distances = product.data, product.col - product.row
        is_later = distances > 0  # counts each pair once
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


def _binned(by_distance: NDArray[Any], edges: _Ints) -> _Floats:
    """Return the sum of the values in each bin."""
    cumulated = np.concatenate([[0.0], np.cumsum(by_distance, dtype=np.float64)])
    ends = np.minimum(edges, len(by_distance))
    return np.where(ends[:-1] < ends[1:], cumulated[ends[1:]] - cumulated[ends[:-1]], 0.0)


def _sum_within_documents(vectors: Any, sizes: Sequence[int]) -> _Floats:
    """Return the sum of the cosines of pairs within a document, Σ (|Σ v|² − Σ |v|²) / 2, and the number of pairs."""
    ends = np.cumsum([0, *sizes])
    total, count = 0.0, 0
    for first, end in pairwise(ends.tolist()):
        rows = vectors[first:end]
        squares = rows**2 if isinstance(rows, np.ndarray) else rows.multiply(rows)
        total += float((np.asarray(rows.sum(axis=0)) ** 2).sum() - squares.sum()) / 2
        count += (end - first) * (end - first - 1) // 2
    return np.array([total, count])


def _by_document(within: _Floats, totals: _Floats, pairs: _Ints) -> dict[str, _Floats]:
    """Return the sums and numbers of pairs within and across documents, [E, 2] each; empty without the latter."""
    across = np.stack([totals - within[:, 0], pairs - within[:, 1]], axis=1)
    by_name = {WITHIN: within, ACROSS: across} if across[:, 1].any() else {}
    return {name: sums for name, sums in by_name.items() if sums[:, 1].any()}


_FEWEST_EXAMPLES = 5  # examples; points of fewer are not drawn, unless there are fewer in all
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)


def _draw_curve(result: Locality) -> dict[str, bytes]:
    table = result.table()
    (mean,) = table[table["pairs of"] == ALL]["similarity"]
    curve = table[
        (table["pairs of"] == "a distance")
        & (table["examples"] >= min(_FEWEST_EXAMPLES, len(result.sums)))
    ]
    places = np.log(curve["from"] * curve["to"]) / 2  # the middle, on an axis of ratios
    numbers = map(Estimate._make, curve[["similarity", "low", "high"]].to_numpy().tolist())
    last = max(2.0, math.exp(max(places, default=0.0)))
    ticks = {math.log(tick): f"{tick:,}" for tick in _TICKS if tick <= last}
    ends = math.log(0.9), math.log(last * 1.12)
    unit = "distance of the two sentences, in sentences (1: neighbours)"
    panel = Panel("", unit, ends, ticks, [Level(f"all pairs {mean:.3f}", mean)])
    style = {"color": COLOURS[0], "marker": "o", "markersize": 3}
    line = PanelLine("by distance", style, [Series(dict(zip(places, numbers, strict=True)))])
    heading = f"{result.dataset}: similarity of sentences by distance ({result.vectors})"
    caption = f"{result.sample}. Band: 95 % interval over examples."
    caption += f" Distances of fewer than {_FEWEST_EXAMPLES} examples: CSV only."
    row = PanelRow(f"mean cosine ({result.vectors})", [panel], [line])
    return draw_panels(heading, [caption], [row], ("png", "svg"))
