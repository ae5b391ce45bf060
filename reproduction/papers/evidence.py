"""Kind `evidence`: what a system looked at while it wrote one summary (SEAL, Figure 5; PageSum, Figure 3).

Job --evidence_page--> Page: pictures of one example of each row, and numbers over all examples with evidence

evidence of a run --measure_examples--> a table, one row per example --number_blocks--> blocks

Measures of an example:

    Selections    share of the segments, after the first, that have another selection than the segment before
    Weights       mean weight of the best unit; share of the steps, after the first, that have the best unit of the step
                  before; share of any two steps with the same best unit, which is expected if the order of the steps
                  has no effect; share of the steps at which the weights are on few units: 1 / Σ weight² is less than
                  half of the units
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from longsumbench.errors import DataError
from longsumbench.leaderboards import seed_groups
from longsumbench.metrics.aggregate import PERCENT, Estimate
from longsumbench.runs.evidence import read_evidence, stored_indices
from longsumbench.runs.record import RunRecord
from longsumbench.runs.run_names import describe_run
from longsumbench.views.evidence.array_views import Selections, View, Weights, views
from longsumbench.views.evidence.picture import draw_views
from longsumbench.views.tables import Block
from longsumbench_reproduction.analysis.sampled import estimate_mean
from longsumbench_reproduction.papers import claims
from longsumbench_reproduction.papers.conditions import build_row_page
from longsumbench_reproduction.papers.output_examples import (
    RowExample,
    describe_problem,
    inspect_rows,
    keep_first_runs,
)
from longsumbench_reproduction.papers.page_model import Job, Page, picture_name
from longsumbench_reproduction.papers.paper_tables import PaperClaim
from longsumbench_reproduction.papers.published_rows import (
    RowMeans,
    describe_missing,
    pass_gate,
    read_row_means,
)

_CHANGED, _SELECTED = "changed_selections", "selected_units"
_BEST, _EQUAL, SAME_BEST, _CHANCE = (
    "best_weight",
    "equal_weight",
    "same_best_unit",
    "same_best_unit_any_two",
)
_FEW, _ONE_HALF = "few_units", 0.5
_SELECTION_COLUMNS = {
    _CHANGED: "other selection than\nthe segment before, %",
    _SELECTED: "units selected\nfor a segment",
}
_WEIGHT_COLUMNS = {
    _BEST: "weight of the\nbest unit, %",
    _EQUAL: "if all\nwere equal",
    SAME_BEST: "same best unit as\nthe step before, %",
    _CHANCE: "as any\nother step",
    _FEW: "weights on\nfew units, %",
}
_NOTES = {
    _CHANGED: "A unit is a snippet of the source. A selection differs if it has other snippets.",
    _BEST: "A unit is a page of the source. The best unit of a step is the one with the greatest weight. "
    "The weights of a step are on few units if 1 / Σ weight² is less than half of the number of units.",
}
_MEASURES_FOOTNOTE = (
    "Means over the examples with evidence; ±: half the 95 % interval over examples."
)


def reference_views(all_views: Sequence[View]) -> list[View]:
    """Return the views without weights at the steps of the output, if there are weights at those of the reference."""
    if not any(map(has_reference_steps, all_views)):
        return list(all_views)
    return [
        view for view in all_views if not isinstance(view, Weights) or has_reference_steps(view)
    ]


def has_reference_steps(view: View) -> bool:
    """Return True for weights at each step of the reference."""
    return isinstance(view, Weights) and view.text == "reference"


def measure_examples(folder: Path) -> pd.DataFrame:
    """Measure all examples in a folder of evidence, a row for each place; NaN where a measure does not apply.

    Raises:
        DataError: a file is damaged.
    """
    rows = {}
    for place in sorted(stored_indices(folder)):
        try:
            _, evidence = read_evidence(folder, place)
        except DataError as error:
            raise DataError(describe_problem(error), folder / f"{place}.json") from error
        rows[place] = dict[str, float]()
        for view in reference_views(views(evidence)):
            rows[place].update(measure_view(view))
    return pd.DataFrame([*rows.values()], index=[*rows], dtype=float)


def measure_view(view: View) -> Iterator[tuple[str, float]]:
    """Yield the name and the number of each measure of a view; nothing for an empty output. Shares are 0–1."""
    if isinstance(view, Selections) and len(view.counts):
        is_selected = view.counts > 0
        changed = (is_selected[1:] != is_selected[:-1]).any(axis=1)
        yield _CHANGED, float(changed.mean()) if len(changed) else np.nan
        yield _SELECTED, float(is_selected.sum(axis=1).mean())
    elif isinstance(view, Weights) and view.values.size:
        best = np.array(strongest_units(view))
        counts, steps = np.bincount(best), len(best)
        yield _BEST, float(np.nanmax(view.values, axis=0).mean())
        yield _EQUAL, 1 / len(view.values)
        yield SAME_BEST, float((best[1:] == best[:-1]).mean()) if steps > 1 else np.nan
        effective = 1 / np.nansum(view.values**2, axis=0)  # number of units at each step
        yield _FEW, float((effective < _ONE_HALF * np.isfinite(view.values).sum(axis=0)).mean())
        yield (
            _CHANCE,
            float((counts * (counts - 1)).sum() / (steps * (steps - 1))) if steps > 1 else np.nan,
        )


def strongest_units(weights: Weights) -> list[int]:
    """Return the unit with the highest weight at each step; of a blank token, that of the step before it."""
    known = np.where(np.isnan(weights.values), -np.inf, weights.values)
    units: list[int] = known.argmax(axis=0).tolist()
    for step, token in enumerate(weights.tokens or ()):
        if step and not token.strip():
            units[step] = units[step - 1]
    return units


def number_blocks(tables: Mapping[str, pd.DataFrame]) -> list[Block]:
    """Return a block for each kind of evidence; `tables` has the measures of each row's examples."""
    blocks = []
    for columns in (_SELECTION_COLUMNS, _WEIGHT_COLUMNS):
        first = next(iter(columns))
        rows = []
        for name, table in tables.items():
            if first in table:
                cells = [name, f"{len(table):,}"]
                for column in columns:
                    number = estimate_measure(table[column], column)
                    cells.append(f"{number:.1f}" if number else "")
                rows.append(cells)
        if rows:
            heads = ("row", "examples", *columns.values())
            align = "l" + "r" * (len(heads) - 1)
            heading, notes = "All examples with evidence", (_NOTES[first],)
            footnotes = (_MEASURES_FOOTNOTE,)
            blocks.append(Block(heading, notes, heads, align, rows, footnotes=footnotes))
    return blocks


