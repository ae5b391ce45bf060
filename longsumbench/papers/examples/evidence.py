"""Kind `evidence`: what a system looked at while it wrote one summary (SEAL, Figure 5; PageSum, Figure 3).

Job --evidence_page--> Page: the views of one example of each row, and numbers over all examples with evidence
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from html import escape

import pandas as pd
from msgspec import structs

from longsumbench.analysis.runs.inspect_page import inspection_page
from longsumbench.papers.artifacts import Ordering
from longsumbench.papers.claims import Claim, judge_claims
from longsumbench.papers.examples.evidence_numbers import (
    SAME_BEST,
    compare_steps,
    estimate_measure,
    has_reference_steps,
    measure_examples,
    number_blocks,
    views_of_reference,
)
from longsumbench.papers.examples.row_examples import RowExample, inspect_rows, keep_first_runs
from longsumbench.papers.long_table import OURS, TableNumber, long_table
from longsumbench.papers.numbers.conditions import describe_conditions
from longsumbench.papers.numbers.orderings import describe_missing, pass_gate
from longsumbench.papers.numbers.ours import Ours, read_ours
from longsumbench.papers.page import NOT_TESTED, Job, Page, RowRuns
from longsumbench.report.evidence.picture import draw_views
from longsumbench.report.evidence.views import View, Weights, views
from longsumbench.report.tables import Block
from longsumbench.runs.record import run_label

_FRAME = "width: 100%; height: 48rem; border: 1px solid var(--line); border-radius: .5rem"


def evidence_page(job: Job) -> Page:
    """Make the page of a figure of evidence.

    Raises:
        UsageError: the runs summarized no example that the option `example` names.
        DataError: a file of a run is damaged.
    """
    ours, every = read_ours(job), job
    job = keep_first_runs(job)
    examples, notes = inspect_rows(job)
    notes += [f"{one.name}: {one.inspection.lacking}." for one in examples if one.inspection.evidence is None]
    found = {one.name: one for one in examples if one.inspection.evidence is not None}
    notes += [note for one in found.values() if (note := _describe_missing_reference(one))]
    tables = {
        name: measure_examples(job.results.run_folder(one.inspection.record) / "evidence")
        for name, one in found.items()
    }
    verdicts = judge_claims(
        [
            _compare_steps(every, ours, one.row, paper)
            for paper in job.artifact.orderings
            for name, one in found.items()
            if SAME_BEST in tables[name]
        ]
    )
    return Page(
        blocks=(_example_block(list(found.values()), notes), *number_blocks(tables)),
        numbers=long_table(_numbers(found, tables), verdicts),
        verdicts=verdicts,
        conditions=describe_conditions(every, ours),
        pictures={one.picture_name(job): draw_views(one.inspection.title, _views(one)) for one in found.values()},
        details="\n".join(map(_framed_page, found.values())),
    )


def _compare_steps(job: Job, ours: Ours, row: RowRuns, paper: Ordering) -> Claim:
    """Return the claim that steps have the best unit of the step before, over all seeds of a row."""
    paper, label, group = structs.replace(paper, on=SAME_BEST), row.label, ours.groups[row.label, row.dataset]
    if missing := describe_missing(job, label, row.dataset):
        return Claim(paper, row.dataset, obstacle=NOT_TESTED, reason=missing)
    comparison = compare_steps([measure_examples(job.results.run_folder(run) / "evidence") for run in group.runs])
    if comparison is None:
        reason = f"{label}: no example has evidence of several steps in all seeds"
        return Claim(paper, row.dataset, obstacle=NOT_TESTED, reason=reason, runs=group.runs)
    return pass_gate(Claim(paper, row.dataset, [comparison], reason=label, runs=group.runs), {label: group})


def _views(one: RowExample) -> list[View]:
    """Return the views of a row's example; of weights, those at the steps of the reference if there are any."""
    assert one.inspection.evidence is not None
    return views_of_reference(views(one.inspection.evidence))


def _describe_missing_reference(one: RowExample) -> str:
    """Return how to add evidence at the steps of the reference, if it was planned and is missing; else nothing."""
    planned = one.row.points[0].config.decode.reference_evidence
    weights = [view for view in _views(one) if isinstance(view, Weights)]
    if not (planned and weights) or any(map(has_reference_steps, weights)):
        return ""
    words = [word for word in one.inspection.record.command if not word.startswith("decode.reference_evidence=")]
    command = shlex.join([*words, "decode.reference_evidence=true"])
    return f"{one.name}: the steps are those of the output. This adds the steps of the reference: {command}"


def _example_block(found: Sequence[RowExample], notes: Sequence[str]) -> Block:
    """Return the block that names the example of each row."""
    rows = [[one.name, run_label(one.inspection.record), one.inspection.summary.id] for one in found]
    return Block("The example", tuple(notes), ("row", "run", "example"), "lll", rows)


def _numbers(found: Mapping[str, RowExample], tables: Mapping[str, pd.DataFrame]) -> Iterator[TableNumber]:
    """Yield each measure of each row."""
    for name, one in found.items():
        for measure, values in tables[name].items():
            if number := estimate_measure(values, str(measure)):
                named, run = (one.row.dataset, one.row.label, str(measure)), one.inspection.record.run_id
                yield TableNumber(OURS, *named, *number, int(values.count()), 1, runs=run)


def _framed_page(one: RowExample) -> str:
    """Return the page of `longsumbench inspect` in a frame, which its script and its links do not leave."""
    page, name = escape(inspection_page(one.inspection, _views(one))), escape(one.name)
    return f'<h3>{name}</h3>\n<iframe title="{name}" style="{_FRAME}" srcdoc="{page}"></iframe>'
