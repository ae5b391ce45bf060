"""Kind `questions`: the questions about a reference that a summary alone answers (Hierarchical Transformer, Table 4).

In the paper people answered the questions. Here there are two ways:

    generated reports               each planted fact is a question ("Who gets the bridge?"): measure fact_recall
    questions=FILE qa_model=NAME    a question-answering model reads each summary: measure qa

    questions --read_questions--> Questions; a summary --AnswerFinder--> answers --score_answer--> 1, 0.5 or 0
"""

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pandas as pd

from longsumbench.errors import DataError, UsageError
from longsumbench.files import BadFile, parse_json, read_text
from longsumbench.formatting import format_count
from longsumbench.leaderboards.notes import PLANTED, checkpoint_name
from longsumbench.leaderboards.seed_groups import estimate_share
from longsumbench.modeling.checkpoints import check_vocabulary, load_network, model_folder, read_tokenizer
from longsumbench.papers import printed
from longsumbench.papers.claims import OURS, PRINTED, TableNumber, long_table
from longsumbench.papers.conditions import describe_conditions
from longsumbench.papers.output_examples import describe_problem
from longsumbench.papers.page import Job, Page
from longsumbench.progress import track
from longsumbench.render.tables import Block
from longsumbench.runs.predictions import read_summaries

_LONGEST_ANSWER = 30  # tokens
_LONGEST_INPUT = 512  # tokens, of models that do not say it
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PARTLY_RIGHT = 0.5  # least token F1 of a partly right answer, and its score
_FORM = '{"id": "the example\'s id", "question": "…", "answer": "…"}'


class Question(msgspec.Struct, frozen=True):
    """A question about the reference of the example `id`, and its answer."""

    id: str
    question: str
    answer: str


def read_questions(path: Path) -> list[Question]:
    """Read a file of JSON lines.

    Raises:
        DataError: the file is missing or has no question, a line is not a question, or an answer has no words.
    """
    try:
        lines = read_text(path).splitlines()
    except (FileNotFoundError, BadFile) as error:
        raise DataError(f"cannot read the questions ({error}); give questions=FILE", path) from error
    questions = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            question = parse_json(line, Question)
        except BadFile as error:
            raise DataError(f"not a question ({error}); each line is {_FORM}", path, number) from error
        if not _normalized(question.answer):
            raise DataError(f"the answer '{question.answer}' has no words except articles; correct it", path, number)
        questions.append(question)
    if not questions:
        raise DataError(f"no question; each line is {_FORM}", path)
    return questions


