"""Finds the two source sentences that a reference sentence fuses, and their distance (PageSum, §5.6, Figure 4).

    source, reference --best_pairs, fused--> Fusions, each with its bar
    outputs of runs   --stated_shares------> which of the two sources each output states (PageSum, Table 8)

A distance is a share of the source's sentences. h is a reference sentence, s1 and s2 the source sentences of its pair.
"""

import json
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench import sentences
from longsumbench.analysis.sampled import (
    AnalysisResult,
    Outputs,
    Sampled,
    SampleSettings,
    sample_dataset,
)
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
from longsumbench.core.versions import READING_VERSION
from longsumbench.errors import DataError
from longsumbench.formatting import format_count
from longsumbench.metrics.aggregate import MEAN_RESAMPLES
from longsumbench.metrics.statistics import interval_of_shares, resampled_means
from longsumbench.render.figures import (
    COLOURS,
    GREY,
    add_title_and_notes,
    plain_axes,
    render_picture,
)
from longsumbench.render.tables import Block
from longsumbench.rouge.fusion import best_pairs
from longsumbench.rouge.scorer import IMPLEMENTATION, SuiteScorer
from longsumbench.runs.results import Results
from longsumbench.runs.scoring import warn_of_other_scripts
from longsumbench.sentences import split_summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NEITHER, _FIRST, _SECOND, _BOTH = (
    "neither",
    "first",
    "second",
    "both",
)  # source sentences that an output states
_RECALL = ("recall", "recall_low", "recall_high")
_SAYS = (_BOTH, _FIRST, _SECOND, _NEITHER)

_Array = NDArray[np.float64]


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


@dataclass(frozen=True)
class StatedShares:
    """The parts of a fusion sentence that a run's output states."""

    run_id: str  # the run's id
    recall: float  # ROUGE recall of h by the whole output, 0–1
    closest: (
        str  # the output's sentence with the highest ROUGE F against h; empty for an empty output
    )
    closest_recall: float  # ROUGE recall of h by `closest`, 0–1
    # for s1 and s2, the greatest share, 0–1, of h's words from this source only in one output sentence
    parts: tuple[float, float]
    says: str  # "both", "first", "second" or "neither": the sources with at least `appears` of these words
    joined: bool  # whether one sentence, the closest, has enough words of both


@dataclass(frozen=True)
class Fusion:
    """A reference sentence that fuses two source sentences."""

    id: str
    bar: int  # bin of the pair's distance, from 0
    distance: float  # distance of s1 and s2, as a share of the source's sentences
    place: int  # position of h in the reference, from 1
    summary: str  # h
    numbers: tuple[int, int]  # positions of s1 and s2 in the source, from 1, across documents
    of: int  # number of sentences in the source
    documents: tuple[int, int]  # numbers of the documents with s1 and s2, from 1
    sources: tuple[str, str]
    score: float  # ROUGE recall of h by both together, 0–1
    alone: tuple[float, float]  # ROUGE recall of h by s1 and by s2, 0–1
    outputs: tuple[StatedShares, ...] = ()  # the parts that each run states

    @property
    def rise(self) -> float:
        """Gain in recall of the pair over the better source sentence alone, 0–1."""
        return self.score - max(self.alone)


