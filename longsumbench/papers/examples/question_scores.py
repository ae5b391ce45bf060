"""The measure `qa`: the questions about each example that a run's summaries answer, 0–1.

questions=FILE, qa_model=NAME, runs --answer_questions--> Ours with the measure `qa`
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from longsumbench.errors import DataError
from longsumbench.formatting import format_count
from longsumbench.leaderboards.notes import checkpoint_name
from longsumbench.leaderboards.seed_groups import ScoresOfRuns, SeedGroup, estimate_share
from longsumbench.papers.examples.answers import AnswerFinder, Question, read_questions, score_answer
from longsumbench.papers.examples.row_examples import describe_problem
from longsumbench.papers.numbers.ours import Ours
from longsumbench.papers.page import Job
from longsumbench.progress import track
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord

QA = "qa"


def answer_questions(job: Job, ours: Ours) -> tuple[Ours, list[str]]:
    """Answer the questions of the option `questions` from the summaries of all runs with the model `qa_model`.

    Returns:
        The numbers of the runs with `qa`, and sentences about the questions and about runs without summaries.

    Raises:
        UsageError: it is not a model for question answering.
        DataError: the questions or the model are damaged, or no question is about a summarized example.
        EnvironmentProblem: the hub cannot be reached, or the model does not fit into memory.
    """
    path, name = Path(str(job.options["questions"])).expanduser(), str(job.options["qa_model"])
    questions, finder = read_questions(path), AnswerFinder(name)
    scores, asked, notes = dict(ours.scores), set[str](), list[str]()
    runs = [record for row in job.rows for record in row.finished]
    for record in track(runs, "answering questions", len(runs), "runs"):
        try:
            summaries = _read_outputs(job, record)
        except DataError as error:
            notes.append(f"{record.label}: {describe_problem(error)}.")
            continue
        found = score_summaries(questions, summaries, finder)
        if found.empty:
            raise DataError(f"no question is about an example that {record.label} summarized; correct the ids", path)
        others = scores.get(record.run_id, pd.DataFrame()).drop(columns=QA, errors="ignore")
        scores[record.run_id] = others.join(found, how="outer")
        asked.update(map(str, found.index))
    number = sum(question.id in asked for question in questions)
    about = (
        f"Ours: {checkpoint_name(name)} reads each summary and answers {format_count(number, 'question')} about "
        f"{format_count(len(asked), 'example')}. A right answer counts 1, a partly right one (token F1 of 0.5 or more) "
        "0.5. The number is the mean over the examples, in percent."
    )
    groups = {key: _with_answers(group, scores) for key, group in ours.groups.items()}
    return Ours(groups, scores), [about, *notes]


def _read_outputs(job: Job, record: RunRecord) -> dict[str, str]:
    """Return id → summary of a run."""
    folder = job.results.run_folder(record)
    record.check_written(folder, ["predictions.jsonl"])
    return {summary.id: summary.text for summary in read_summaries(folder / "predictions.jsonl")}


def score_summaries(questions: Sequence[Question], summaries: Mapping[str, str], finder: AnswerFinder) -> pd.DataFrame:
    """Return `qa` of each summary, the mean score of its answers, 0–1; examples without questions are left out."""
    found: dict[str, list[float]] = {}
    for question in questions:
        if question.id in summaries:
            answer = finder.find(question.question, summaries[question.id])
            found.setdefault(question.id, []).append(score_answer(answer, question.answer))
    means = [sum(scores) / len(scores) for scores in found.values()]
    return pd.DataFrame({QA: means}, index=pd.Index(list(found), name="id", dtype=object), dtype=float).sort_index()


def _with_answers(group: SeedGroup, scores: ScoresOfRuns) -> SeedGroup:
    number = estimate_share(group.runs, QA, scores)
    return replace(group, numbers={**group.numbers, QA: number}) if number else group
