"""PageSum, Figure 4: the distance of the two source sentences that a reference sentence joins."""

import numpy as np
from msgspec import structs

from longsumbench.analysis.fusion.fusion import FusionSettings, FusionsFound, analyze_fusion, chances
from longsumbench.analysis.fusion.page import draw_fusion
from longsumbench.core import build_settings
from longsumbench.metrics.aggregate import PERCENT
from longsumbench.metrics.statistics import ratio_over_examples
from longsumbench.papers.claims import (
    OURS,
    Claim,
    PairDifference,
    TableNumber,
    claim_about_texts,
    judge_claims,
    long_table,
)
from longsumbench.papers.page import Job, Page
from longsumbench.papers.paper_tables import Ordering
from longsumbench.papers.texts.reachable import ReadableDataset, options_named, read_datasets
from longsumbench.render.tables import Block

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
