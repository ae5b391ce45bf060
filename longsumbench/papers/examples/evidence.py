"""Kind `evidence`: what a system looked at while it wrote one summary (SEAL, Figure 5; PageSum, Figure 3).

Job --evidence_page--> Page: the views of one example of each row, and numbers over all examples with evidence
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from html import escape

import pandas as pd

from longsumbench.analysis.runs.inspect_page import inspection_page
from longsumbench.papers.claims import judge_claims
from longsumbench.papers.examples.evidence_numbers import (
    estimate_measure,
    has_reference_steps,
    measure_examples,
    number_blocks,
    time_locality,
    views_of_reference,
)
from longsumbench.papers.examples.row_examples import RowExample, inspect_rows, keep_first_runs
from longsumbench.papers.long_table import OURS, TableNumber, long_table
from longsumbench.papers.numbers.conditions import describe_conditions
from longsumbench.papers.numbers.ours import read_ours
from longsumbench.papers.page import Job, Page
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
    job = keep_first_runs(job)
    examples, notes = inspect_rows(job)
    notes += [f"{one.name}: {one.inspection.lacking}." for one in examples if one.inspection.evidence is None]
    found = {one.name: one for one in examples if one.inspection.evidence is not None}
    notes += [note for one in found.values() if (note := _describe_missing_reference(one))]
    tables = {
        name: measure_examples(job.results.run_folder(one.inspection.record) / "evidence")
        for name, one in found.items()
    }
    claims = [time_locality(tables[name], one.row.dataset, name) for name, one in found.items()]
    verdicts = judge_claims([claim for claim in claims if claim])
    return Page(
        blocks=(_example_block(list(found.values()), notes), *number_blocks(tables)),
        numbers=long_table(_numbers(found, tables), verdicts),
        verdicts=verdicts,
        conditions=describe_conditions(job, read_ours(job)),
        pictures={one.picture_name(job): draw_views(one.inspection.title, _views(one)) for one in found.values()},
        details="\n".join(map(_framed_page, found.values())),
    )


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
