"""Hierarchical Transformer, Table 1: the ROUGE-L recall of a ranker's best paragraphs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longsumbench.analysis.dataset.rank_recall import (
    KEPT,
    RankRecall,
    RankRecallSettings,
    rank_recall,
)
from longsumbench.core import UNRANKED, RankerSettings, build_settings
from longsumbench.core.ranker import learned_ranker
from longsumbench.formatting import format_count
from longsumbench.leaderboards.published import read_rank_recalls
from longsumbench.leaderboards.seed_groups import PairDifference
from longsumbench.metrics.aggregate import PERCENT, Estimate
from longsumbench.metrics.statistics import paired_effect
from longsumbench.papers import claims
from longsumbench.papers.conditions import ReadableDataset, build_options, read_datasets
from longsumbench.papers.page import Job, Page
from longsumbench.papers.paper_tables import PaperClaim
from longsumbench.papers.printed import require_seeds
from longsumbench.views.tables import Block

_PRINTED_ON = "WikiSum"
_PRINTED_AS = {
    "tfidf": "Similarity (tf-idf)",
    "lstm": "Ranking (LSTM regressor)",
}  # ranker → system in published.csv
_FEWEST_TESTED = 2  # examples of a test
_RANKER = "ranker."  # options with this prefix are settings of learned rankers
_RECALL_COLUMNS = ("ranker", "", *(f"best {num_best}" for num_best in KEPT))


def rank_recall_page(job: Job) -> Page:
    """Return the recall of each ranker's best 5, 10, 20 and 40 paragraphs, 0–100.

    The options `rank`, `unit`, `device` and `ranker.KEY` are those of `longsumbench stats` with rankers; `seed` has one
    or several, separated by commas.

    A claim of the paper table names two rankers. Its parts are the numbers of paragraphs, on examples with more
    paragraphs. Of the others both rankers keep all, and only their order differs.
    """
    trainings = _trainings(job)
    source = f"{job.paper_table.source} {job.paper_table.prints}"
    datasets, conditions = read_datasets(job)
    recalls = []
    for dataset in datasets:
        results = [rank_recall(dataset.settings, *training) for training in trainings]
        printed = _printed_recalls() if dataset.name == _PRINTED_ON else {}
        recalls.append(_Recalls(dataset, results, printed, source))
    tested = [_compare_rankers(job, paper, recalls) for paper in job.paper_table.claims]
    verdicts = claims.judge_claims(tested)
    numbers = chain.from_iterable(of_dataset.numbers() for of_dataset in recalls)
    ranker = trainings[0].ranker
    training = (
        f"Ours: learned rankers train for {ranker.steps:,} steps of {ranker.batch_size} titles"
    )
    sizes = f"vectors of {ranker.dimension} and a vocabulary of {ranker.vocabulary_size:,} entries"
    seeds = format_count(len(trainings), "seed")
    return Page(
        blocks=tuple(of_dataset.block() for of_dataset in recalls),
        numbers=claims.long_table(numbers, verdicts),
        verdicts=verdicts,
        conditions=(
            *conditions,
            f"Our numbers are means over {seeds} of the rankers' training.",
            "The paper does not say on which split it measures, nor which ROUGE-L: of a sentence or of a summary.",
            f"{training}, with {sizes}. The paper gives neither steps nor batch.",
        ),
    )


class _Training(NamedTuple):
    """The settings of one seed."""

    settings: RankRecallSettings
    ranker: RankerSettings


def _trainings(job: Job) -> list[_Training]:
    trainings = []
    for seed in str(job.options["seed"]).split(","):
        settings = build_options(job, RankRecallSettings, seed=seed.strip())
        options = {"unit": settings.unit, "seed": settings.seed, "device": settings.device}
        for name, value in job.options.items():
            if name.startswith(_RANKER):
                options[name.removeprefix(_RANKER)] = value
        trainings.append(_Training(settings, build_settings(RankerSettings, options, _RANKER)))
    return trainings


def _printed_recalls() -> dict[str, dict[int, str]]:
    by_system = {}
    for name, recalls in read_rank_recalls(_PRINTED_ON):
        by_system[name.partition(" (liu2019hiersumm")[0]] = recalls
    return {ranker: by_system[system] for ranker, system in _PRINTED_AS.items()}


def _measure_name(num_best: int) -> str:
    return f"ROUGE-L recall of the best {num_best}"


@dataclass(frozen=True)
class _Recalls:
    """The recalls on one dataset.

    Attributes:
        dataset: the dataset.
        results: ours, of each seed.
        printed: ranker → number of paragraphs → recall, 0–100.
        source: of the printed recalls.
    """

    dataset: ReadableDataset
    results: Sequence[RankRecall]
    printed: Mapping[str, Mapping[int, str]]
    source: str

    def values(self, ranker: str, num_best: int) -> NDArray[np.float64]:
        """Return the recalls of a ranker's best paragraphs, [examples, seeds], 0–100."""
        place = KEPT.index(num_best)
        return PERCENT * np.stack(
            [result.recalls[ranker][:, place] for result in self.results], axis=1
        )

    @cached_property
    def estimates(self) -> dict[tuple[str, int], Estimate]:
        """(ranker, number of paragraphs) → recall, 0–100, with its interval over examples and seeds."""
        numbers = {}
        for key in product(self.results[0].recalls, KEPT):
            effect = paired_effect(self.values(*key))
            half = effect.half_width()
            numbers[key] = Estimate(effect.mean, effect.mean - half, effect.mean + half)
        return numbers

    def block(self) -> Block:
        """Return printed and ours, a line for each ranker."""
        cells = []
        for name in self.results[0].recalls:
            if name in self.printed:
                numbers = [self.printed[name][num_best] for num_best in KEPT]
                cells.append([_PRINTED_AS[name], f"printed on {self.dataset.name}", *numbers])
            label = f"{name} (order of the text)" if name == UNRANKED else name
            recalls = [f"{self.estimates[name, num_best]:.2f}" for num_best in KEPT]
            cells.append([label, f"ours on {self.dataset.settings.name}", *recalls])
        notes, align = tuple(self.results[0].notes()), "ll" + "r" * len(KEPT)
        return Block(self.dataset.label, notes, _RECALL_COLUMNS, align, cells)

    def numbers(self) -> Iterator[claims.TableNumber]:
        """Yield printed and ours, of each ranker and number of paragraphs."""
        size, seeds = len(self.results[0].texts_of_each), len(self.results)
        for (name, num_best), number in self.estimates.items():
            labels = self.dataset.name, name, _measure_name(num_best)
            if name in self.printed:
                yield claims.TableNumber(
                    claims.PRINTED, *labels, float(self.printed[name][num_best]), source=self.source
                )
            yield claims.TableNumber(claims.OURS, *labels, *number, n=size, seeds=seeds)


