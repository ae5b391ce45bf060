"""Which two source sentences a reference sentence fuses, and how far apart they stand (PageSum, §5.6, Figure 4).

    source, reference --best_pairs, fused--> Fusions, each with its bar
    outputs of runs   --closest sentence---> what each run says of either source (PageSum, Table 8)

A distance is a share of the source's sentences. h is a reference sentence, s1 and s2 the source sentences of its pair.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench import sentences
from longsumbench.analysis.sampled import Outputs, Sampled, SampleSettings, sample_dataset
from longsumbench.api.bounds import Between, Count, OneOf, Percentage, Text
from longsumbench.api.config import DatasetSettings
from longsumbench.api.documents import Example
from longsumbench.errors import DataError
from longsumbench.metrics.statistics import interval_of_shares, resampled_means
from longsumbench.report.tables import Block, terminal
from longsumbench.rouge.fusion import best_pairs
from longsumbench.rouge.scorer import RougeScorer
from longsumbench.rouge.signature import IMPLEMENTATION
from longsumbench.runs.record import Results
from longsumbench.sentences import split_summary

_VERSION = 1  # changes when the same texts would give other numbers
_RESAMPLES = 1_000  # of the bootstrap behind the 95 % intervals
_NEITHER, FIRST, SECOND, BOTH = "neither", "first", "second", "both"  # of a pair's sentences an output says

_Floats = NDArray[np.float64]


RougeType = Annotated[str, OneOf("1", "2", "L")]
Bins = Annotated[int, Between(1, 1_000)]


@dataclass
class FusionSettings(SampleSettings):
    """What `longsumbench analyze fusion` is asked."""

    run: Text = ""  # finished runs on the same split, commas between: what they say of either source
    rouge: RougeType = "1"  # 1 | 2 | L: of the recalls by which pairs are found and outputs read
    overlap: Percentage = 20.0  # t1, 0–100: what h has to share with each sentence alone (PageSum, Eq. 15)
    rise: Percentage = 10.0  # t2, 0–100: what the pair has to share more than each sentence alone (PageSum, Eq. 16)
    bins: Bins = 10  # bars of equal width, from distance 0 to 1
    appears: Percentage = 50.0  # 0–100, of the words that one source alone gives to h: an output with as many says it
    shown: Count = 20  # pairs on the page for each bar, the clearest ones

    def __post_init__(self) -> None:
        self.rouge = self.rouge.upper()
        super().__post_init__()

    @property
    def kind(self) -> str:
        """The type of ROUGE, as the scorer calls it."""
        return f"rouge{self.rouge}"


@dataclass(frozen=True)
class StatedShares:
    """What a run's output says of a fusion sentence.

    Attributes:
        run_id: the run's.
        recall: ROUGE recall of h by the whole output, 0–1.
        closest: the output's sentence that is most like h by ROUGE F; empty for an empty output.
        closest_recall: ROUGE recall of h by it, 0–1.
        parts: of the words that s1 alone gives to h, and of those that s2 alone does, the share that stands in one
            sentence of the output, in that which has most of them, 0–1.
        says: "both", "first", "second" or "neither": of whose words it has enough.
        joined: whether the closest sentence has enough of both.
    """

    run_id: str
    recall: float
    closest: str
    closest_recall: float
    parts: tuple[float, float]
    says: str
    joined: bool


@dataclass(frozen=True)
class Fusion:
    """A reference sentence that fuses two source sentences.

    Attributes:
        id: the example's.
        bar: the bin of the pair's distance, from 0.
        distance: of the two, as a share of the source's sentences.
        place: of the sentence in the reference, from 1.
        summary: it, h.
        numbers: of the two in the source, from 1, across documents.
        of: how many sentences the source has.
        documents: that the two stand in, from 1.
        sources: the two.
        score: ROUGE recall of h by both together, 0–1.
        alone: by each, 0–1.
        outputs: what each run says of it.
    """

    id: str
    bar: int
    distance: float
    place: int
    summary: str
    numbers: tuple[int, int]
    of: int
    documents: tuple[int, int]
    sources: tuple[str, str]
    score: float
    alone: tuple[float, float]
    outputs: tuple[StatedShares, ...] = ()

    @property
    def rise(self) -> float:
        """What the pair has more than the better one alone, 0–1."""
        return self.score - max(self.alone)


@dataclass(frozen=True)
class FusionsFound:
    """What came out.

    Attributes:
        dataset, about: which examples.
        signature: how all of it was computed.
        settings: as they were asked.
        ids: [E], of the examples.
        fusions: every fusion sentence, in the order of the data.
        num_sentences: of all references together.
        runs: run id → label.
        without: examples left out: no reference, or fewer than two source sentences.
    """

    dataset: str
    about: str
    signature: str
    settings: FusionSettings
    ids: tuple[str, ...]
    fusions: tuple[Fusion, ...]
    num_sentences: int
    runs: dict[str, str]
    without: int = 0

    @property
    def title(self) -> str:
        """What is shown, and of which dataset."""
        return f"Source sentences fused in a reference sentence, by their distance: {self.dataset}"

    def span(self, bar: int) -> tuple[float, float]:
        """Return the distances of a bar: from, to below."""
        return bar / self.settings.bins, (bar + 1) / self.settings.bins

    def bars(self) -> pd.DataFrame:
        """Return a row a bar: how many pairs, which share of all, 0–100, and the share if pairs were drawn blindly.

        `chance` is that of two different sentences drawn from the source of each pair: most pairs of a text stand near.
        """
        counts = self._by_example(self.fusions)
        low, high = _ratio_intervals(counts, counts.sum(axis=1, keepdims=True))
        total = max(1, len(self.fusions))
        chance = np.zeros(self.settings.bins)
        for size, times in Counter(one.of for one in self.fusions).items():
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
        """Return a row a run and bar, and one of all bars: what its outputs say of the fusion sentences, 0–100."""
        rows = []
        for place, (run_id, name) in enumerate(self.runs.items()):
            said = [(one, one.outputs[place]) for one in self.fusions]
            every = {says: self._by_example([one for one, out in said if out.says == says]) for says in _ways()}
            joined = self._by_example([one for one, out in said if out.joined])
            recalled = self._by_example(self.fusions, [out.recall for _, out in said])
            counts = self._by_example(self.fusions)
            for bar in [*range(self.settings.bins), None]:
                sums = [_of_bar(one, bar) for one in (counts, every[BOTH], recalled, joined)]
                if not (total := sums[0].sum()):
                    continue
                of_both, of_recall = (_interval(one, sums[0]) for one in sums[1:3])
                ways = {says: 100 * _of_bar(one, bar).sum() / total for says, one in every.items()}
                rows.append(
                    {"run_id": run_id, "run": name, "bar": "all" if bar is None else str(bar)}
                    | dict(zip(("from", "to"), (0.0, 1.0) if bar is None else self.span(bar), strict=True))
                    | {"n": int(total), **ways, "both_low": 100 * of_both[0], "both_high": 100 * of_both[1]}
                    | {"joined": 100 * sums[3].sum() / total, "recall": 100 * sums[2].sum() / total}
                    | {"recall_low": 100 * of_recall[0], "recall_high": 100 * of_recall[1]}
                )
        return pd.DataFrame(rows)

    def _by_example(self, fusions: Sequence[Fusion], weights: Sequence[float] | None = None) -> _Floats:
        """Count fusion sentences, or add up what they weigh: [E, bars]."""
        rows = {name: row for row, name in enumerate(self.ids)}
        found = np.zeros((len(self.ids), self.settings.bins))
        for one, weight in zip(fusions, weights or [1.0] * len(fusions), strict=True):
            found[rows[one.id], one.bar] += weight
        return found

    def of_bar(self, bar: int) -> list[Fusion]:
        """Return the fusion sentences of a bar, the clearest first: those with the greatest rise."""
        return sorted((one for one in self.fusions if one.bar == bar), key=lambda one: -one.rise)

    def near(self, share: float = 0.1) -> float:
        """Return the share of pairs whose distance is below some, 0–100."""
        return 100 * sum(one.distance < share for one in self.fusions) / max(1, len(self.fusions))

    def notes(self) -> list[str]:
        """Say which examples these are, and how many of their sentences are fusions."""
        found, of = len(self.fusions), max(1, self.num_sentences)
        asked = self.settings
        lines = [
            f"{self.about}: {found:,} of {self.num_sentences:,} reference sentences ({100 * found / of:.1f} %) fuse "
            f"two source sentences (ROUGE-{asked.rouge} recall: each alone above {asked.overlap:g}, both together by "
            f"more than {asked.rise:g} above each)"
        ]
        if found:
            chance = sum(chances(one.of, 10)[0] for one in self.fusions) / found
            half = 100 * float(np.median([one.distance for one in self.fusions]))
            told = f"; half of the pairs are nearer than {half:.1f} % of the source"
            lines.append(
                f"{self.near():.1f} % of the pairs are nearer than a tenth of the source, of pairs drawn blindly "
                f"{100 * chance:.1f} %{told}"
            )
            lines.append("The intervals are over examples; a share that rests on one example has none")
        if across := sum(len(set(one.documents)) > 1 for one in self.fusions):
            lines.append(f"{across:,} pairs ({100 * across / found:.1f} %) join two documents")
        if self.without:
            lines.append(f"{self.without:,} examples left out: no reference, or fewer than two source sentences")
        return lines

    def blocks(self) -> list[Block]:
        """Return the table of the bars, and one of each run."""
        rows = [
            [
                f"{row['from']:g}–{row['to']:g}",
                f"{int(row['pairs']):,}",
                _share(row, "share", ""),
                f"{row['chance']:.1f}",
            ]
            for _, row in self.bars().iterrows()
        ]
        view = ("distance", "pairs", "% of pairs (95 %)", "% by chance")
        blocks = [Block("", tuple(self.notes()), view, "lrrr", rows)]
        columns = ("distance", "n", "both (95 %)", "joined", "first only", "second only", "neither", "recall")
        told = (
            "Which of the two the output says: of the words that a source alone gives to the fusion sentence, one "
            f"sentence of the output has {self.settings.appears:g} % or more. joined: the sentence closest to the "
            "fusion sentence has them of both. recall: of the fusion sentence by the whole output"
        )
        table = self.by_run()
        for run_id, name in self.runs.items():
            cells = [_cells(row) for _, row in table[table["run_id"] == run_id].iterrows()] if len(table) else []
            blocks.append(Block(name, (told,) if run_id == next(iter(self.runs)) else (), columns, "lrrrrrrr", cells))
        return blocks

    def render(self) -> str:
        """Draw the tables for the terminal."""
        return f"{terminal(self.title, self.blocks())}\n\n{self.signature}"

    def csv(self) -> str:
        """Return the table of the bars."""
        return _csv(self.bars().assign(dataset=self.dataset, signature=self.signature))

    def runs_csv(self) -> str:
        """Return the table of the runs."""
        return _csv(self.by_run().assign(dataset=self.dataset, signature=self.signature))

    def lines(self) -> str:
        """Return every fusion sentence as a JSON line, in the order of the data."""
        return "".join(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in self.fusions)


def _ways() -> tuple[str, ...]:
    return BOTH, FIRST, SECOND, _NEITHER


def _csv(table: pd.DataFrame) -> str:
    return table.to_csv(index=False, lineterminator="\n", float_format="%.6f")


def _cells(row: Any) -> list[str]:
    span = "all" if row["bar"] == "all" else f"{row['from']:g}–{row['to']:g}"
    both = _share(row, BOTH, "both_")
    return [
        span,
        f"{row['n']:,}",
        both,
        *(f"{row[name]:.1f}" for name in ("joined", FIRST, SECOND, _NEITHER, "recall")),
    ]


def _share(row: Any, name: str, bounds: str) -> str:
    """Write a share with its interval; without one where it cannot be computed (see `_ratio_intervals`)."""
    low, high = row[f"{bounds}low"], row[f"{bounds}high"]
    interval = f" ({low:.1f}–{high:.1f})" if np.isfinite([low, high]).all() else ""
    return f"{row[name]:.1f}{interval}"


def _of_bar(values: _Floats, bar: int | None) -> _Floats:
    return values.sum(axis=1) if bar is None else values[:, bar]


def _ratio_intervals(parts: _Floats, wholes: _Floats) -> tuple[_Floats, _Floats]:
    """Return low and high of Σ parts / Σ wholes, by column, over resampled examples; NaN where it cannot vary."""
    low = high = np.full(parts.shape[1], np.nan)
    if (wholes > 0).any(axis=1).sum() > 1:
        both = np.hstack([parts, np.broadcast_to(wholes, parts.shape)])
        means = resampled_means(both, _RESAMPLES, seed=1)
        above, below = np.split(means, 2, axis=1)
        with np.errstate(invalid="ignore"):
            low, high = np.nanquantile(above / below, [0.025, 0.975], axis=0)
    return low, high


def _interval(parts: _Floats, wholes: _Floats) -> tuple[float, float]:
    """Return the interval of a share; where it is 0 or 1 throughout, the exact one of as many sentences."""
    total = int(wholes.sum())
    if parts.sum() in (0.0, float(total)):
        return interval_of_shares(np.full(total, parts.sum() / total), _RESAMPLES, seed=1)
    having = wholes > 0
    low, high = _ratio_intervals(parts[having, None], wholes[having, None])
    return float(low[0]), float(high[0])


def chances(size: int, bins: int) -> _Floats:
    """Return how likely two different sentences of a source of `size` stand in each bin of distances."""
    apart = np.arange(1, size)
    pairs = np.bincount(apart * bins // size, size - apart, minlength=bins)
    return np.asarray(pairs / pairs.sum())


def analyze_fusion(dataset: DatasetSettings, settings: FusionSettings, results: Results | None = None) -> FusionsFound:
    """Find the fusion sentences of a dataset's references.

    Args:
        dataset: which texts.
        settings: which of them, and what a fusion is.
        results: where runs are looked for.

    Raises:
        UsageError: a run has read other texts.
        DataError: there is nothing to look at, or a file cannot be used.
    """
    return find_fusions(sample_dataset(dataset, settings, settings.run, results), settings)


def find_fusions(sampled: Sampled, settings: FusionSettings) -> FusionsFound:
    """Find the fusion sentences of some examples' references.

    Args:
        sampled: the examples; of several references the first.
        settings: what a fusion is.

    Raises:
        DataError: no example has a reference and two source sentences.
    """
    scorer = RougeScorer(kernels="auto" if sampled.runs else "python")
    found, ids, num_sentences, without = [], [], 0, 0
    for example in sampled.examples("looking for fusions"):
        source = list(example.sentences())
        if len(source) < 2 or not any(example.references):
            without += 1
            continue
        ids.append(example.id)
        num_sentences += len(example.references[0])
        found += _of_example(example, source, sampled.runs, settings, scorer)
    if not ids:
        told = "has a reference and two source sentences"
        raise DataError(f"no example of split '{sampled.split.name}' {told}: there is nothing to be fused")
    asked = {name: getattr(settings, name) for name in ("rouge", "overlap", "rise", "appears")}
    words = f"{IMPLEMENTATION},{scorer.mode},{scorer.stemmer},{scorer.tokenizer}"
    signature = sampled.signature("fusion", _VERSION, **asked, words=words, sentences=sentences.SPLITTER_NAME)
    runs = {one.record.run_id: one.label for one in sampled.runs}
    about = sampled.about()
    return FusionsFound(
        sampled.dataset, about, signature, settings, tuple(ids), tuple(found), num_sentences, runs, without
    )


def _of_example(
    example: Example, source: Sequence[str], runs: Sequence[Outputs], settings: FusionSettings, scorer: RougeScorer
) -> list[Fusion]:
    """Return the fusion sentences of an example's first reference."""
    words, reference = [scorer.words(text) for text in source], example.references[0]
    asked = [scorer.words(text) for text in reference]
    belongs = [number for number, one in enumerate(example.documents, 1) for _ in one.sentences()]
    outputs = {one.record.run_id: split_summary(one.summaries[example.id]) for one in runs}
    found = []
    for place, pair in enumerate(best_pairs(words, asked, settings.kind)):
        if not pair.fused(settings.overlap, settings.rise):
            continue
        both = pair.first, pair.second
        given = [asked[place], *(words[index] for index in both)]
        said = tuple(
            _said(run_id, output, reference[place], given, settings, scorer) for run_id, output in outputs.items()
        )
        found.append(
            Fusion(
                id=example.id,
                bar=(pair.second - pair.first) * settings.bins // len(source),
                distance=pair.distance,
                place=place + 1,
                summary=reference[place],
                numbers=(pair.first + 1, pair.second + 1),
                of=len(source),
                documents=(belongs[pair.first], belongs[pair.second]),
                sources=(source[pair.first], source[pair.second]),
                score=pair.score,
                alone=pair.alone,
                outputs=said,
            )
        )
    return found


