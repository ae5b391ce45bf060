"""Kind `questions`: the questions about a reference that a summary alone answers (Hierarchical Transformer, Table 4).

In the paper people answered the questions. Here each planted fact of a generated report is a question ("Who gets the
bridge?"), which a summary answers if it states the fact right: the measure fact_recall.
"""

from longsumbench.leaderboards.comparability import PLANTED
from longsumbench.views.tables import Block
from longsumbench_reproduction.papers import published_rows
from longsumbench_reproduction.papers.claims import OURS, PRINTED, TableNumber
from longsumbench_reproduction.papers.conditions import build_row_page
from longsumbench_reproduction.papers.page_model import Job, Page

_QA = "qa"  # in published.csv
_RATING = "bws"
_QUESTION_COLUMNS = (
    "row",
    "questions,\nprinted, %",
    "ours, %",
    *published_rows.LEARNED_COLUMNS,
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
    means = published_rows.read_row_means(job)
    verdicts = published_rows.decide_claims(job, means)
    blocks, numbers = list[Block](), list[TableNumber]()
    for dataset in job.paper_table.datasets:
        rows = []
        for label in job.paper_table.rows:
            row = published_rows.find_printed_row(job.paper_table, label, dataset)
            printed_numbers = row.numbers if row else {}
            for name, value in printed_numbers.items():
                number = TableNumber(PRINTED, dataset, label, name, float(value))
                numbers.append(number._replace(source=row.source if row else ""))
            # Ours: the share of planted facts that the summaries state right
            estimate = means.number(label, dataset, PLANTED)
            if estimate:
                numbers.append(means.table_number(OURS, label, dataset, PLANTED, estimate))
            ours = [f"{estimate:.1f}" if estimate else "", *means.learned_cells(label, dataset)]
            cells = [printed_numbers.get(_QA, ""), *ours, printed_numbers.get(_RATING, "")]
            rows.append([label, *cells])
        notes = (_BY_FACTS if means.has_planted_facts else _NO_QUESTIONS, _DIFFERENT)
        footnotes = (published_rows.LEARNED_NOTE, _PEOPLE)
        block = Block(dataset, notes, _QUESTION_COLUMNS, "lrrlrrr", rows, footnotes=footnotes)
        blocks.append(block.without_empty_columns())
    return build_row_page(job, means, blocks, [*numbers, *means.learned_numbers()], verdicts)