def _compare_rankers(job: Job, paper: PaperClaim, recalls: Sequence[_Recalls]) -> claims.Claim:
    """Return a claim about two rankers, with a part for each number of paragraphs that enough examples exceed."""
    claim = claims.start_claim(job, paper)
    if claim.obstacle:
        return claim
    results = recalls[0].results[0]
    missing = [name for name in paper.rows if name not in results.recalls]
    if missing:
        return claim.not_tested(f"rank= does not name {' and '.join(missing)}")
    parts = []
    for of_dataset, num_best in product(recalls, KEPT):
        more = of_dataset.results[0].texts_of_each > num_best
        if more.sum() >= _FEWEST_TESTED:
            higher, lower = (of_dataset.values(name, num_best)[more] for name in paper.rows)
            effect = paired_effect(higher - lower)
            comparison = PairDifference(effect, len(higher), len(of_dataset.results))
            name, measure = of_dataset.dataset.name, _measure_name(num_best)
            parts.append(claims.Part(paper.pairs[0], name, measure, comparison))
    if not parts:
        return claim.not_tested(f"too few examples have more than {KEPT[0]} {results.unit}s")
    reason = f"{len(parts)} of {len(recalls) * len(KEPT)} numbers of {results.unit}s"
    claim = claim._replace(parts=parts, reason=reason)
    return require_seeds(claim) if any(map(learned_ranker, paper.rows)) else claim
