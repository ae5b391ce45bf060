"""Computes the ROUGE-L recall of a ranker's best paragraphs (Hierarchical Transformer, Table 1).

The best L' paragraphs are joined in the ranker's order into one text. The recall is the share of the reference's words
in the longest common subsequence of this text and the whole reference.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench import core
from longsumbench.analysis.plan import build_command_settings, pop_group, split_settings
from longsumbench.cache.artifacts import ArtifactCache, user_cache
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import format_count
from longsumbench.metrics.aggregate import MEAN_RESAMPLES
from longsumbench.metrics.statistics import bootstrap_intervals
from longsumbench.modeling.ranking import find_ranker, rank, score_by
from longsumbench.progress import track
from longsumbench.rouge.overlap import match_bits, sequence_length
from longsumbench.rouge.scorer import IMPLEMENTATION, SuiteScorer
from longsumbench.runs.scoring import warn_about_dropped_letters
from longsumbench.views.tables import Block, terminal
from longsumbench_reproduction.analysis.sampled import find_split

KEPT = (5, 10, 20, 40)  # L': numbers of best paragraphs

_Orders = Sequence[Sequence[int]]


@dataclass
class RankRecallSettings:
    """Settings of `longsumbench stats` with rankers."""

    rank: core.Text = core.setting(
        "", "names of rankers, separated by commas (longsumbench list rankers)"
    )
    rank_checkpoint: core.Text | None = core.setting(
        None, "sentence encoder of the embedding rankers: folder or hub name"
    )
    unit: core.RankedUnit = core.setting(
        "paragraph", "paragraph | section | sentence: the texts that are ranked"
    )
    seed: core.Seed = core.setting(1, "seed of the training of rankers")
    device: core.Device = core.setting("auto", "auto | cpu | cuda | mps: for a ranker's training")
    score: core.Scoring = field(default_factory=core.Scoring)

    def __post_init__(self) -> None:
        if not self.rankers:
            raise UsageError(
                "no ranker is named: name rankers, as in rank=tfidf,lstm (longsumbench list rankers)"
            )

    def shared(self) -> dict[str, Any]:
        """Return the settings that learned rankers share with the table, by their names in `RankerSettings`."""
        names = ("unit", "rank_checkpoint", "seed", "device")
        return {name: vars(self)[name] for name in names}

    @property
    def rankers(self) -> list[str]:
        """Distinct names of the rankers; "none", the order of the text, is always scored too."""
        names = dict.fromkeys(name.strip() for name in self.rank.split(","))
        return [name for name in names if name]


@dataclass(frozen=True)
class RankRecall:
    """The recalls of some rankers on a split of a dataset."""

    dataset: str
    split: str
    unit: str  # "paragraph", "section" or "sentence"
    # ranker → [examples, len(KEPT)], 0–1; "none" is the order of the text
    recalls: Mapping[str, NDArray[np.float64]]
    texts_of_each: NDArray[np.int64]  # [examples], number of texts to rank
    words_of_each: float  # mean length of the texts in words
    without: int = 0  # number of examples left out because they have no reference
    signature: str = ""  # how the recalls were computed

    def table(self) -> pd.DataFrame:
        """Return one row per ranker and L': the mean recall and its 95 % interval, 0–100."""
        rows = []
        for name, recalls in self.recalls.items():
            intervals = bootstrap_intervals(100 * recalls, MEAN_RESAMPLES).tolist()
            means = (100 * recalls.mean(axis=0)).tolist()
            for num_best, mean, bounds in zip(KEPT, means, intervals, strict=True):
                rows.append((name, num_best, mean, *bounds))
        return pd.DataFrame(rows, columns=["ranker", "best", "recall", "low", "high"])

    def render(self) -> str:
        """Return the table for the terminal, with the signature."""
        columns = ("ranker", *(f"best {num_best}" for num_best in KEPT))
        rows: dict[str, list[str]] = {}
        for name, _, mean, low, high in self.table().itertuples(index=False):
            label = f"in order (rank={name})" if name == core.UNRANKED else name
            rows.setdefault(label, [label]).append(f"{mean:.2f} ±{(high - low) / 2:.2f}")
        block = Block("", tuple(self.notes()), columns, "lrrrr", list(rows.values()))
        title = f"ROUGE-L recall (0–100) of the best {self.unit}s against the reference: {self.dataset}, {self.split}"
        return f"{terminal(title, [block])}\n\n{self.signature}"

    def notes(self) -> list[str]:
        """Return lines about the examples."""
        low, middle, high = np.quantile(self.texts_of_each, [0, 0.5, 1], method="lower")
        counts = f"{len(self.texts_of_each):,} examples of {low} to {high} {self.unit}s (median {middle}),"
        notes = [f"{counts} {self.words_of_each:.0f} words each; means ± half the 95 % interval"]
        if self.without:
            notes.append(f"{format_count(self.without, 'example')} left out: no reference")
        return notes

    def csv(self) -> str:
        """Return the table as CSV, with the dataset and the signature."""
        table = self.table().assign(n=len(self.texts_of_each), signature=self.signature)
        table.insert(0, "dataset", self.dataset)
        table.insert(1, "split", self.split)
        table.insert(2, "unit", self.unit)
        return table.to_csv(index=False, lineterminator="\n")


