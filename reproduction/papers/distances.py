"""PageSum, Figures 1 and 4: similarity of two sentences of a source by their distance, and distance of fused sentences.

The paper prints both without numbers, and gives no limit of what is near. The options of both kinds are those of
`longsumbench analyze`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from longsumbench.leaderboards import seed_groups
from longsumbench.metrics.aggregate import PERCENT
from longsumbench.metrics.statistics import ratio_over_examples
from longsumbench.views.tables import Block
from longsumbench_reproduction.analysis.fusion import (
    FusionResult,
    FusionSettings,
    analyze_fusion,
    chances,
)
from longsumbench_reproduction.analysis.locality import Locality, LocalitySettings, analyze_locality
from longsumbench_reproduction.papers import claims
from longsumbench_reproduction.papers.claims import OURS, TableNumber
from longsumbench_reproduction.papers.conditions import build_options, read_datasets
from longsumbench_reproduction.papers.page_model import Job, Page, picture_name
from longsumbench_reproduction.papers.paper_tables import PaperClaim

_LIMIT = 10  # sentences; pairs up to this distance are near
_SIMILARITY_MEASURE = "cosine × 100"
_HALF = 0.5  # of the source; fused sentences at a smaller distance are near
_PAIRS_MEASURE = "% of the pairs"

# A difference and the texts that were compared; or None and the reason
_Comparison = tuple[seed_groups.PairDifference | None, str]


def similarity_page(job: Job) -> Page:
    """Return the curve of each dataset; the option `encoder` is null for tf-idf vectors.

    The claim of the paper table is that near sentences are more similar than far ones. Near are pairs up to 10
    sentences apart.
    """
    settings = build_options(job, LocalitySettings)
    settings.distance = max(_LIMIT, settings.distance)  # so that no bin has near and far pairs
    ours = f"those of {settings.encoder}"
    if settings.encoder is None:
        ours = "tf-idf vectors (encoder=FOLDER or a hub name sets an encoder)"
    vectors = "The paper prints a curve without numbers, from sentence vectors of SimCSE (Gao et al. 2021)"
    analyze = partial(analyze_locality, settings=settings)
    sentences = [f"{vectors}; ours are {ours}."]
    return _analysis_page(job, analyze, _curve_numbers, _compare_similarity, sentences)


def fusions_page(job: Job) -> Page:
    """Return the bars of each dataset.

    The claim of the paper table is that more pairs are near than of random pairs. Near is less than half of the source
    apart, which most random pairs are.
    """
    settings = build_options(job, FusionSettings)
    analyze = partial(analyze_fusion, settings=settings)
    sentences = [
        "The paper prints bars without numbers. It does not say which ROUGE finds the pairs.",
        f"Ours: ROUGE-{settings.rouge}, t1 = {settings.overlap:g} %, t2 = {settings.rise:g} %.",
    ]
    return _analysis_page(job, analyze, _bar_numbers, _compare_near, sentences)


def _analysis_page(
    job: Job,
    analyze: Callable[..., Any],
    numbers_of: Callable[[str, Any], Iterator[TableNumber]],
    compare: Callable[[Any], _Comparison],
    sentences: Sequence[str],
) -> Page:
    """Return the first table and the picture of an analysis of each dataset, with the paper's claims."""
    datasets, conditions = read_datasets(job)
    blocks, numbers = list[Block](), list[TableNumber]()
    pictures, comparisons = dict[str, bytes](), dict[str, _Comparison]()
    for dataset in datasets:
        result = analyze(dataset.settings)
        blocks.append(replace(result.blocks()[0], heading=dataset.label))
        numbers += numbers_of(dataset.name, result)
        pictures[picture_name(job.paper_table, dataset.name)] = result.pictures()["png"]
        comparisons[dataset.name] = compare(result)
    verdicts = claims.evaluate_claims(
        [
            _compare_datasets(job, paper, comparisons)
            for paper in job.paper_table.claims_at(job.scale)
        ]
    )
    return Page(
        tuple(blocks),
        claims.long_table(numbers, verdicts),
        verdicts,
        (*conditions, *sentences),
        pictures,
    )


def _compare_datasets(
    job: Job, paper: PaperClaim, comparisons: Mapping[str, _Comparison]
) -> claims.Claim:
    """Return a claim with a part for each dataset; it is not tested if one has no comparison."""
    claim = claims.start_claim(job, paper)
    if claim.obstacle:
        return claim
    parts, reasons = [], []
    measure = paper.measures_at(job.scale)[0]
    for dataset in claim.datasets:
        comparison, reason = comparisons[dataset]
        reasons.append(f"{reason} on {dataset}")
        if comparison is None:
            return claim.not_tested(reasons[-1])
        parts.append(claims.Part(paper.pairs[0], dataset, measure, comparison))
    return claim._replace(parts=parts, reason="; ".join(reasons))


def _curve_numbers(dataset: str, curve: Locality) -> Iterator[TableNumber]:
    for _, row in curve.table().iterrows():
        at_distance = row["pairs of"] == "a distance"
        span = f"{row['from']}–{row['to']}" if row["from"] < row["to"] else f"{row['from']}"
        name = f"distance {span}" if at_distance else row["pairs of"]
        mean, low, high = (PERCENT * row[column] for column in ("similarity", "low", "high"))
        yield TableNumber(
            OURS, dataset, name, _SIMILARITY_MEASURE, mean, low, high, int(row["examples"])
        )


def _compare_similarity(curve: Locality) -> _Comparison:
    comparison = seed_groups.compare_examples(PERCENT * curve.near_minus_far(_LIMIT)[:, None])
    near, none = f"near: up to {_LIMIT} sentences apart", f"no source has {_LIMIT + 2} sentences"
    return comparison, near if comparison else none


def _bar_numbers(dataset: str, fusions: FusionResult) -> Iterator[TableNumber]:
    for _, row in fusions.bars().iterrows():
        name, n = f"distance {row['from']:g}–{row['to']:g}", int(row["examples"])
        share, low, high = (float(row[column]) for column in ("share", "low", "high"))
        yield TableNumber(OURS, dataset, name, _PAIRS_MEASURE, share, low, high, n)
        yield TableNumber(OURS, dataset, name, "pairs", int(row["pairs"]), n=n)
        yield TableNumber(
            OURS, dataset, f"{name}, by chance", _PAIRS_MEASURE, float(row["chance"]), n=n
        )


def _compare_near(fusions: FusionResult) -> _Comparison:
    """Compare the share of near pairs with that of random pairs; the pairs of an example count together."""
    if not fusions.fusions:
        return None, "no reference sentence joins two source sentences"
    rows = {name: row for row, name in enumerate(fusions.ids)}
    # Pairs of one example are not independent, so the examples are the sample
    num_near, pairs, by_chance = np.zeros((3, len(rows)))  # numbers of pairs in each example
    for fusion in fusions.fusions:
        row = rows[fusion.id]
        num_near[row] += fusion.distance < _HALF
        pairs[row] += 1
        by_chance[row] += chances(fusion.num_source_sentences, 2)[0]
    share, expected = (PERCENT * float(part.sum() / pairs.sum()) for part in (num_near, by_chance))
    has_pairs = pairs > 0
    effect = ratio_over_examples(PERCENT * (num_near - by_chance)[has_pairs], pairs[has_pairs])
    near = f"near: less than half of the source apart, {share:.1f} % of the pairs, of random pairs {expected:.1f} %"
    num_texts = int(has_pairs.sum())
    return seed_groups.PairDifference(effect, num_texts, num_texts), near