@dataclass(frozen=True)
class FusionsFound(AnalysisResult):
    """The result of `longsumbench analyze fusion`."""

    analysis: ClassVar[str] = "fusion"
    settings: FusionSettings
    ids: tuple[str, ...]  # [E], ids of the examples
    fusions: tuple[Fusion, ...]  # all fusion sentences, in the order of the data
    num_sentences: int  # number of reference sentences
    runs: dict[str, str]  # run id → label
    without: int = (
        0  # number of examples left out: no reference, or fewer than two source sentences
    )

    @property
    def title(self) -> str:
        """Heading of the tables."""
        return f"Source sentences fused in a reference sentence, by their distance: {self.dataset}"

    def span(self, bar: int) -> tuple[float, float]:
        """Return a bar's smallest distance, and its upper limit."""
        return bar / self.settings.bins, (bar + 1) / self.settings.bins

    def bars(self) -> pd.DataFrame:
        """Return one row per bar: the number of pairs, their share of all, 0–100, and the share by chance.

        `chance` is for two different sentences drawn at random from the source of each pair.
        """
        counts = self.by_example()
        low, high = ratio_intervals(counts, counts.sum(axis=1, keepdims=True))
        total = max(1, len(self.fusions))
        chance = np.zeros(self.settings.bins)
        for size, times in Counter(fusion.of for fusion in self.fusions).items():
            chance += times * chances(size, self.settings.bins) / total
        spans = [self.span(bar) for bar in range(self.settings.bins)]
        table = pd.DataFrame(spans, columns=["from", "to"])
        return table.assign(
            pairs=counts.sum(axis=0).astype(int),
            share=100 * counts.sum(axis=0) / total,
            low=100 * low,
            high=100 * high,
            chance=100 * chance,
            examples=(counts > 0).sum(axis=0),
        )

    def by_run(self) -> pd.DataFrame:
        """Return one row per run and bar, and one for all bars: the shares of stated sources, 0–100."""
        rows = []
        for place, (run_id, name) in enumerate(self.runs.items()):
            stated = pd.DataFrame(
                [
                    {
                        "id": fusion.id,
                        "bar": fusion.bar,
                        "joined": output.joined,
                        "recall": output.recall,
                    }
                    | {says: output.says == says for says in _SAYS}
                    for fusion in self.fusions
                    for output in (fusion.outputs[place],)
                ],
                columns=["id", "bar", *_SAYS, "joined", "recall"],
            )
            for bar, bar_rows in [*stated.groupby("bar"), ("all", stated)]:
                if len(bar_rows):
                    start, end = (0.0, 1.0) if bar == "all" else self.span(int(bar))
                    row = {
                        "run_id": run_id,
                        "run": name,
                        "bar": str(bar),
                        "from": start,
                        "to": end,
                        "n": len(bar_rows),
                    }
                    rows.append(row | _run_shares(bar_rows))
        return pd.DataFrame(rows)

    def by_example(self) -> _Array:
        """Return the number of fusion sentences: [E, bars]."""
        rows = {name: row for row, name in enumerate(self.ids)}
        counts = np.zeros((len(self.ids), self.settings.bins))
        for fusion in self.fusions:
            counts[rows[fusion.id], fusion.bar] += 1
        return counts

    def of_bar(self, bar: int) -> list[Fusion]:
        """Return the fusion sentences of a bar, the greatest rise first."""
        return sorted(
            (fusion for fusion in self.fusions if fusion.bar == bar),
            key=lambda fusion: -fusion.rise,
        )

    def notes(self) -> list[str]:
        """Return lines about the examples, the number of fusions and their distances."""
        num_fusions, total, settings = len(self.fusions), max(1, self.num_sentences), self.settings
        lines = [
            f"{self.sample}: {num_fusions:,} of {self.num_sentences:,} reference sentences "
            f"({100 * num_fusions / total:.1f} %) fuse two source sentences (ROUGE-{settings.rouge} recall: each alone "
            f"above {settings.overlap:g}, both together by more than {settings.rise:g} above each)"
        ]
        if num_fusions:
            near = 100 * sum(fusion.distance < 0.1 for fusion in self.fusions) / num_fusions
            chance = sum(chances(fusion.of, 10)[0] for fusion in self.fusions) / num_fusions
            median = 100 * float(np.median([fusion.distance for fusion in self.fusions]))
            lines.append(
                f"{near:.1f} % of the pairs are nearer than a tenth of the source ({100 * chance:.1f} % by "
                f"chance); the median distance is {median:.1f} % of the source"
            )
            lines.append("The intervals are over examples; a share of one example has no interval")
        across = sum(len(set(fusion.documents)) > 1 for fusion in self.fusions)
        if across:
            lines.append(
                f"{format_count(across, 'pair')} ({100 * across / num_fusions:.1f} %) of two documents"
            )
        if self.without:
            left_out = format_count(self.without, "example")
            lines.append(f"{left_out} left out: no reference, or fewer than two source sentences")
        return lines

    def blocks(self) -> list[Block]:
        """Return the table of the bars, and one for each run."""
        rows = [
            [
                _format_distances(row),
                f"{int(row['pairs']):,}",
                _share(row, "share", ""),
                f"{row['chance']:.1f}",
            ]
            for _, row in self.bars().iterrows()
        ]
        view = ("distance", "pairs", "% of pairs (95 %)", "% by chance")
        blocks = [Block("", tuple(self.notes()), view, "lrrr", rows)]
        columns = (
            "distance",
            "n",
            "both (95 %)",
            "joined",
            "first only",
            "second only",
            "neither",
            "recall",
        )
        note = (
            "An output says a source if one of its sentences has "
            f"{self.settings.appears:g} % or more of the fusion sentence's words from this source only. joined: the "
            "output sentence closest to the fusion sentence says both. recall: ROUGE recall of the fusion sentence "
            "by the whole output"
        )
        table = self.by_run()
        for run_id, name in self.runs.items():
            cells = (
                [_run_cells(row) for _, row in table[table["run_id"] == run_id].iterrows()]
                if len(table)
                else []
            )
            blocks.append(
                Block(
                    name,
                    (note,) if run_id == next(iter(self.runs)) else (),
                    columns,
                    "lrrrrrrr",
                    cells,
                )
            )
        return blocks

    def table(self) -> pd.DataFrame:
        """Return the numbers of the bars."""
        return self.bars()

    def lines(self) -> str:
        """Return all fusion sentences as JSON lines, in the order of the data."""
        return "".join(
            json.dumps(asdict(fusion), ensure_ascii=False) + "\n" for fusion in self.fusions
        )

    def pictures(self) -> dict[str, bytes]:
        """Draw the bars; return "png" and "svg" → bytes."""
        return render_picture((_WIDTH, _HEIGHT), lambda figure: _draw_bars(figure, self))

    def more_files(self) -> dict[str, str]:
        """Return all pairs as JSON lines, and the table of the runs if there are any."""
        files = {"fusion-pairs.jsonl": self.lines()}
        return files | ({"fusion-runs.csv": self.csv(self.by_run())} if self.runs else {})


