"""Finds the two source sentences that a reference sentence fuses, and their distance (PageSum, §5.6, Figure 4).

    source, reference --best_pairs, fused--> Fusions, each with its bar
    outputs of runs   --stated_shares------> which of the two sources each output states (PageSum, Table 8)

A distance is a share of the source's sentences. h is a reference sentence, s1 and s2 the source sentences of its pair.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench import sentences
from longsumbench.core import (
    Between,
    DatasetSettings,
    Example,
    OneOf,
    Percentage,
    Scoring,
    Text,
    setting,
)
from longsumbench.core.versions import LOADING_VERSION
from longsumbench.errors import DataError
from longsumbench.formatting import format_count
from longsumbench.metrics.aggregate import MEAN_RESAMPLES, Estimate
from longsumbench.metrics.statistics import bootstrap_shares, resampled_means
from longsumbench.rouge.scorer import IMPLEMENTATION, SuiteScorer
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import describe_run
from longsumbench.runs.scoring import warn_about_dropped_letters
from longsumbench.sentences import split_summary
from longsumbench.views.series import Panel, PanelRow, Series, SeriesFigure, draw_series
from longsumbench.views.tables import Block
from longsumbench_reproduction.analysis.sampled import (
    AnalysisResult,
    Outputs,
    Sampled,
    SampleSettings,
    sample_dataset,
)
from longsumbench_reproduction.analysis.source_pairs import best_pairs

# What an output states: (the first source sentence, the second) → name
_STATED_SOURCES = {
    (True, True): "both",
    (True, False): "first",
    (False, True): "second",
    (False, False): "neither",
}
_SHARES = (*_STATED_SOURCES.values(), "both_low", "both_high")
_SHARES += ("joined", "recall", "recall_low", "recall_high")

_Array = NDArray[np.float64]
_Words = Sequence[str]
RougeType = Annotated[str, OneOf("1", "2", "L")]
Bins = Annotated[int, Between(1, 1_000)]


@dataclass
class FusionSettings(SampleSettings):
    """Settings of `longsumbench analyze fusion`."""

    run: Text = setting(
        "", "finished runs on the split, separated by commas: which sources do outputs state?"
    )
    rouge: RougeType = setting(
        "1", "1 | 2 | L: type of the recalls that find pairs and closest sentences"
    )
    overlap: Percentage = setting(
        20.0, "t1: least recall of h by each sentence alone", "percent", "PageSum, Eq. 15"
    )
    rise: Percentage = setting(
        10.0, "t2: least gain of the pair's recall", "percent", "PageSum, Eq. 16"
    )
    bins: Bins = setting(10, "bars of equal width, from distance 0 to 1", "bars")
    appears: Percentage = setting(
        50.0, "least share of h's words from one source, for an output to state it", "percent"
    )
    score: Scoring = field(default_factory=Scoring)

    @property
    def kind(self) -> str:
        """Type of ROUGE: "rouge1", "rouge2" or "rougeL"."""
        return f"rouge{self.rouge}"


class StatedShares(msgspec.Struct, frozen=True, rename={"stated_sources": "says"}):
    """The parts of a fusion sentence that a run's output states.

    Attributes:
        recall: ROUGE recall of h by the whole output, 0–1.
        closest: the output's sentence with the highest ROUGE F against h; empty for an empty output.
        closest_recall: ROUGE recall of h by `closest`, 0–1.
        parts: for s1 and s2, the greatest share, 0–1, of h's words from this source only in one output sentence.
        stated_sources: "both", "first", "second" or "neither": the sources with at least `appears` of these words.
        joined: whether one sentence, the closest, has enough words of both.
    """

    run_id: str
    recall: float
    closest: str
    closest_recall: float
    parts: tuple[float, float]
    stated_sources: str
    joined: bool


# Attribute → key in fusion-pairs.jsonl
_KEYS = {
    "distance_bin": "bar",
    "reference_index": "place",
    "reference_sentence": "summary",
    "source_indices": "numbers",
    "num_source_sentences": "of",
}


class Fusion(msgspec.Struct, frozen=True, rename=_KEYS):
    """A reference sentence that fuses two source sentences.

    Attributes:
        distance_bin: bin of the distance, from 0.
        distance: of s1 and s2, as a share of the source's sentences.
        reference_index: index of h in the reference, from 1.
        reference_sentence: h.
        source_indices: those of s1 and s2 in the source, from 1, across documents.
        documents: numbers of the documents with s1 and s2, from 1.
        sources: s1 and s2.
        score: ROUGE recall of h by both together, 0–1.
        alone: ROUGE recall of h by s1 and by s2, 0–1.
        outputs: what each run states of it.
    """

    id: str
    distance_bin: int
    distance: float
    reference_index: int
    reference_sentence: str
    source_indices: tuple[int, int]
    num_source_sentences: int
    documents: tuple[int, int]
    sources: tuple[str, str]
    score: float
    alone: tuple[float, float]
    outputs: tuple[StatedShares, ...] = ()

    @property
    def rise(self) -> float:
        """Gain in recall of the pair over the better source sentence alone, 0–1."""
        return self.score - max(self.alone)


@dataclass(frozen=True)
class FusionResult(AnalysisResult):
    """The result of `longsumbench analyze fusion`."""

    analysis: ClassVar[str] = "fusion"
    settings: FusionSettings
    ids: tuple[str, ...]  # [E], ids of the examples
    fusions: tuple[Fusion, ...]  # all fusion sentences, in the order of the data
    num_sentences: int  # number of reference sentences
    runs: dict[str, str]  # run id → label
    # number of examples left out: no reference, or fewer than two source sentences
    without: int = 0

    @property
    def title(self) -> str:
        """Heading of the tables."""
        return f"Source sentences fused in a reference sentence, by their distance: {self.dataset}"

    def bars(self) -> pd.DataFrame:
        """Return one row per bar: the number of pairs, their share of all, 0–100, and the share by chance.

        `chance` is for two different sentences drawn at random from the source of each pair.
        """
        bins, total = self.settings.bins, max(1, len(self.fusions))
        counts = np.zeros((len(self.ids), bins))
        chance = np.zeros(bins)
        for fusion in self.fusions:
            counts[self.ids.index(fusion.id), fusion.distance_bin] += 1
            chance += chances(fusion.num_source_sentences, bins) / total
        low, high = 100 * ratio_intervals(counts, counts.sum(axis=1, keepdims=True))
        pairs = counts.sum(axis=0)
        table = {
            "from": np.arange(bins) / bins,
            "to": np.arange(1, bins + 1) / bins,
            "pairs": pairs.astype(int),
            "share": 100 * pairs / total,
            "low": low,
            "high": high,
            "chance": 100 * chance,
            "examples": (counts > 0).sum(axis=0),
        }
        return pd.DataFrame(table)

    def by_run(self) -> pd.DataFrame:
        """Return one row per run and bar, and one for all bars: the shares of stated sources, 0–100."""
        rows = []
        bins = self.settings.bins
        for index, (run_id, name) in enumerate(self.runs.items() if self.fusions else ()):
            stated = pd.DataFrame(
                [msgspec.structs.asdict(fusion.outputs[index]) for fusion in self.fusions]
            )
            stated["id"] = [fusion.id for fusion in self.fusions]
            stated["bar"] = [fusion.distance_bin for fusion in self.fusions]
            for says in _STATED_SOURCES.values():
                stated[says] = stated["stated_sources"] == says
            # the last row of a run is of all bars
            for bar, bar_rows in [*stated.groupby("bar"), ("all", stated)]:
                start, end = (0, bins) if bar == "all" else (int(bar), int(bar) + 1)
                row: dict[str, Any] = {"run_id": run_id, "run": name, "bar": str(bar)}
                row |= {"from": start / bins, "to": end / bins, "n": len(bar_rows)}
                rows.append(row | _run_shares(bar_rows))
        return pd.DataFrame(rows)

    def of_bar(self, bar: int) -> list[Fusion]:
        """Return the fusion sentences of a bar, the greatest rise first."""
        fusions = [fusion for fusion in self.fusions if fusion.distance_bin == bar]
        return sorted(fusions, key=lambda fusion: -fusion.rise)

    def notes(self) -> list[str]:
        """Return lines about the examples, the number of fusions and their distances."""
        num_fusions, settings = len(self.fusions), self.settings
        share = 100 * num_fusions / max(1, self.num_sentences)
        lines = [
            f"{self.sample}: {num_fusions:,} of {self.num_sentences:,} reference sentences "
            f"({share:.1f} %) fuse two source sentences (ROUGE-{settings.rouge} recall: each alone "
            f"above {settings.overlap:g}, both together by more than {settings.rise:g} above each)"
        ]
        if num_fusions:
            distances = np.array([fusion.distance for fusion in self.fusions])
            near, median = 100 * np.mean(distances < 0.1), 100 * np.median(distances)
            chance = np.mean(
                [chances(fusion.num_source_sentences, 10)[0] for fusion in self.fusions]
            )
            lines.append(
                f"{near:.1f} % of the pairs are nearer than a tenth of the source ({100 * chance:.1f} % by "
                f"chance); the median distance is {median:.1f} % of the source"
            )
            lines.append("The intervals are over examples; a share of one example has no interval")
        across = sum(fusion.documents[0] != fusion.documents[1] for fusion in self.fusions)
        if across:
            pairs = format_count(across, "pair")
            lines.append(f"{pairs} ({100 * across / num_fusions:.1f} %) of two documents")
        if self.without:
            left_out = format_count(self.without, "example")
            lines.append(f"{left_out} left out: no reference, or fewer than two source sentences")
        return lines

    def blocks(self) -> list[Block]:
        """Return the table of the bars, and one for each run."""
        rows = []
        for _, bar in self.bars().iterrows():
            counts = f"{int(bar['pairs']):,}", format_share_interval(bar, "share", "")
            rows.append([_format_distances(bar), *counts, f"{bar['chance']:.1f}"])
        view = ("distance", "pairs", "% of pairs (95 %)", "% by chance")
        blocks = [Block("", tuple(self.notes()), view, "lrrr", rows)]
        columns = (
            *("distance", "n", "both (95 %)", "joined"),
            *("first only", "second only", "neither", "recall"),
        )
        notes: tuple[str, ...] = (
            "An output says a source if one of its sentences has "
            f"{self.settings.appears:g} % or more of the fusion sentence's words from this source only. joined: the "
            "output sentence closest to the fusion sentence says both. recall: ROUGE recall of the fusion sentence "
            "by the whole output",
        )
        table = self.by_run()
        for run_id, name in self.runs.items():
            cells = [_run_cells(row) for _, row in table.iterrows() if row["run_id"] == run_id]
            blocks.append(Block(name, notes, columns, "lrrrrrrr", cells))
            notes = ()  # above the first run only
        return blocks

    def table(self) -> pd.DataFrame:
        """Return the numbers of the bars."""
        return self.bars()

    def pictures(self) -> dict[str, bytes]:
        """Draw the shares by distance; return "png" and "svg" → bytes."""
        return draw_series(_distances_figure(self), ("png", "svg"))

    def more_files(self) -> dict[str, str]:
        """Return all pairs as JSON lines, in the order of the data, and the table of the runs if there are any."""
        lines = msgspec.json.Encoder().encode_lines(self.fusions).decode()
        files = {"fusion-pairs.jsonl": lines}
        if self.runs:
            files["fusion-runs.csv"] = self.csv(self.by_run())
        return files


def _format_distances(row: Any) -> str:
    return f"{row['from']:g}–{row['to']:g}"


def _run_cells(row: Any) -> list[str]:
    span = "all" if row["bar"] == "all" else _format_distances(row)
    names = ("joined", "first", "second", "neither", "recall")
    shares = [f"{row[name]:.1f}" for name in names]
    return [span, f"{row['n']:,}", format_share_interval(row, "both", "both_"), *shares]


def format_share_interval(row: Any, name: str, bounds: str) -> str:
    """Format a share with its interval, if there is one (see `ratio_intervals`)."""
    low, high = row[f"{bounds}low"], row[f"{bounds}high"]
    interval = f" ({low:.1f}–{high:.1f})" if np.isfinite([low, high]).all() else ""
    return f"{row[name]:.1f}{interval}"


def _run_shares(stated: pd.DataFrame) -> dict[str, float]:
    """Return the shares of what an output states, with the intervals of "both" and "recall", 0–100."""
    means = stated[[*_STATED_SOURCES.values(), "joined", "recall"]].mean()
    shares = {name: 100 * float(mean) for name, mean in means.items()}
    by_example = stated.groupby("id", sort=False)
    counts = np.asarray(by_example.size(), np.float64)
    for name in ("both", "recall"):
        low, high = _interval(by_example[name].sum().to_numpy(np.float64), counts)
        shares |= {f"{name}_low": 100 * low, f"{name}_high": 100 * high}
    return {name: shares[name] for name in _SHARES}


def ratio_intervals(parts: _Array, wholes: _Array) -> _Array:
    """Return the 95 % interval of Σ parts / Σ wholes by column, [2, columns]; NaN if only one example counts."""
    if (wholes > 0).any(axis=1).sum() < 2:
        return np.full((2, parts.shape[1]), np.nan)
    columns = np.hstack([parts, np.broadcast_to(wholes, parts.shape)])
    above, below = np.split(resampled_means(columns, MEAN_RESAMPLES), 2, axis=1)
    with np.errstate(invalid="ignore"):
        return np.nanquantile(above / below, [0.025, 0.975], axis=0)


def _interval(parts: _Array, wholes: _Array) -> tuple[float, float]:
    """Return the 95 % interval of a share; the exact binomial one if all sentences are alike."""
    total, share = int(wholes.sum()), parts.sum() / wholes.sum()
    # a bootstrap of equal values has no width
    if share in (0, 1):
        return bootstrap_shares(np.full(total, share), MEAN_RESAMPLES)
    low, high = ratio_intervals(parts[:, None], wholes[:, None])[:, 0].tolist()
    return low, high


def chances(size: int, bins: int) -> _Array:
    """Return the probability of each bin for the distance of two random sentences in a source of `size` sentences."""
    distances = np.arange(1, size)
    pairs = np.bincount(distances * bins // size, size - distances, minlength=bins)
    return np.asarray(pairs / pairs.sum())


# Begin to read here: the command and the papers call it.
def analyze_fusion(
    dataset: DatasetSettings, settings: FusionSettings, results: Results | None = None
) -> FusionResult:
    """Find the fusion sentences of a dataset's references.

    Raises:
        UsageError: a run has read other texts.
        DataError: no example can be used, or a file is damaged.
    """
    return find_fusions(sample_dataset(dataset, settings, settings.run, results), settings)


def find_fusions(sampled: Sampled, settings: FusionSettings) -> FusionResult:
    """Find the fusion sentences of the sampled examples' first references.

    Raises:
        DataError: no example has a reference and two source sentences.
    """
    scorer = SuiteScorer(settings.score, kernels="auto" if sampled.runs else "python")
    warn_about_dropped_letters(settings.score, sampled.split)
    # an example counts if a pair is possible in it
    fusions, ids = list[Fusion](), list[str]()
    num_sentences = without = 0
    for example in sampled.examples("looking for fusions"):
        source = list(example.sentences())
        if len(source) < 2 or not any(example.references):
            without += 1
            continue
        ids.append(example.id)
        num_sentences += len(example.references[0])
        fusions += _find_example_fusions(example, source, sampled.runs, settings, scorer)
    if not ids:
        raise DataError(
            f"no example of split '{sampled.split.name}' has a reference and two source sentences: "
            "there is nothing to fuse"
        )
    return FusionResult(
        dataset=sampled.dataset,
        sample=sampled.describe(),
        signature=sampled.signature(
            "fusion",
            LOADING_VERSION,
            rouge=settings.rouge,
            overlap=settings.overlap,
            rise=settings.rise,
            appears=settings.appears,
            words=f"{IMPLEMENTATION},{scorer.mode},{scorer.stemmer},{scorer.tokenizer}",
            sentences=sentences.SPLITTER_NAME,
        ),
        settings=settings,
        ids=tuple(ids),
        fusions=tuple(fusions),
        num_sentences=num_sentences,
        runs={run.record.run_id: describe_run(run.record) for run in sampled.runs},
        without=without,
    )


def _find_example_fusions(
    example: Example,
    source: _Words,
    runs: Sequence[Outputs],
    settings: FusionSettings,
    scorer: SuiteScorer,
) -> Iterator[Fusion]:
    """Yield the fusion sentences of an example's first reference."""
    reference = example.references[0]
    words = [scorer.words(text) for text in source]
    reference_words = [scorer.words(text) for text in reference]
    documents: list[int] = []  # number of the document of each sentence
    for number, document in enumerate(example.documents, 1):
        documents += [number for _ in document.sentences()]
    for index, pair in enumerate(best_pairs(words, reference_words, settings.kind)):
        if not pair.fused(settings.overlap, settings.rise):
            continue
        # positions are printed from 1; both sentences may be of different documents
        first, second = pair.first, pair.second
        texts = reference_words[index], words[first], words[second]
        stated = []
        for run in runs:
            output = split_summary(run.summaries[example.id])
            stated.append(
                _stated(run.record.run_id, output, reference[index], texts, settings, scorer)
            )
        yield Fusion(
            id=example.id,
            distance_bin=(second - first) * settings.bins // len(source),
            distance=pair.distance,
            reference_index=index + 1,
            reference_sentence=reference[index],
            source_indices=(first + 1, second + 1),
            num_source_sentences=len(source),
            documents=(documents[first], documents[second]),
            sources=(source[first], source[second]),
            score=pair.score,
            alone=pair.alone,
            outputs=tuple(stated),
        )


