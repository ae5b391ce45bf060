"""PageSum, Figure 1: the similarity of two sentences of a source by their distance."""

import numpy as np
from msgspec import structs

from longsumbench.analysis.fusion import FusionSettings, FusionsFound, analyze_fusion, chances, draw_fusion
from longsumbench.analysis.locality import Locality, LocalitySettings, analyze_locality, draw_locality
from longsumbench.core import build_settings
from longsumbench.metrics.aggregate import PERCENT
from longsumbench.metrics.statistics import ratio_over_examples
from longsumbench.papers.claims import (
    OURS,
    Claim,
    PairDifference,
    TableNumber,
    claim_about_texts,
    compare_examples,
    judge_claims,
    long_table,
)
from longsumbench.papers.conditions import ReadableDataset, options_named, read_datasets
from longsumbench.papers.page import Job, Page
from longsumbench.papers.paper_tables import Ordering
from longsumbench.render.tables import Block

_LIMIT = 10  # sentences; pairs up to this distance are near
_SIMILARITY_MEASURE = "cosine × 100"
_LOCALITY_OPTIONS = ("encoder", "pooling", "sample", "distance", "batch_size", "device")


def similarity_page(job: Job) -> Page:
    """Return the curve of each dataset.

    The options `encoder`, `pooling`, `sample`, `distance`, `batch_size` and `device` are those of
    `longsumbench analyze locality`. `encoder` is null for tf-idf vectors.

    The claim of the paper table is that near sentences are more similar than far ones. Near are pairs up to 10
    sentences apart. The paper gives no such limit.

    Raises:
        UsageError: no dataset can be read, or the encoder cannot be used.
        EnvironmentProblem: no dataset can be read.
        DataError: a file is damaged, or no source of a dataset has two sentences.
    """
    readable = read_datasets(job)
    settings = build_settings(LocalitySettings, dict(options_named(job, *_LOCALITY_OPTIONS)), "")
    settings.distance = max(_LIMIT, settings.distance)  # so that no bin has near and far pairs
    blocks, numbers, claims, pictures = [], list[TableNumber](), list[Claim](), {}
    for dataset in readable.datasets:
        locality = analyze_locality(dataset.settings, settings)
        block = locality.block()
        blocks.append(Block(dataset.label, block.notes, block.columns, block.align, block.rows))
        numbers += _curve_numbers(dataset, locality)
        comparison = compare_examples(PERCENT * locality.near_minus_far(_LIMIT)[:, None])
        reason = f"near: up to {_LIMIT} sentences apart" if comparison else f"no source has {_LIMIT + 2} sentences"
        papers = [structs.replace(paper, on=_SIMILARITY_MEASURE) for paper in job.paper_table.orderings]
        claims += [claim_about_texts(paper, dataset.name, comparison, reason) for paper in papers]
        pictures[dataset.picture_name(job)] = draw_locality(locality)["png"]
    verdicts = judge_claims(claims)
    return Page(
        blocks=tuple(blocks),
        numbers=long_table(numbers, verdicts),
        verdicts=verdicts,
        conditions=(*readable.conditions, *_describe_vectors(settings)),
        pictures=pictures,
    )


def _curve_numbers(dataset: ReadableDataset, locality: Locality) -> list[TableNumber]:
    rows = []
    for _, row in locality.table().iterrows():
        at_distance = row["pairs of"] == "a distance"
        span = f"{row['from']}–{row['to']}" if row["from"] < row["to"] else f"{row['from']}"
        name = f"distance {span}" if at_distance else row["pairs of"]
        mean, low, high = (PERCENT * row[column] for column in ("similarity", "low", "high"))
        rows.append(TableNumber(OURS, dataset.name, name, _SIMILARITY_MEASURE, mean, low, high, int(row["examples"])))
    return rows


def _describe_vectors(settings: LocalitySettings) -> list[str]:
    printed = "The paper prints a curve without numbers, from sentence vectors of SimCSE (Gao et al. 2021)"
    if settings.encoder is None:
        return [f"{printed}; ours are tf-idf vectors (encoder=FOLDER or a hub name sets an encoder)."]
    return [f"{printed}; ours are those of {settings.encoder}."]