class AnswerFinder:
    """Finds the span of a text that answers a question, with a model from the hub or a folder.

    Raises:
        UsageError: it is not a question-answering model, or has no fast tokenizer.
        DataError: a file of the model is damaged.
        EnvironmentProblem: the hub cannot be reached, or the model does not fit into memory.
    """

    def __init__(self, name: str) -> None:
        from transformers import AutoModelForQuestionAnswering

        from longsumbench.modeling.nn.device import choose_device

        folder, override = model_folder(name, "qa_model"), f"qa_model={name}"
        self._tokenizer = read_tokenizer(folder, override)
        network, missing, _ = load_network(AutoModelForQuestionAnswering, folder, override)
        if missing:
            names = ", ".join(sorted(missing)[:3])
            raise UsageError(f"{override} is not a question-answering model: it lacks {names}; give another")
        if not self._tokenizer.is_fast:
            raise UsageError(f"{override} has no fast tokenizer, which finds the places of tokens; give another")
        check_vocabulary(self._tokenizer, network.config.vocab_size, override)
        self._network = network.to(choose_device("auto")).eval()
        limit = getattr(network.config, "max_position_embeddings", _LONGEST_INPUT)
        self._longest = min(self._tokenizer.model_max_length, limit)

    def find(self, question: str, text: str) -> str:
        """Return the answer in a text, at most 30 tokens; empty if the text is empty. Long texts are read in windows.

        Raises:
            DataError: the question has more than half of the tokens that the model reads.
        """
        import torch

        if not text.strip():
            return ""
        if len(self._tokenizer(question)["input_ids"]) > self._longest // 2:
            raise DataError(f"the question '{question[:40]}…' is too long for the model; shorten it")
        windows = {"truncation": "only_second", "return_overflowing_tokens": True, "stride": self._longest // 4}
        form = {"padding": True, "return_offsets_mapping": True, "return_tensors": "pt"}
        batch = self._tokenizer(question, text, max_length=self._longest, **windows, **form)
        spans = batch.pop("offset_mapping").tolist()
        del batch["overflow_to_sample_mapping"]
        with torch.inference_mode():
            logits = self._network(**batch.to(self._network.device))
        best, answer = float("-inf"), ""
        for place, (starts, ends) in enumerate(
            zip(logits.start_logits.double(), logits.end_logits.double(), strict=True)
        ):
            inside = torch.tensor([number == 1 for number in batch.sequence_ids(place)], device=starts.device)
            sums = (starts[:, None] + ends[None, :]).masked_fill(~(inside[:, None] & inside[None, :]), float("-inf"))
            sums = sums.masked_fill(~torch.ones_like(sums).triu().tril(_LONGEST_ANSWER - 1).bool(), float("-inf"))
            first, last = divmod(int(sums.argmax()), len(starts))
            if float(sums[first, last]) > best:
                best, answer = float(sums[first, last]), text[spans[place][first][0] : spans[place][last][1]]
        return answer


def score_answer(answer: str, expected: str) -> float:
    """Return 1 for a right answer, 0.5 for a partly right one (token F1 of 0.5 or more), else 0.

    Case, punctuation and articles are ignored.
    """
    words, right = _normalized(answer), _normalized(expected)
    if words == right:
        return 1.0
    shared = (Counter(words) & Counter(right)).total()
    return _PARTLY_RIGHT if 2 * shared >= _PARTLY_RIGHT * (len(words) + len(right)) else 0.0


def _normalized(text: str) -> list[str]:
    """Return the words of an answer, as the evaluation script of SQuAD does."""
    letters = "".join(character for character in text.lower() if character not in string.punctuation)
    return _ARTICLES.sub(" ", letters).split()


QA = "qa"


def answer_questions(job: Job, means: printed.RowMeans) -> tuple[printed.RowMeans, list[str]]:
    """Answer the questions of the option `questions` from the summaries of all runs with the model `qa_model`.

    Return the numbers of the runs with `qa`, and sentences about the questions and about runs without summaries.

    Raises:
        UsageError: it is not a model for question answering.
        DataError: the questions or the model are damaged, or no question is about a summarized example.
        EnvironmentProblem: the hub cannot be reached, or the model does not fit into memory.
    """
    path, name = Path(str(job.options["questions"])).expanduser(), str(job.options["qa_model"])
    questions, finder = read_questions(path), AnswerFinder(name)
    scores, ids, notes = dict(means.scores), set[str](), list[str]()
    runs = [record for row in job.rows for record in row.finished]
    for record in track(runs, "answering questions", len(runs), "runs"):
        try:
            folder = job.results.run_folder(record)
            record.check_written(folder, ["predictions.jsonl"])
        except DataError as error:
            notes.append(f"{record.label}: {describe_problem(error)}.")
            continue
        summaries = {summary.id: summary.text for summary in read_summaries(folder / "predictions.jsonl")}
        answers = score_summaries(questions, summaries, finder)
        if answers.empty:
            raise DataError(f"no question is about an example that {record.label} summarized; correct the ids", path)
        table = scores.get(record.run_id, pd.DataFrame()).drop(columns=QA, errors="ignore")
        scores[record.run_id] = table.join(answers, how="outer")
        ids.update(map(str, answers.index))
    number = sum(question.id in ids for question in questions)
    note = (
        f"Ours: {checkpoint_name(name)} reads each summary and answers {format_count(number, 'question')} about "
        f"{format_count(len(ids), 'example')}. A right answer counts 1, a partly right one (token F1 of 0.5 or more) "
        "0.5. The number is the mean over the examples, in percent."
    )
    groups = dict(means.groups)
    for key, group in groups.items():
        if share := estimate_share(group.runs, QA, scores):
            groups[key] = replace(group, numbers={**group.numbers, QA: share})
    return printed.RowMeans(groups, scores), [note, *notes]


def score_summaries(questions: Sequence[Question], summaries: Mapping[str, str], finder: AnswerFinder) -> pd.DataFrame:
    """Return `qa` of each summary, the mean score of its answers, 0–1; examples without questions are left out."""
    scores_of: dict[str, list[float]] = {}
    for question in questions:
        if question.id in summaries:
            answer = finder.find(question.question, summaries[question.id])
            scores_of.setdefault(question.id, []).append(score_answer(answer, question.answer))
    means = [sum(scores) / len(scores) for scores in scores_of.values()]
    return pd.DataFrame({QA: means}, index=pd.Index(list(scores_of), name="id", dtype=object), dtype=float).sort_index()


_RATING = "bws"
_QUESTION_COLUMNS = ("row", "questions,\nprinted, %", "ours, %", *printed.LEARNED_COLUMNS, "rating,\nprinted")
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
    """Make the page of a table of answered questions."""
    check_questions(job)
    means = printed.read_row_means(job)
    measure = PLANTED if means.facts else QA
    if job.options["questions"]:
        measure = QA
        means, notes = answer_questions(job, means)
    else:
        notes = [_BY_FACTS if means.facts else _NO_QUESTIONS]
    orderings = tuple(msgspec.structs.replace(ordering, on=measure) for ordering in job.paper_table.orderings)
    paper_table = msgspec.structs.replace(job.paper_table, orderings=orderings)
    verdicts = printed.decide_claims(replace(job, paper_table=paper_table), means)
    datasets = job.paper_table.datasets
    numbers = [row for dataset in datasets for row in _qa_numbers(job, means, measure, dataset)]
    return Page(
        blocks=tuple(_qa_block(job, means, measure, dataset, (*notes, _DIFFERENT)) for dataset in datasets),
        numbers=long_table([*numbers, *means.learned_numbers()], verdicts),
        verdicts=verdicts,
        conditions=describe_conditions(job, means),
    )


def _qa_block(job: Job, means: printed.RowMeans, measure: str, dataset: str, notes: tuple[str, ...]) -> Block:
    rows = []
    for label in job.paper_table.rows:
        row = printed.find_printed_row(job.paper_table, label, dataset)
        numbers = row.numbers if row else {}
        estimate = means.number(label, dataset, measure)
        cells = [f"{estimate:.1f}" if estimate else "", *means.learned_cells(label, dataset)]
        rows.append([label, numbers.get(QA, ""), *cells, numbers.get(_RATING, "")])
    block = Block(dataset, notes, _QUESTION_COLUMNS, "lrrlrrr", rows, footnotes=(printed.LEARNED_NOTE, _PEOPLE))
    return block.without_empty_columns()


def _qa_numbers(job: Job, means: printed.RowMeans, measure: str, dataset: str) -> Iterator[TableNumber]:
    for label in job.paper_table.rows:
        if row := printed.find_printed_row(job.paper_table, label, dataset):
            for name in (QA, _RATING):
                yield TableNumber(PRINTED, dataset, label, name, float(row.numbers[name]), source=row.source)
        if estimate := means.number(label, dataset, measure):
            number = means.table_number(OURS, label, dataset, measure, estimate)
            runs = [run.run_id for run in means.groups[label, dataset].runs if run.run_id in means.scores]
            yield number._replace(n=int(means.scores[runs[0]][measure].count())) if runs else number