def _stated(
    run_id: str,
    output: _Words,
    summary: str,
    texts: tuple[_Words, _Words, _Words],
    settings: FusionSettings,
    scorer: SuiteScorer,
) -> StatedShares:
    """Return what an output states of a fusion sentence; `texts` is the words of the sentence and its two sources."""
    recall = scorer.score(list(output), [[summary]])[settings.kind].recall
    if not output:
        return StatedShares(run_id, recall, "", 0.0, (0.0, 0.0), "neither", joined=False)
    scores = [scorer.score([sentence], [[summary]])[settings.kind] for sentence in output]
    best = max(range(len(output)), key=lambda index: scores[index].fmeasure)
    shares = [stated_shares(scorer.words(sentence), *texts) for sentence in output]
    parts = max(first for first, _ in shares), max(second for _, second in shares)
    enough = settings.appears / 100
    # one output sentence may state the first source and another one the second
    says = _STATED_SOURCES[parts[0] >= enough, parts[1] >= enough]
    joined = min(shares[best]) >= enough
    return StatedShares(run_id, recall, output[best], scores[best].recall, parts, says, joined)


def stated_shares(
    output: _Words, summary: _Words, first: _Words, second: _Words
) -> tuple[float, float]:
    """Return, for each source, the share of the words that it alone gives to a fusion sentence and that an output has.

    All arguments are words. A source's words are the multiset (summary ∩ source) − other source. The share is 1 if
    there are none.
    """
    shares = []
    for source, other_source in ((first, second), (second, first)):
        exclusive_words = (Counter(summary) & Counter(source)) - Counter(other_source)
        stated = exclusive_words & Counter(output)
        shares.append(stated.total() / exclusive_words.total() if exclusive_words else 1.0)
    return shares[0], shares[1]


def _distances_figure(result: FusionResult) -> SeriesFigure:
    """Return the shares of the pairs by distance, and the shares by chance."""
    shares, by_chance = {}, {}
    for row in result.bars().to_dict("records"):
        middle = (row["from"] + row["to"]) / 2
        shares[middle] = Estimate(row["share"], row["low"], row["high"])
        by_chance[middle] = Estimate(row["chance"], math.nan, math.nan)
    series = [
        Series("fused in summaries", "", shares),
        Series("by chance", "", by_chance, grey=True),
    ]
    ticks = {tenth / 10: f"{tenth / 10:g}" for tenth in range(0, 11, 2)}
    axis = "distance of the two source sentences, as a share of the source"
    return SeriesFigure(
        f"{result.dataset}: distance of the sentences that a summary fuses",
        [PanelRow("% of the pairs", [Panel("", axis, ticks, series)])],
        [f"{result.notes()[0]}. Bands: 95 % intervals over examples."],
    )