_HALF = 0.5  # of the source; pairs at a smaller distance are near
_PAIRS_MEASURE = "% of the pairs"
_FUSION_OPTIONS = ("rouge", "overlap", "rise", "bins", "sample")


def fusions_page(job: Job) -> Page:
    """Return the bars of each dataset.

    The options `rouge`, `overlap`, `rise`, `bins` and `sample` are those of `longsumbench analyze fusion`.

    The claim of the paper table is that more than half of the pairs are near. Near are pairs whose distance is below
    half of the source. The paper gives no such limit. Most random pairs are near, too: the share of these is stated.

    Raises:
        UsageError: no dataset can be read, or an option is invalid.
        EnvironmentProblem: no dataset can be read.
        DataError: a file is damaged, or no example of a dataset can be used.
    """
    readable = read_datasets(job)
    settings = build_settings(FusionSettings, dict(options_named(job, *_FUSION_OPTIONS)), "")
    blocks, numbers, claims, pictures = [], list[TableNumber](), list[Claim](), {}
    for dataset in readable.datasets:
        analysis = analyze_fusion(dataset.settings, settings)
        block = analysis.blocks()[0]
        blocks.append(Block(dataset.label, block.notes, block.columns, block.align, block.rows))
        numbers += _bar_numbers(dataset, analysis)
        claims += [_compare_near(paper, dataset, analysis) for paper in job.paper_table.orderings]
        pictures[dataset.picture_name(job)] = draw_fusion(analysis)["png"]
    verdicts = judge_claims(claims)
    printed = "The paper prints bars without numbers. It does not say which ROUGE finds the pairs."
    settings_note = f"Ours: ROUGE-{settings.rouge}, t1 = {settings.overlap:g} %, t2 = {settings.rise:g} %."
    return Page(
        blocks=tuple(blocks),
        numbers=long_table(numbers, verdicts),
        verdicts=verdicts,
        conditions=(*readable.conditions, printed, settings_note),
        pictures=pictures,
    )


def _bar_numbers(dataset: ReadableDataset, analysis: FusionsFound) -> list[TableNumber]:
    rows = []
    for _, row in analysis.bars().iterrows():
        name = f"distance {row['from']:g}–{row['to']:g}"
        n = int(row["examples"])
        share, low, high = (float(row[column]) for column in ("share", "low", "high"))
        rows.append(TableNumber(OURS, dataset.name, name, _PAIRS_MEASURE, share, low, high, n))
        rows.append(TableNumber(OURS, dataset.name, name, "pairs", int(row["pairs"]), n=n))
        rows.append(TableNumber(OURS, dataset.name, f"{name}, by chance", _PAIRS_MEASURE, float(row["chance"]), n=n))
    return rows


def _compare_near(paper: Ordering, dataset: ReadableDataset, analysis: FusionsFound) -> Claim:
    """Compare the share of near pairs with that of far pairs; the pairs of an example count together."""
    paper = structs.replace(paper, on=_PAIRS_MEASURE)
    if not analysis.fusions:
        reason = "no reference sentence joins two source sentences"
        return claim_about_texts(paper, dataset.name, None, reason)
    rows = {name: row for row, name in enumerate(analysis.ids)}
    num_near, pairs, by_chance = np.zeros((3, len(rows)))  # numbers of pairs in each example
    for fusion in analysis.fusions:
        row = rows[fusion.id]
        num_near[row] += fusion.distance < _HALF
        pairs[row] += 1
        by_chance[row] += chances(fusion.of, 2)[0]
    share, expected = (PERCENT * float(part.sum() / pairs.sum()) for part in (num_near, by_chance))
    reason = f"near: less than half of the source apart, {share:.1f} % of the pairs, of random pairs {expected:.1f} %"
    has_pairs = pairs > 0
    effect = ratio_over_examples(PERCENT * (2 * num_near - pairs)[has_pairs], pairs[has_pairs])
    return claim_about_texts(paper, dataset.name, PairDifference(effect, int(has_pairs.sum())), reason)
