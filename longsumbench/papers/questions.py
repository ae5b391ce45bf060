"""Kind `questions`: the questions about a reference that a summary alone answers (Hierarchical Transformer, Table 4).

In the paper people answered the questions. Here each planted fact of a generated report is a question ("Who gets the
bridge?"), which a summary answers if it states the fact right: the measure fact_recall.
"""

from collections.abc import Iterator

import numpy as np

from longsumbench.leaderboards.comparability import PLANTED
from longsumbench.papers import printed
from longsumbench.papers.claims import OURS, PRINTED, TableNumber, long_table
from longsumbench.papers.conditions import describe_conditions
from longsumbench.papers.page import Job, Page
from longsumbench.views.tables import Block

_QA = "qa"  # in published.csv
_RATING = "bws"
_QUESTION_COLUMNS = (
    "row",
    "questions,\nprinted, %",
    "ours, %",
    *printed.LEARNED_COLUMNS,
    "rating,\nprinted",
)
_BY_FACTS = (
    "Ours: each planted fact is a question (“Who gets the bridge?”), and a summary that states the fact right answers "
    "it. The number is the percentage of facts stated right (fact_recall). No question-answering model is used."
)
_NO_QUESTIONS = (
    "Ours are missing: only generated reports (scale=probe) have questions with known answers."
)
_DIFFERENT = "The printed numbers are of people who answered 57 questions on 20 summaries: not comparable with ours."
_PEOPLE = "Rating: best minus worst, -1 to 1, by people. It is out of reach of a program, so it is printed only."


def questions_page(job: Job) -> Page:
    """Make the page of a table of answered questions."""
    means, datasets = printed.read_row_means(job), job.paper_table.datasets
    verdicts = printed.decide_claims(job, means)
    numbers = [row for dataset in datasets for row in _qa_numbers(job, means, dataset)]
    return Page(
        blocks=tuple(_qa_block(job, means, dataset) for dataset in datasets),
        numbers=long_table([*numbers, *means.learned_numbers()], verdicts),
        verdicts=verdicts,
        conditions=describe_conditions(job, means),
    )


def _qa_block(job: Job, means: printed.RowMeans, dataset: str) -> Block:
    rows = []
    for label in job.paper_table.rows:
        row = printed.find_printed_row(job.paper_table, label, dataset)
        numbers = row.numbers if row else {}
        estimate = means.number(label, dataset, PLANTED)
        cells = [f"{estimate:.1f}" if estimate else "", *means.learned_cells(label, dataset)]
        rows.append([label, numbers.get(_QA, ""), *cells, numbers.get(_RATING, "")])
    notes = (_BY_FACTS if means.facts else _NO_QUESTIONS, _DIFFERENT)
    block = Block(
        dataset,
        notes,
        _QUESTION_COLUMNS,
        "lrrlrrr",
        rows,
        footnotes=(printed.LEARNED_NOTE, _PEOPLE),
    )
    return block.without_empty_columns()


def _qa_numbers(job: Job, means: printed.RowMeans, dataset: str) -> Iterator[TableNumber]:
    for label in job.paper_table.rows:
        if row := printed.find_printed_row(job.paper_table, label, dataset):
            for name in (_QA, _RATING):
                yield TableNumber(
                    PRINTED, dataset, label, name, float(row.numbers[name]), source=row.source
                )
        if estimate := means.number(label, dataset, PLANTED):
            number = means.table_number(OURS, label, dataset, PLANTED, estimate)
            runs = [
                run.run_id
                for run in means.groups[label, dataset].runs
                if run.run_id in means.scores
            ]
            yield (
                number._replace(n=int(np.isfinite(means.scores[runs[0]][PLANTED]).sum()))
                if runs
                else number
            )
