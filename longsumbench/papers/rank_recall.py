"""Hierarchical Transformer, Table 1: the ROUGE-L recall of a ranker's best paragraphs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from msgspec import structs

from longsumbench.analysis.dataset.rank_recall import KEPT, RankRecall, RankRecallSettings, rank_recall
from longsumbench.core import UNRANKED, RankerSettings, build_settings
from longsumbench.core.ranker import learned_ranker
from longsumbench.leaderboards import seed_groups
from longsumbench.leaderboards.published import read_rank_recalls
from longsumbench.metrics.aggregate import PERCENT, Estimate
from longsumbench.papers import claims
from longsumbench.papers.conditions import ReadableDataset, build_options, read_datasets
from longsumbench.papers.page import ONE_SEED, Job, Page
from longsumbench.papers.paper_tables import Ordering
from longsumbench.render.tables import Block

_PRINTED_ON = "WikiSum"
_PRINTED_AS = {"tfidf": "Similarity (tf-idf)", "lstm": "Ranking (LSTM regressor)"}  # ranker → system in published.csv
_FEWEST_TESTED = 2  # examples of a test
_RANKER = "ranker."  # options with this prefix are settings of learned rankers
_RECALL_COLUMNS = ("ranker", "", *(f"best {num_best}" for num_best in KEPT))


def rank_recall_page(job: Job) -> Page:
    """Return the recall of each ranker's best 5, 10, 20 and 40 paragraphs, 0–100.

    The options `rank`, `unit`, `seed`, `device` and `ranker.KEY` are those of `longsumbench stats` with rankers.

    Claims of the paper table name two rankers. Each is tested for each number of paragraphs, on examples with more
    paragraphs. Of the others both rankers keep all, and only their order differs.
    """
    settings = build_options(job, RankRecallSettings)
    options = {name.removeprefix(_RANKER): job.options[name] for name in job.options if name.startswith(_RANKER)}
    inherited = {"unit": settings.unit, "seed": settings.seed, "device": settings.device}
    ranker: RankerSettings = build_settings(RankerSettings, {**inherited, **options}, _RANKER)
    datasets, conditions = read_datasets(job)
    blocks, numbers, tested = [], list[claims.TableNumber](), list[claims.Claim]()
    for dataset in datasets:
        result = rank_recall(dataset.settings, settings, ranker)
        printed = _printed_recalls() if dataset.name == _PRINTED_ON else {}
        recalls = _Recalls(dataset, result, printed, f"{job.paper_table.source} {job.paper_table.prints}")
        blocks.append(recalls.block())
        numbers += recalls.numbers()
        tested += [claim for ordering in job.paper_table.orderings for claim in recalls.claims(ordering)]
    verdicts = claims.judge_claims(tested)
    training = f"Ours: learned rankers train for {ranker.steps:,} steps of {ranker.batch_size} titles"
    sizes = f"vectors of {ranker.dimension} and a vocabulary of {ranker.vocabulary_size:,} entries"
    return Page(
        blocks=tuple(blocks),
        numbers=claims.long_table(numbers, verdicts),
        verdicts=verdicts,
        conditions=(
            *conditions,
            "The paper does not say on which split it measures, nor which ROUGE-L: of a sentence or of a summary.",
            f"{training}, with {sizes}. The paper gives neither steps nor batch.",
        ),
    )


def _printed_recalls() -> dict[str, dict[int, str]]:
    by_system = {name.partition(" (liu2019hiersumm")[0]: recalls for name, recalls in read_rank_recalls(_PRINTED_ON)}
    return {ranker: by_system[system] for ranker, system in _PRINTED_AS.items()}


def _measure_name(num_best: int) -> str:
    return f"ROUGE-L recall of the best {num_best}"


@dataclass(frozen=True)
class _Recalls:
    """The recalls on one dataset: ours of each example; printed ones by ranker and number of paragraphs, 0–100."""

    dataset: ReadableDataset
    result: RankRecall
    printed: Mapping[str, Mapping[int, str]]
    source: str

    @cached_property
    def estimates(self) -> dict[tuple[str, int], Estimate]:
        """(ranker, number of paragraphs) → recall, 0–100."""
        rows = self.result.table().itertuples(index=False)
        return {(name, num_best): Estimate(mean, low, high) for name, num_best, mean, low, high in rows}

    def block(self) -> Block:
        """Return printed and ours, a line for each ranker."""
        cells = []
        for name in self.result.recalls:
            label = f"{name} (order of the text)" if name == UNRANKED else name
            if name in self.printed:
                printed = f"printed on {self.dataset.name}"
                cells.append([_PRINTED_AS[name], printed, *(self.printed[name][num_best] for num_best in KEPT)])
            our_label = f"ours on {self.dataset.settings.name}"
            cells.append([label, our_label, *(f"{self.estimates[name, num_best]:.2f}" for num_best in KEPT)])
        return Block(self.dataset.label, tuple(self.result.notes()), _RECALL_COLUMNS, "ll" + "r" * len(KEPT), cells)

    def numbers(self) -> Iterator[claims.TableNumber]:
        """Yield printed and ours, of each ranker and number of paragraphs."""
        size = len(self.result.texts_of_each)
        for (name, num_best), number in self.estimates.items():
            labels = self.dataset.name, name, _measure_name(num_best)
            if name in self.printed:
                yield claims.TableNumber(
                    claims.PRINTED, *labels, float(self.printed[name][num_best]), source=self.source
                )
            yield claims.TableNumber(claims.OURS, *labels, *number, n=size)

    def claims(self, ordering: Ordering) -> Iterator[claims.Claim]:
        """Yield a claim about two rankers for each number of paragraphs, tested on the examples with more."""
        higher, lower = ordering.rows
        missing = [name for name in ordering.rows if name not in self.result.recalls]
        trained = any(map(learned_ranker, ordering.rows))
        for place, num_best in enumerate(KEPT):
            paper = structs.replace(ordering, on=_measure_name(num_best))
            more, condition = self.result.texts_of_each > num_best, f"more than {num_best} {self.result.unit}s"
            comparison, reason = None, f"those of {len(more):,} with {condition}"
            if missing:
                reason = f"rank= does not name {' and '.join(missing)}"
            elif (num := int(more.sum())) < _FEWEST_TESTED:
                reason = f"{num or 'no'} example has {condition}"
            else:
                gaps = self.result.recalls[higher][more, place] - self.result.recalls[lower][more, place]
                comparison = seed_groups.compare_examples(PERCENT * gaps[:, None])
            claim = claims.claim_about_texts(paper, self.dataset.name, comparison, reason)
            yield claim._replace(obstacle=ONE_SEED) if trained and comparison else claim
