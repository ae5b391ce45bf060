"""Hierarchical Transformer, Table 1: the ROUGE-L recall of a ranker's best paragraphs."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from longsumbench.core import UNRANKED, RankerSettings, build_settings
from longsumbench.core.ranker import learned_ranker
from longsumbench.formatting import format_count
from longsumbench.leaderboards.seed_groups import PairDifference
from longsumbench.metrics.aggregate import PERCENT
from longsumbench.metrics.statistics import paired_effect
from longsumbench.views.tables import Block
from longsumbench_reproduction.analysis.rank_recall import (
    KEPT,
    RankRecall,
    RankRecallSettings,
    rank_recall,
)
from longsumbench_reproduction.papers import claims
from longsumbench_reproduction.papers.conditions import (
    ReadableDataset,
    build_options,
    read_datasets,
)
from longsumbench_reproduction.papers.page_model import Job, Page
from longsumbench_reproduction.papers.paper_tables import PaperClaim
from longsumbench_reproduction.papers.published_rows import read_printed_table, require_seeds

_PRINTED_ON = "WikiSum"
# Ranker → system in published.csv
_PRINTED_AS = {"tfidf": "Similarity (tf-idf)", "lstm": "Ranking (LSTM regressor)"}
_FEWEST_TESTED = 2  # examples of a test
_RANKER = "ranker."  # options with this prefix are settings of learned rankers
_RECALL_COLUMNS = ("ranker", "", *(f"best {num_best}" for num_best in KEPT))


def rank_recall_page(job: Job) -> Page:
    """Return the recall of each ranker's best 5, 10, 20 and 40 paragraphs, 0–100.

    The options `rank`, `rank_checkpoint`, `unit`, `device` and `ranker.KEY` are those of `longsumbench stats` with
    rankers; `seed` has one or several, separated by commas.

    A claim of the paper table names two rankers. Its parts are the numbers of paragraphs, on examples with more
    paragraphs. Of the others both rankers keep all, and only their order differs.
    """
    seeds = str(job.options["seed"]).split(",")
    options = {
        name.removeprefix(_RANKER): value
        for name, value in job.options.items()
        if name.startswith(_RANKER)
    }
    # A ranker is trained with each seed
    trainings = []
    for seed in seeds:
        settings = build_options(job, RankRecallSettings, seed=seed.strip())
        ranker = build_settings(RankerSettings, {**settings.shared(), **options}, _RANKER)
        trainings.append((settings, ranker))
    datasets, conditions = read_datasets(job)
    recalls: _Recalls = {}
    blocks, numbers = list[Block](), list[claims.TableNumber]()
    for dataset in datasets:
        recalls[dataset.name] = [rank_recall(dataset.settings, *training) for training in trainings]
        block, dataset_numbers = _tabulate_recalls(job, dataset, recalls[dataset.name])
        blocks.append(block)
        numbers += dataset_numbers
    verdicts = claims.evaluate_claims(
        [_compare_rankers(job, paper, recalls) for paper in job.paper_table.claims_at(job.scale)]
    )
    training = f"learned rankers train for {ranker.steps:,} steps of {ranker.batch_size} titles"
    sizes = f"vectors of {ranker.dimension} and a vocabulary of {ranker.vocabulary_size:,} entries"
    conditions += [
        f"Our numbers are means over {format_count(len(seeds), 'seed')} of the rankers' training.",
        "The paper does not say on which split it measures, nor which ROUGE-L: of a sentence or of a summary.",
        f"Ours: {training}, with {sizes}. The paper gives neither steps nor batch.",
    ]
    table = claims.long_table(numbers, verdicts)
    return Page(tuple(blocks), table, verdicts, tuple(conditions))


def _printed_recalls(job: Job) -> dict[str, Sequence[str]]:
    """Return for each ranker its printed recalls, in the order of `KEPT`."""
    rows = read_printed_table(job.paper_table).groupby("system")["value"]
    return {ranker: list(rows.get_group(system)) for ranker, system in _PRINTED_AS.items()}


def _measure_name(num_best: int) -> str:
    return f"ROUGE-L recall of the best {num_best}"


_Recalls = dict[str, list[RankRecall]]  # the paper's name of a dataset → our recalls, of each seed


def _recall_values(
    results: Sequence[RankRecall], ranker: str, num_best: int
) -> NDArray[np.float64]:
    """Return the recalls of a ranker's best paragraphs, [examples, seeds], 0–100."""
    place = KEPT.index(num_best)
    return PERCENT * np.stack([result.recalls[ranker][:, place] for result in results], axis=1)


def _tabulate_recalls(
    job: Job, dataset: ReadableDataset, results: Sequence[RankRecall]
) -> tuple[Block, list[claims.TableNumber]]:
    """Return printed and ours on a dataset, a line for each ranker; and the same numbers for the CSV."""
    first, source = results[0], f"{job.paper_table.source} {job.paper_table.prints}"
    printed = _printed_recalls(job) if dataset.name == _PRINTED_ON else {}
    rows, numbers = list[list[str]](), []
    for name in first.recalls:
        if name in printed:
            printed_label = f"printed on {dataset.name}"
            rows.append([_PRINTED_AS[name], printed_label, *printed[name]])
        our_name = f"{name} (order of the text)" if name == UNRANKED else name
        row = [our_name, f"ours on {dataset.settings.name}"]
        for index, num_best in enumerate(KEPT):
            labels = dataset.name, name, _measure_name(num_best)
            if name in printed:
                value = float(printed[name][index])
                numbers.append(claims.TableNumber(claims.PRINTED, *labels, value, source=source))
            effect = paired_effect(_recall_values(results, name, num_best))
            half, n = effect.half_width(), len(first.texts_of_each)
            bounds = effect.mean, effect.mean - half, effect.mean + half
            numbers.append(claims.TableNumber(claims.OURS, *labels, *bounds, n, len(results)))
            row.append(f"{effect.mean:.2f}")
        rows.append(row)
    align = "ll" + "r" * len(KEPT)
    return Block(dataset.label, tuple(first.notes()), _RECALL_COLUMNS, align, rows), numbers


def _compare_rankers(job: Job, paper: PaperClaim, recalls: _Recalls) -> claims.Claim:
    """Return a claim about two rankers, with a part for each number of paragraphs that enough examples exceed."""
    claim = claims.start_claim(job, paper)
    if claim.obstacle:
        return claim
    first = next(iter(recalls.values()))[0]
    if missing := [name for name in paper.rows if name not in first.recalls]:
        return claim.not_tested(f"rank= does not name {' and '.join(missing)}")
    parts = []
    for (dataset, results), num_best in product(recalls.items(), KEPT):
        # Of shorter examples both rankers keep all paragraphs, and only their order differs
        more = results[0].texts_of_each > num_best
        if more.sum() >= _FEWEST_TESTED:
            higher, lower = (_recall_values(results, name, num_best)[more] for name in paper.rows)
            difference = PairDifference(
                paired_effect(higher - lower), len(higher), len(higher), len(results)
            )
            measure = _measure_name(num_best)
            parts.append(claims.Part(paper.pairs[0], dataset, measure, difference))
    if not parts:
        return claim.not_tested(f"too few examples have more than {KEPT[0]} {first.unit}s")
    tested = f"{len(parts)} of {len(recalls) * len(KEPT)} numbers of {first.unit}s"
    claim = claim._replace(parts=parts, reason=tested)
    return require_seeds(claim) if any(map(learned_ranker, paper.rows)) else claim