def _said(
    run_id: str,
    output: Sequence[str],
    summary: str,
    given: Sequence[Sequence[str]],
    settings: FusionSettings,
    scorer: RougeScorer,
) -> StatedShares:
    """Tell what an output says of a fusion sentence.

    Args:
        run_id: the run's.
        output: its sentences.
        summary: the fusion sentence.
        given: the words of it, and of the two sources.
        settings: of which words it has enough.
        scorer: of recalls.
    """
    scores = [scorer.score([one], [[summary]])[settings.kind] for one in output]
    best = max(range(len(output)), key=lambda index: scores[index].f, default=None)
    whole = scorer.score(list(output), [[summary]])[settings.kind].r
    if best is None:
        return StatedShares(run_id, whole, "", 0.0, (0.0, 0.0), _NEITHER, joined=False)
    of_each, enough = [stated_shares(scorer.words(one), *given) for one in output], settings.appears / 100
    parts = max(first for first, _ in of_each), max(second for _, second in of_each)
    first, second = (part >= enough for part in parts)
    says = BOTH if first and second else FIRST if first else SECOND if second else _NEITHER
    return StatedShares(run_id, whole, output[best], scores[best].r, parts, says, min(of_each[best]) >= enough)


def stated_shares(
    output: Sequence[str], summary: Sequence[str], first: Sequence[str], second: Sequence[str]
) -> tuple[float, float]:
    """Return the share of the words that one source alone gives to a fusion sentence and that an output has, of each.

    A word counts as often as it stands in the fusion sentence and in that source, less as often as in the other. Where
    a source gives none, all of them are there.

    Args:
        output: words of the output.
        summary: of the fusion sentence.
        first: of one source.
        second: of the other.
    """
    shares = []
    for one, other in ((first, second), (second, first)):
        own = (Counter(summary) & Counter(one)) - Counter(other)
        said = own & Counter(output)
        shares.append(said.total() / own.total() if own else 1.0)
    return shares[0], shares[1]