def estimate_measure(values: "pd.Series[float]", name: str) -> Estimate | None:
    """Return the mean of a measure with its interval, shares as 0–100; None if it applies to no example."""
    scale = 1.0 if name == _SELECTED else PERCENT  # the others are shares
    return estimate_mean(scale * np.asarray(values.dropna(), np.float64))


def compare_steps(
    tables: Sequence[pd.DataFrame], measure: str
) -> seed_groups.PairDifference | None:
    """Compare a share of the steps with what is expected without an effect; None without such steps.

    Args:
        tables: the measures of the same examples, of one run for each seed.
        measure: `same_best_unit`, which any two steps can have, or `few_units`, which is compared with half of the
            steps.
    """
    gaps = []
    for table in tables:
        if measure not in table:
            return None
        expected = table[_CHANCE] if measure == SAME_BEST else _ONE_HALF
        # The expectation differs between examples, so the difference is taken in each
        gaps.append(PERCENT * (table[measure] - expected))
    return seed_groups.compare_examples(pd.concat(gaps, axis=1, join="inner").to_numpy(np.float64))


def evidence_page(job: Job) -> Page:
    """Make the page of a figure of evidence."""
    # One run of each row is shown; the claims are tested over all seeds
    means, first_runs = read_row_means(job), keep_first_runs(job)
    examples, notes = inspect_rows(first_runs)
    rows, tables, pictures = [], dict[str, pd.DataFrame](), dict[str, bytes]()
    numbers: list[claims.TableNumber] = []
    for example in examples:
        if example.inspection.evidence is None:
            notes.append(f"{example.name}: {example.inspection.no_evidence}.")
    for example in examples:
        name, inspection = example.name, example.inspection
        if inspection.evidence is not None:
            shown_views = reference_views(views(inspection.evidence))
            notes += _describe_missing_reference(example, shown_views)
            picture = draw_views(inspection.title, shown_views)
            pictures[picture_name(job.paper_table, name)] = picture
            table = measure_examples(job.results.run_folder(inspection.record) / "evidence")
            rows.append([name, describe_run(inspection.record), inspection.summary.id])
            tables[name] = table
            numbers += _measure_numbers(example, table)
    verdicts = claims.evaluate_claims(
        [_test_steps(job, means, paper) for paper in job.paper_table.claims_at(job.scale)]
    )
    block = Block("The example", tuple(notes), ("row", "run", "example"), "lll", rows)
    blocks = [block, *number_blocks(tables)]
    return replace(build_row_page(job, means, blocks, numbers, verdicts), pictures=pictures)


def _test_steps(job: Job, means: RowMeans, paper: PaperClaim) -> claims.Claim:
    """Return a claim about the steps, with a part for each row."""
    claim = claims.start_claim(job, paper)
    if claim.obstacle:
        return claim
    groups, parts, runs = [], [], list[RunRecord]()
    measure = paper.measures_at(job.scale)[0]
    for row in job.rows:
        if row.dataset not in claim.datasets:
            continue
        if missing := describe_missing(job, row.label, row.dataset):
            return claim.not_tested(missing)
        group = means.groups[row.label, row.dataset]
        groups.append((row.label, group))
        runs += group.runs
        folders = [job.results.run_folder(run) / "evidence" for run in group.runs]
        comparison = compare_steps(list(map(measure_examples, folders)), measure)
        if comparison is None:
            return claim.not_tested(
                f"{row.label}: no example has evidence of several steps in all seeds"
            )
        parts.append(claims.Part(paper.pairs[0], row.dataset, measure, comparison))
    claim = claim._replace(parts=parts, runs=runs)
    return pass_gate(claim, groups) if parts else claim


def _describe_missing_reference(example: RowExample, shown_views: Sequence[View]) -> list[str]:
    """Return a sentence if the steps of the reference are planned, but only those of the output have weights."""
    planned = example.row.points[0].config.decode.reference_evidence
    weights = [view for view in shown_views if isinstance(view, Weights)]
    if not (planned and weights) or any(map(has_reference_steps, weights)):
        return []
    words = []
    for word in example.inspection.record.command:
        if not word.startswith("decode.reference_evidence="):
            words.append(word)
    command = shlex.join([*words, "decode.reference_evidence=true"])
    steps = "the steps are those of the output. This adds the steps of the reference"
    return [f"{example.name}: {steps}: {command}"]


def _measure_numbers(example: RowExample, table: pd.DataFrame) -> Iterator[claims.TableNumber]:
    row, run = example.row, example.inspection.record.run_id
    for measure, values in table.items():
        if number := estimate_measure(values, str(measure)):
            labels = claims.OURS, row.dataset, row.label, str(measure)
            yield claims.TableNumber(*labels, *number, int(values.count()), 1, runs=run)
