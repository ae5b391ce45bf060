"""Answered questions: the scores of answers, the spans that a model finds, the page with and without a model."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.paper_jobs import row_job
from support.run_records import measured, record
from support.tiny_bert import LONGEST, write_bert
from support.toys import one_line

from longsumbench.core import Summary
from longsumbench.errors import DataError, UsageError
from longsumbench.metrics.aggregate import write_scores
from longsumbench.papers.page import NOT_TESTED, REPRODUCED, Job
from longsumbench.papers.questions import AnswerFinder, questions_page, read_questions, score_answer
from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.runs.predictions import write_summaries
from longsumbench.runs.record import RunRecord

Write = Callable[..., RunRecord]
PRINTED: dict[str, Any] = {"prints": "Table 4", "source": "liu2019hiersumm", "datasets": {"WikiSum": {}}}
SENTENCES = ("The cat sat.", "A dog ran.", "It slept.")


@pytest.mark.parametrize(
    ("given", "expected", "score"),
    [
        ("The Cat, sat!", "a cat sat", 1.0),  # articles, case and punctuation count nothing
        ("cat", "cat sat", 0.5),  # F1 2/3
        ("cat on mat", "cat", 0.5),  # F1 1/2
        ("big cat on mat", "cat", 0.0),  # F1 2/5
        ("cat cat", "cat", 0.5),  # a word counts as often as both have it: F1 2/3
        ("", "cat", 0.0),
    ],
)
def test_scores_of_answers(given: str, expected: str, score: float) -> None:
    """1 for the same words, 0.5 for a token F1 of one half or more, else 0."""
    assert score_answer(given, expected) == score


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A question-answering BERT of random weights."""
    from transformers import BertForQuestionAnswering

    return write_bert(tmp_path_factory.mktemp("models") / "qa", network=BertForQuestionAnswering)


@pytest.mark.parametrize("question", ["cat", "dog ran", "it slept the a", "sat"])
def test_spans_against_all_spans(model: Path, question: str) -> None:
    """The answer is the best of all spans of the text, by the sum of the logits of its first and last token."""
    import torch
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    text = "the cat sat . a dog ran"
    tokenizer, network = AutoTokenizer.from_pretrained(model), AutoModelForQuestionAnswering.from_pretrained(model)
    read = tokenizer(question, text, return_tensors="pt")
    with torch.inference_mode():
        found = network(**read)
    words = text.split()  # each is one token
    first = len(read["input_ids"][0]) - 1 - len(words)
    starts, ends = (logits[0, first:-1].tolist() for logits in (found.start_logits, found.end_logits))
    spans = [(start, end) for start in range(len(words)) for end in range(start, len(words))]
    start, end = max(spans, key=lambda span: starts[span[0]] + ends[span[1]])
    assert AnswerFinder(str(model)).find(question, text) == " ".join(words[start : end + 1])


def test_long_and_empty_texts(model: Path) -> None:
    """A text that is longer than the model reads is read in windows; an empty one has no answer."""
    finder, text = AnswerFinder(str(model)), "the cat sat . it slept . " * LONGEST
    assert finder.find("cat", text) in text
    assert finder.find("cat", text)
    assert finder.find("cat", " ") == ""
    with pytest.raises(DataError, match=r"'cat cat .*' is too long for the model; shorten it"):
        finder.find("cat " * LONGEST, text)


def test_damaged_questions(tmp_path: Path) -> None:
    """One line each: no file, no question, a line that is none, with its number."""
    path = tmp_path / "questions.jsonl"
    assert "cannot read the questions" in one_line(lambda: read_questions(path))
    path.write_text("\n", encoding="utf-8")
    assert "no question; each line is {" in one_line(lambda: read_questions(path))
    path.write_text('\n{"id": "e0", "question": "Who?"}\n', encoding="utf-8")
    assert "questions.jsonl:2: not a question" in one_line(lambda: read_questions(path))


@pytest.mark.parametrize("answer", ["The", "!", "", '"A."'])
def test_an_answer_without_words(answer: str, tmp_path: Path) -> None:
    """An answer of articles and punctuation would equal an empty one, so its line is an error."""
    path = write_questions(tmp_path / "questions.jsonl", ("e0", "Who?", "the cat"), ("e0", "Which?", answer))
    assert "questions.jsonl:2: the answer " in one_line(lambda: read_questions(path))


@pytest.fixture
def finished(tmp_path: Path) -> Write:
    """Write a finished run; return its record."""

    def write(model: str, outputs: Sequence[str], facts: Sequence[float] | None = None) -> RunRecord:
        ids = [f"e{place}" for place in range(len(outputs))]
        made = record(model, 30, n=len(ids))
        table = pd.DataFrame(
            {f"{kind}_{part}": 0.3 for kind in ROUGE_TYPES for part in "prf"}, pd.Index(ids, name="id")
        )
        if facts is not None:
            means = {"fact_recall": 100 * sum(facts) / len(facts), "fact_recall_chance": 20.0}
            made, table = replace(made, measures=measured(means)), table.assign(fact_recall=facts)
        folder = tmp_path / "runs" / made.dataset / model / made.run_id
        made.write(folder)
        write_scores(folder / "scores.csv", table)
        write_summaries(folder / "predictions.jsonl", [Summary(*pair) for pair in zip(ids, outputs, strict=True)])
        return made

    return write


