"""Kind `questions`: the questions about a reference that a summary alone answers (Hierarchical Transformer, Table 4).

In the paper people answered the questions. Here there are two ways:

    generated reports               each planted fact is a question ("Who gets the bridge?"): measure fact_recall
    questions=FILE qa_model=NAME    a question-answering model reads each summary: measure qa
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from longsumbench.errors import UsageError
from longsumbench.leaderboards.notes import PLANTED
from longsumbench.papers.examples.answers import read_questions
from longsumbench.papers.examples.question_scores import QA, answer_questions
from longsumbench.papers.long_table import OURS, PRINTED, TableNumber, long_table
from longsumbench.papers.numbers.conditions import describe_conditions
from longsumbench.papers.numbers.orderings import decide_claims
from longsumbench.papers.numbers.ours import LEARNED_COLUMNS, LEARNED_NOTE, Ours, read_ours
from longsumbench.papers.numbers.printed import find_printed_row
from longsumbench.papers.page import Job, Page
from longsumbench.report.tables import Block

_RATING = "bws"
_COLUMNS = ("row", "questions,\nprinted, %", "ours, %", *LEARNED_COLUMNS, "rating,\nprinted")
_BY_FACTS = (
    "Ours: each planted fact is a question (“Who gets the bridge?”), and a summary that states the fact right answers "
    "it. The number is the percentage of facts stated right (fact_recall). No question-answering model is used."
)
_NO_QUESTIONS = (
    "Ours needs questions: questions=FILE (JSON lines with id, question and answer) and qa_model=NAME (a model for "
    "question answering, from the hub or a folder). On generated reports the planted facts are the questions."
)
_DIFFERENT = "The printed numbers are of people who answered 57 questions on 20 summaries: not comparable with ours."
_PEOPLE = "Rating: best minus worst, -1 to 1, by people. It is out of reach of a program, so it is printed only."


def check_questions(job: Job) -> None:
    """Check the options `questions` and `qa_model`, which are given together.

    Raises:
        UsageError: only one of them is given.
        DataError: the questions are damaged.
    """
    if bool(job.options["questions"]) != bool(job.options["qa_model"]):
        raise UsageError("questions=FILE and qa_model=NAME go together: give both")
    if job.options["questions"]:
        read_questions(Path(str(job.options["questions"])).expanduser())


def questions_page(job: Job) -> Page:
    """Make the page of a table of answered questions.

    Raises:
        UsageError: only one of `questions` and `qa_model` is given, or the model is of another kind.
        DataError: the questions or the model are damaged, or no question is about a summarized example.
        EnvironmentProblem: the hub cannot be reached, or the model does not fit into memory.
    """
    check_questions(job)
    ours = read_ours(job)
    measure = PLANTED if ours.facts else QA
    if job.options["questions"]:
        measure = QA
        ours, notes = answer_questions(job, ours)
    else:
        notes = [_BY_FACTS if ours.facts else _NO_QUESTIONS]
    asked = tuple(msgspec.structs.replace(ordering, on=measure) for ordering in job.artifact.orderings)
    verdicts = decide_claims(replace(job, artifact=msgspec.structs.replace(job.artifact, orderings=asked)), ours)
    numbers = [one for dataset in job.artifact.datasets for one in _numbers(job, ours, measure, dataset)]
    return Page(
        blocks=tuple(_block(job, ours, measure, dataset, (*notes, _DIFFERENT)) for dataset in job.artifact.datasets),
        numbers=long_table([*numbers, *ours.learned_numbers()], verdicts),
        verdicts=verdicts,
        conditions=describe_conditions(job, ours),
    )


def _block(job: Job, ours: Ours, measure: str, dataset: str, notes: tuple[str, ...]) -> Block:
    """Return the table of a dataset: printed numbers, ours, and whether systems learned."""
    rows = []
    for label in job.artifact.rows:
        printed = find_printed_row(job.artifact, label, dataset)
        numbers = printed.numbers if printed else {}
        found = ours.number(label, dataset, measure)
        cells = [f"{found:.1f}" if found else "", *ours.learned_cells(label, dataset)]
        rows.append([label, numbers.get(QA, ""), *cells, numbers.get(_RATING, "")])
    block = Block(dataset, notes, _COLUMNS, "lrrlrrr", rows, footnotes=(LEARNED_NOTE, _PEOPLE))
    return block.without_empty_columns()


def _numbers(job: Job, ours: Ours, measure: str, dataset: str) -> Iterator[TableNumber]:
    """Yield the printed numbers of each row, then ours."""
    for label in job.artifact.rows:
        if printed := find_printed_row(job.artifact, label, dataset):
            for name in (QA, _RATING):
                value = float(printed.numbers[name])
                yield TableNumber(PRINTED, dataset, label, name, value, source=printed.source)
        if found := ours.number(label, dataset, measure):
            number = ours.table_number(OURS, label, dataset, measure, found)
            runs = [run.run_id for run in ours.groups[label, dataset].runs if run.run_id in ours.scores]
            yield number._replace(n=int(ours.scores[runs[0]][measure].count())) if runs else number