# Begin to read here: `longsumbench stats` with rank= calls it.
def ranking_stats(words: Sequence[str]) -> RankRecall:
    """Score the rankers of `longsumbench stats rank=NAME,…`; see `rank_recall`."""
    texts, values = split_settings(words, "stats")
    ranker = pop_group(values, "ranker")
    if values.get("rank") is None:  # "rank=" names no ranker
        values.pop("rank", None)
    settings: RankRecallSettings = build_command_settings(RankRecallSettings, values)
    # settings that rankers share with the table are typed once
    inherited = {**settings.shared(), "score": core.settings_deciding(settings.score, "words")}
    for key in inherited.keys() & ranker.keys():
        raise UsageError(f"ranker.{key} follows {key}: set {key}={ranker[key]}")
    of_rankers = core.build_settings(core.RankerSettings, {**inherited, **ranker}, "ranker.")
    return rank_recall(texts, settings, of_rankers)


def rank_recall(
    dataset: core.DatasetSettings, settings: RankRecallSettings, ranker: core.RankerSettings
) -> RankRecall:
    """Rank the paragraphs of a dataset's examples, and score the best ones.

    `ranker` has the training settings of learned rankers.

    Raises:
        UnknownName: a ranker is unknown.
        UsageError: a ranker needs titles, and an example has none.
        DataError: a learned ranker has no training split, or no example can be scored.
    """
    # errors in the settings, before the texts are read
    with_encoder = list(filter(core.encoder_ranker, settings.rankers))
    for name in with_encoder or settings.rankers:
        core.ranker_identity(name, settings.rank_checkpoint)
    cache = user_cache()
    texts = load_texts(dataset, cache)
    split = find_split(texts, dataset.split)
    warn_about_dropped_letters(settings.score, split)
    names = dict.fromkeys([core.UNRANKED, *settings.rankers])
    orders = {}
    # errors in texts are found before training
    for name in sorted(names, key=lambda name: core.learned_ranker(name) is not None):
        orders[name] = _orders(name, texts, split, settings.unit, ranker, cache)
    in_order = {name: orders[name] for name in names}
    return score_orders(texts.name, split, in_order, settings.unit, settings.score)


def _orders(
    name: str,
    texts: Texts,
    split: core.Split,
    unit: str,
    settings: core.RankerSettings,
    cache: ArtifactCache,
) -> list[list[int]]:
    """Return the indices of each example's best texts, the best first."""
    if name == core.UNRANKED:
        return [list(range(max(KEPT)))] * len(split)
    train, validation = texts.splits.get("train"), texts.splits.get("validation")
    ranker = find_ranker(name, train, validation, settings, cache)
    orders = []
    for example in track(split, f"ranking by {name}", len(split)):
        scores = score_by(ranker, example, core.texts_to_rank(example, unit), f"rank={name}")
        orders.append(rank(scores)[: max(KEPT)])
    return orders


def score_orders(
    dataset: str, split: core.Split, orders: Mapping[str, _Orders], unit: str, scoring: core.Scoring
) -> RankRecall:
    """Score the first texts of each order.

    `orders` has the indices of the texts of each example by ranker, the best first; indices without a text are skipped.

    Raises:
        DataError: no example has a reference and a text.
    """
    scorer = SuiteScorer(scoring)
    rows, counts, words, without = [], [], 0, 0
    for index, example in enumerate(track(split, "scoring", len(split))):
        texts = core.texts_to_rank(example, unit)
        if not example.references or not texts:
            without += 1
            continue
        rows.append(_recalls(example, texts, [ranked[index] for ranked in orders.values()], scorer))
        counts.append(len(texts))
        words += sum(len(text.split()) for text in texts)
    if not rows:
        raise DataError(
            f"no example of split '{split.name}' has a reference: there is nothing to score against"
        )
    recalls = np.array(rows)  # [examples, rankers, len(KEPT)]
    of_words = f"mode:{scorer.mode}|stemmer:{scorer.stemmer}|tokenizer:{scorer.tokenizer}"
    return RankRecall(
        dataset=dataset,
        split=split.name,
        unit=unit,
        recalls={name: recalls[:, place] for place, name in enumerate(orders)},
        texts_of_each=np.array(counts, np.int64),
        words_of_each=words / sum(counts),
        without=without,
        signature=f"rouge:{IMPLEMENTATION}|{of_words}|L:sentence|part:recall|references:first|n:{len(rows)}",
    )


def _recalls(
    example: core.Example, texts: Sequence[str], orders: _Orders, scorer: SuiteScorer
) -> list[list[float]]:
    """Return the recalls of one example: [orders][len(KEPT)]."""
    numbers: dict[str, int] = {}

    # several rankers choose the same texts
    @cache
    def numbered(text: str) -> list[int]:
        return [numbers.setdefault(word, len(numbers) + 1) for word in scorer.words(text)]

    reference = numbered(" ".join(example.references[0]))
    recalls = []
    for order in orders:
        ranked = [numbered(texts[index]) for index in order if index < len(texts)]
        recalls.append(best_recalls(ranked, reference))
    return recalls


def best_recalls(ranked: Sequence[Sequence[int]], reference: Sequence[int]) -> list[float]:
    """Return the ROUGE-L recall of the first 5, 10, 20 and 40 texts, joined, 0–1.

    Words are numbers from 1. The recall is 0 for a reference without words.
    """
    reference_counts, recalls = Counter(reference), []
    for num_best in KEPT:
        joined = list(chain.from_iterable(ranked[:num_best]))
        bits, _ = match_bits(joined, reference_counts)
        recalls.append(sequence_length(reference, bits, len(joined)) / max(1, len(reference)))
    return recalls