def _format_distances(row: Any) -> str:
    return f"{row['from']:g}–{row['to']:g}"


def _run_cells(row: Any) -> list[str]:
    names = ("joined", _FIRST, _SECOND, _NEITHER, "recall")
    span = "all" if row["bar"] == "all" else _format_distances(row)
    return [
        span,
        f"{row['n']:,}",
        _share(row, _BOTH, "both_"),
        *(f"{row[name]:.1f}" for name in names),
    ]


def _share(row: Any, name: str, bounds: str) -> str:
    """Format a share with its interval, if there is one (see `ratio_intervals`)."""
    low, high = row[f"{bounds}low"], row[f"{bounds}high"]
    interval = f" ({low:.1f}–{high:.1f})" if np.isfinite([low, high]).all() else ""
    return f"{row[name]:.1f}{interval}"


def _run_shares(stated: pd.DataFrame) -> dict[str, float]:
    """Return the shares of what an output states, with the intervals of "both" and "recall", 0–100."""
    shares = {
        f"{name}": 100 * float(share)
        for name, share in stated[[*_SAYS, "joined", "recall"]].mean().items()
    }
    by_example = stated.groupby("id", sort=False)
    counts = np.asarray(by_example.size(), np.float64)
    for name in (_BOTH, "recall"):
        low, high = _interval(by_example[name].sum().to_numpy(np.float64), counts)
        shares |= {f"{name}_low": 100 * low, f"{name}_high": 100 * high}
    return {name: shares[name] for name in (*_SAYS, "both_low", "both_high", "joined", *_RECALL)}


def ratio_intervals(parts: _Array, wholes: _Array) -> tuple[_Array, _Array]:
    """Return the 95 % interval of Σ parts / Σ wholes by column, over resampled examples; NaN if only one counts."""
    low = high = np.full(parts.shape[1], np.nan)
    if (wholes > 0).any(axis=1).sum() > 1:
        columns = np.hstack([parts, np.broadcast_to(wholes, parts.shape)])
        means = resampled_means(columns, MEAN_RESAMPLES, seed=1)
        above, below = np.split(means, 2, axis=1)
        with np.errstate(invalid="ignore"):
            low, high = np.nanquantile(above / below, [0.025, 0.975], axis=0)
    return low, high