def job_of(results: Path, runs: Mapping[str, RunRecord | None], *claims: str, **options: object) -> Job:
    """Return a job of Hierarchical's Table 4."""
    found = {label: (one,) for label, one in runs.items()}
    options = {"questions": None, "qa_model": None, **options}
    job = row_job("questions", results, found, orderings=claims, options=options, **PRINTED)
    rows = tuple(row._replace(dataset="WikiSum") for row in job.rows)
    return replace(job, rows=rows, datasets={"WikiSum": job.datasets["Toys"]})


def test_planted_facts_are_questions(finished: Write, tmp_path: Path) -> None:
    """On generated reports the share of facts is shown with the printed numbers, and the orderings are tested on it."""
    texts = [f"Text {place}." for place in range(20)]
    runs = {"HT": finished("ht", texts, [1.0] * 19 + [0.5]), "Lead": finished("lead", texts, [0.25] * 20), "FT": None}
    page = questions_page(job_of(tmp_path, runs, "HT > Lead", "HT > FT"))
    (block,) = page.blocks
    assert [[*row[:2], row[-1]] for row in block.rows] == [
        ["HT", "54.11", "0.237"],
        ["Lead", "31.59", "-0.383"],
        ["FT", "35.69", "0.000"],
    ]
    assert [row[2].split()[0] if row[2] else "" for row in block.rows] == ["97.5", "25.0", ""]
    assert [(one.claim, one.measure, one.outcome) for one in page.verdicts] == [
        ("HT > Lead", "fact_recall", REPRODUCED),
        ("HT > FT", "fact_recall", NOT_TESTED),
    ]
    assert page.verdicts[0].difference == pytest.approx(72.5)
    assert any("No question-answering model" in note for note in block.notes)


def write_questions(path: Path, *lines: tuple[str, str, str]) -> Path:
    """Write questions; return the path."""
    rows = (json.dumps(dict(zip(("id", "question", "answer"), line, strict=True))) + "\n" for line in lines)
    path.write_text("".join(rows), encoding="utf-8")
    return path


def test_a_model_answers(finished: Write, model: Path, tmp_path: Path) -> None:
    """Of the questions about summarized examples, each row has the mean score of the model's answers."""
    first, second = list(SENTENCES), ["", "", ""]
    finder = AnswerFinder(str(model))
    questions = write_questions(
        tmp_path / "q.jsonl",
        ("e0", "cat", finder.find("cat", SENTENCES[0])),
        ("e0", "dog", "nothing of it"),
        ("e2", "it", finder.find("it", SENTENCES[2])),
        ("elsewhere", "it", "it"),
    )
    runs = {"HT": finished("ht", first), "Lead": finished("lead", second)}
    options = {"questions": str(questions), "qa_model": str(model)}
    page = questions_page(job_of(tmp_path, runs, "HT > Lead", **options))
    (block,) = page.blocks
    assert [row[2].split()[0] for row in block.rows] == ["75.0", "0.0"]  # e0: one of two, e2: one of one
    assert block.notes[0].startswith("Ours: qa reads each summary and answers 3 questions about 2 examples.")
    (verdict,) = page.verdicts
    assert (verdict.measure, verdict.difference) == ("qa", pytest.approx(75.0))
    numbers: Any = page.numbers.set_index(["kind", "row", "measure"])
    assert int(numbers.loc[("ours", "HT", "qa"), "n"]) == 2


def test_what_is_missing(finished: Write, model: Path, tmp_path: Path) -> None:
    """Without questions the page says what to type; one option without the other, and unknown ids, are errors."""
    runs = {"HT": finished("ht", list(SENTENCES))}
    both = {**runs, "Lead": finished("lead", list(SENTENCES))}
    page = questions_page(job_of(tmp_path, both, "HT > Lead"))
    assert page.blocks[0].notes[0].startswith("Ours needs questions: questions=FILE")
    assert [one.outcome for one in page.verdicts] == [NOT_TESTED]
    with pytest.raises(UsageError, match="questions=FILE and qa_model=NAME go together"):
        questions_page(job_of(tmp_path, runs, qa_model=str(model)))
    foreign = write_questions(tmp_path / "q.jsonl", ("x", "cat", "cat"))
    options = {"questions": str(foreign), "qa_model": str(model)}
    with pytest.raises(DataError, match=r"q\.jsonl: no question is about an example that ht"):
        questions_page(job_of(tmp_path, runs, **options))
    (tmp_path / "runs" / "arxiv" / "ht" / runs["HT"].run_id / "predictions.jsonl").unlink()
    notes = questions_page(job_of(tmp_path, runs, **options)).blocks[0].notes
    assert any("predictions.jsonl missing; the same `longsumbench run` command" in note for note in notes)
