"""Answers: what somebody who has only the summary can still answer, with a language model as the reader.

questions --the reader: of the summary, of nothing, of another reference, of the source, of the references--> answers
answers --> right, wrong, not said

Begin with `SummaryAnswers`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml  # type: ignore[import-untyped] # not annotated

from longsumbench.conf import CONF
from longsumbench.core import (
    Example,
    Metric,
    PlantedFact,
    Scoring,
    SentenceScore,
    count_words,
)
from longsumbench.errors import UsageError
from longsumbench.files import digest, read_text
from longsumbench.metrics.fact_matching import RIGHT, match_facts
from longsumbench.metrics.judge_model import JudgeModel, JudgeQuestion, fill_prompt, find_unlike
from longsumbench.modeling.checkpoints import split_revision
from longsumbench.modeling.ranking import bm25, rank

_LONGEST_ANSWER = 32  # tokens
_SOURCE_WORDS = 400  # of the sentences of the source that the reader gets
_NOT_SAID = re.compile(
    r"\W*(?:it (?:is|was) )?not (?:said|stated?|mention(?:ed)?|given?|specif\w+|known|provided?)\b"
    r"|\W*(?:unknown|unclear|none|n/a)\b|\W*$"
    # "The text doesn't say", "I do not know", "there is no mention of it": no denial of what was asked
    r"|.*\b(?:text|summary|passage|document|i) (?:(?:do|does|can|could) ?(?:not|n['’]t)|can['’]t|am not)\b"
    r"|.*\bno (?:information|mention|answer|indication|details?)\b"
    r"|.*\b(?:cannot|can['’]t|can ?not|could not) be (?:said|known|answered|determined|inferred)\b",
    re.IGNORECASE,
)
_YES_OR_NO = {r"\bno\b": "did not", r"\byes\b": "did"}
_ARTICLES = frozenset(("a", "an", "the"))


@cache
def _texts() -> dict[str, Any]:
    return dict(yaml.safe_load(read_text(CONF / "answers.yaml")))


class _ReaderQuestion(NamedTuple):
    """A question with what decides whether an answer is right: a planted fact, or the given answers."""

    question: str
    answers: Sequence[str] = ()
    fact: PlantedFact | None = None

    def prompt(self, text: str | None) -> str:
        """Return what the reader is asked about a text, or without one."""
        prompt = _texts()["guess" if text is None else "read"]
        return fill_prompt(prompt, {"{text}": text or "", "{question}": self.question})


class SummaryAnswers(Metric):
    """The share of an example's questions that a language model answers right from the summary alone.

    Questions are those of the example (`Example.questions`), then one about each planted fact. An answer about a planted
    fact is right if `match_facts` finds it; one to a given question counts by its token F1, as in SQuAD (Rajpurkar et al.
    2016). "Not said" is an answer. An example without an answer to some question, as of a server that fails, has no score.

    * `answers`: right; `answers_wrong`: another answer; `answers_missing`: not said. They add up to 1;
    * `answers_guessed`: what the same reader gets right without a text;
    * `answers_unrelated`: from the references of another example, or from its source if it has none. A reader that says "no"
      to what it does not find is right about denials from any text. NaN if all examples have one source;
    * `answers_source`: from the sentences of the source that BM25 finds for the question, up to 400 words: its ceiling;
    * `answers_reference`: from the references; NaN without any;
    * `answers_margin`: `answers_source` − `answers_unrelated`, or − `answers_guessed` where that is NaN. If it is not
      above 0, the reader cannot tell.
    """

    name = "answers"
    # 1 took the margin to guesses without a text
    version = 2
    columns = (
        "answers",
        "answers_wrong",
        "answers_missing",
        "answers_guessed",
        "answers_unrelated",
        "answers_source",
        "answers_reference",
        "answers_margin",
    )

    def __init__(self, scoring: Scoring) -> None:
        super().__init__(scoring)
        # id → the references of an example of another source, or its sentences
        self._unlike: dict[str, str | tuple[str, ...]] = {}

    def check(self) -> None:
        """Open the model."""
        self.signature(0)

    def signature(self, n: int) -> str:
        """Name the metric, its version, the model with a digest of what decides its answers, and the questions' texts."""
        name = Path(split_revision(self._reader.name)[0]).name
        return f"{self.name}:{self.version}|model:{name}@{self._reader.key[:8]}|prompts:{digest(_texts())[:8]}"

    @cached_property
    def _reader(self) -> JudgeModel:
        if self.scoring.answer_model is None:
            raise UsageError("score.answer_model is missing: give a language model that answers")
        settings = {"decode_length": _LONGEST_ANSWER, **self.scoring.judge_settings}
        # its answers are those of version 1
        return JudgeModel(self.scoring.answer_model, settings, 1, "score.answer_model")

    def prepare(self, items: Iterable[tuple[str, Example]]) -> None:
        """Ask all questions that are not answered yet."""
        questions: list[JudgeQuestion] = []
        pairs = list(items)
        if len(pairs) > 1:  # what is scored by itself later keeps them
            self._unlike = find_unlike(
                (
                    example.id,
                    example.source_group(),
                    _join_references(example) or tuple(example.sentences()),
                )
                for _, example in pairs
            )
        for prediction, example in pairs:
            for task in _list_tasks(example):
                texts = [prediction, *self._other_texts(task, example)]
                questions += [_ask(task, text) for text in texts if text != ""]
        # Alike lengths together, so that little is padded; the longest first, which need most memory.
        questions.sort(key=lambda question: len(question.prompt), reverse=True)
        self._reader.ask(questions, self.scoring.device)
        self._reader.check_any_answer()

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `columns` → 0–1, NaN without questions."""
        return self.score_sentences(prediction, example)[0]

    def score_sentences(
        self, prediction: str, example: Example
    ) -> tuple[dict[str, float], Sequence[SentenceScore]]:
        """Score one prediction, and each question."""
        self.prepare([(prediction, example)])
        rows, scores = [], []
        for task in _list_tasks(example):
            answer = self._find_answer(task, prediction)
            right = _count_right(task, answer)
            missing = np.nan if answer is None else float(_NOT_SAID.match(answer) is not None)
            others = []
            for text in self._other_texts(task, example):
                others.append(
                    np.nan if text == "" else _count_right(task, self._find_answer(task, text))
                )
            guessed, unrelated, source, _ = others
            without_source = guessed if np.isnan(unrelated) else unrelated
            rows.append([right, 1 - right - missing, missing, *others, source - without_source])
            if answer is not None:
                scores.append(SentenceScore(right, -1, f"{task.question} {answer or 'not said'}"))
        means = np.mean(rows, axis=0).tolist() if rows else [np.nan] * len(self.columns)
        return dict(zip(self.columns, means, strict=True)), scores

    def _other_texts(self, task: _ReaderQuestion, example: Example) -> tuple[str | None, ...]:
        """Return nothing, a text of another example, what BM25 finds in the source, the references; empty without one."""
        unlike = self._unlike.get(example.id, "")
        unrelated = unlike if isinstance(unlike, str) else _find_passages(task.question, unlike)
        passages = _find_passages(task.question, tuple(example.sentences()))
        return None, unrelated, passages, _join_references(example)

    def _find_answer(self, task: _ReaderQuestion, text: str | None) -> str | None:
        """Return the answer; an empty text says nothing. None: the reader gave none."""
        answer: str | None = "" if text == "" else self._reader.find_answer(_ask(task, text))
        return answer


def _ask(task: _ReaderQuestion, text: str | None) -> JudgeQuestion:
    return JudgeQuestion(task.prompt(text), lambda answer: answer.strip() or None, is_json=False)


def _list_tasks(example: Example) -> Iterator[_ReaderQuestion]:
    for question in example.questions:
        yield _ReaderQuestion(question.text, question.answers)
    for fact in example.planted:
        kinds = " ".join(dict.fromkeys(part.kind for part in fact.answer))
        question = _texts()["planted"][kinds].replace("{subject}", fact.subject.text)
        yield _ReaderQuestion(question, fact=fact)


def _join_references(example: Example) -> str:
    return "\n\n".join(" ".join(reference) for reference in example.references).strip()


@lru_cache(1_000)
def _find_passages(question: str, sentences: tuple[str, ...]) -> str:
    """Return the best sentences for a question, as many as there is room for, in the order of the text."""
    if not sentences:
        return ""
    chosen: list[int] = []
    room = _SOURCE_WORDS
    for index in rank(bm25(question, sentences)):
        room -= count_words([sentences[index]])
        if chosen and room < 0:
            break
        chosen.append(index)
    return " ".join(sentences[index] for index in sorted(chosen))


def _count_right(task: _ReaderQuestion, answer: str | None) -> float:
    """Return 1 for the answer to a planted fact, or the token F1 with the best of the given answers; 0 if nothing is said.

    NaN without an answer: a server that fails says nothing about a summary.
    """
    if answer is None:
        return np.nan
    if _NOT_SAID.match(answer):
        return 0.0
    if task.fact is None:
        return max((_token_f1(answer, right) for right in task.answers), default=0.0)
    if any(part.kind == "not" for part in task.fact.answer):
        for word, words in _YES_OR_NO.items():
            answer = re.sub(word, words, answer, flags=re.IGNORECASE)
    (outcome,) = match_facts([task.fact], f"{task.fact.subject.text}: {answer}")
    return float(outcome == RIGHT)


def _token_f1(answer: str, right: str) -> float:
    """Return the F1 of the words without punctuation and articles, each as often as in both (SQuAD)."""
    counts = [Counter(_content_words(text)) for text in (answer, right)]
    common = (counts[0] & counts[1]).total()
    return 2 * common / max(1, counts[0].total() + counts[1].total())


def _content_words(text: str) -> list[str]:
    words = re.sub(r"[^\w\s]", "", text.lower()).split()
    return [word for word in words if word not in _ARTICLES]