def _interval(parts: _Array, wholes: _Array) -> tuple[float, float]:
    """Return the 95 % interval of a share; the exact binomial one if all sentences are alike."""
    total = int(wholes.sum())
    if parts.sum() in (0.0, float(total)):
        return interval_of_shares(np.full(total, parts.sum() / total), MEAN_RESAMPLES, seed=1)
    low, high = ratio_intervals(parts[:, None], wholes[:, None])
    return float(low[0]), float(high[0])


def chances(size: int, bins: int) -> _Array:
    """Return the probability of each bin for the distance of two random sentences in a source of `size` sentences."""
    distances = np.arange(1, size)
    pairs = np.bincount(distances * bins // size, size - distances, minlength=bins)
    return np.asarray(pairs / pairs.sum())


def analyze_fusion(
    dataset: DatasetSettings, settings: FusionSettings, results: Results | None = None
) -> FusionsFound:
    """Find the fusion sentences of a dataset's references.

    Raises:
        UsageError: a run has read other texts.
        DataError: no example can be used, or a file is damaged.
    """
    return find_fusions(sample_dataset(dataset, settings, settings.run, results), settings)


def find_fusions(sampled: Sampled, settings: FusionSettings) -> FusionsFound:
    """Find the fusion sentences of the sampled examples' first references.

    Raises:
        DataError: no example has a reference and two source sentences.
    """
    scorer = SuiteScorer(settings.score, kernels="auto" if sampled.runs else "python")
    warn_of_other_scripts(settings.score, sampled.split)
    fusions, ids, num_sentences, without = [], [], 0, 0
    for example in sampled.examples("looking for fusions"):
        source = list(example.sentences())
        if len(source) < 2 or not any(example.references):
            without += 1
            continue
        ids.append(example.id)
        num_sentences += len(example.references[0])
        fusions += _of_example(example, source, sampled.runs, settings, scorer)
    if not ids:
        message = (
            f"no example of split '{sampled.split.name}' has a reference and two source sentences"
        )
        raise DataError(f"{message}: there is nothing to fuse")
    thresholds = {name: getattr(settings, name) for name in ("rouge", "overlap", "rise", "appears")}
    words = f"{IMPLEMENTATION},{scorer.mode},{scorer.stemmer},{scorer.tokenizer}"
    signature = sampled.signature(
        "fusion", READING_VERSION, **thresholds, words=words, sentences=sentences.SPLITTER_NAME
    )
    runs = {run.record.run_id: run.label for run in sampled.runs}
    sample = sampled.describe()
    return FusionsFound(
        sampled.dataset,
        sample,
        signature,
        settings,
        tuple(ids),
        tuple(fusions),
        num_sentences,
        runs,
        without,
    )


def _of_example(
    example: Example,
    source: Sequence[str],
    runs: Sequence[Outputs],
    settings: FusionSettings,
    scorer: SuiteScorer,
) -> list[Fusion]:
    """Return the fusion sentences of an example's first reference."""
    words, reference = [scorer.words(text) for text in source], example.references[0]
    reference_words = [scorer.words(text) for text in reference]
    documents = [
        number for number, document in enumerate(example.documents, 1) for _ in document.sentences()
    ]
    outputs = {run.record.run_id: split_summary(run.summaries[example.id]) for run in runs}
    fusions = []
    for place, pair in enumerate(best_pairs(words, reference_words, settings.kind)):
        if not pair.fused(settings.overlap, settings.rise):
            continue
        texts = [reference_words[place], words[pair.first], words[pair.second]]
        stated = tuple(
            _stated(run_id, output, reference[place], texts, settings, scorer)
            for run_id, output in outputs.items()
        )
        fusions.append(
            Fusion(
                id=example.id,
                bar=(pair.second - pair.first) * settings.bins // len(source),
                distance=pair.distance,
                place=place + 1,
                summary=reference[place],
                numbers=(pair.first + 1, pair.second + 1),
                of=len(source),
                documents=(documents[pair.first], documents[pair.second]),
                sources=(source[pair.first], source[pair.second]),
                score=pair.score,
                alone=pair.alone,
                outputs=stated,
            )
        )
    return fusions


def _stated(
    run_id: str,
    output: Sequence[str],
    summary: str,
    texts: Sequence[Sequence[str]],
    settings: FusionSettings,
    scorer: SuiteScorer,
) -> StatedShares:
    """Return what an output states of a fusion sentence; `texts` is the words of the sentence and its two sources."""
    scores = [scorer.score([sentence], [[summary]])[settings.kind] for sentence in output]
    best = max(range(len(output)), key=lambda index: scores[index].fmeasure, default=None)
    recall = scorer.score(list(output), [[summary]])[settings.kind].recall
    if best is None:
        return StatedShares(run_id, recall, "", 0.0, (0.0, 0.0), _NEITHER, joined=False)
    shares, enough = (
        [stated_shares(scorer.words(sentence), *texts) for sentence in output],
        settings.appears / 100,
    )
    parts = max(first for first, _ in shares), max(second for _, second in shares)
    first, second = (part >= enough for part in parts)
    says = _BOTH if first and second else _FIRST if first else _SECOND if second else _NEITHER
    return StatedShares(
        run_id, recall, output[best], scores[best].recall, parts, says, min(shares[best]) >= enough
    )


def stated_shares(
    output: Sequence[str], summary: Sequence[str], first: Sequence[str], second: Sequence[str]
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


_WIDTH, _HEIGHT = 7.4, 4.3  # inches
_NOTE_WIDTH = 98  # characters
_BACKGROUND = {
    "facecolor": "white",
    "edgecolor": "none",
    "alpha": 0.85,
    "pad": 0.8,
}  # of a label on a line
_COUNT: dict[str, Any] = {
    **{"xytext": (0, 4), "textcoords": "offset points", "ha": "center", "fontsize": 8.5},
    **{"bbox": _BACKGROUND, "zorder": 5},
}


def _draw_bars(figure: "Figure", result: FusionsFound) -> None:
    caption = f"{result.notes()[0]}. Whiskers and bands: 95 % intervals over examples."
    heading = f"{result.dataset}: distance of the sentences that a summary fuses"
    add_title_and_notes(figure, heading, textwrap.fill(caption, _NOTE_WIDTH))
    plot = figure.subplots()
    _draw_distance_bars(plot, result)
    plot.set_xlim(-0.01, 1.01)
    plot.set_xticks(np.linspace(0, 1, 11), [f"{tenth / 10:g}" for tenth in range(11)])
    plot.set_xlabel("distance of the two source sentences, as a share of the source", fontsize=9.5)
    plain_axes(plot)


def _draw_distance_bars(plot: "Axes", result: FusionsFound) -> None:
    bars = result.bars()
    width = 1 / result.settings.bins
    middles = bars["from"] + width / 2
    plot.bar(middles, bars["share"], width * 0.86, color=COLOURS[0])
    mask = bars["low"].notna() & (bars["pairs"] > 0)
    share, low, high = (bars[name][mask] for name in ("share", "low", "high"))
    whiskers = [(share - low).clip(lower=0), (high - share).clip(lower=0)]
    plot.errorbar(
        middles[mask], share, whiskers, fmt="none", ecolor="black", elinewidth=1.0, alpha=0.6
    )
    tops = bars[["share", "high"]].max(axis=1)
    for middle, top, count in zip(middles, tops, bars["pairs"], strict=True):
        plot.annotate(f"{count:,}", (middle, top), **_COUNT)
    dashed: dict[str, Any] = {
        "color": GREY,
        "linestyle": "--",
        "linewidth": 1.2,
        "marker": "o",
        "markersize": 3,
    }
    plot.plot(middles, bars["chance"], **dashed, label="by chance")
    plot.set_ylabel("% of the pairs (above: number)", fontsize=9.5)
    plot.legend(frameon=False, fontsize=9, loc="upper right")
