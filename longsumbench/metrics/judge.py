"""Judge: which key points of the references a summary states, and how fluent it is, as language models see it.

references --key points--> numbered points, with the numbered sentences of a summary --answer--> recall, precision,
fluency.
"""

import logging
import math
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from itertools import chain, product, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from longsumbench import core
from longsumbench.core import Example, SentenceScore
from longsumbench.errors import DataError, UsageError
from longsumbench.files import BadFile, digest, parse_json, read_json
from longsumbench.formatting import format_count
from longsumbench.metrics.aggregate import BOOTSTRAP_SEED
from longsumbench.metrics.judge_model import JudgeModel, JudgeQuestion, prompts
from longsumbench.metrics.rank_statistics import (
    draw_counts,
    krippendorff_alpha,
    percentile_interval,
)
from longsumbench.metrics.statistics import number_groups
from longsumbench.modeling.checkpoints import split_revision
from longsumbench.sentences import SPLITTER_NAME, split_summary

_log = logging.getLogger(__name__)

_MOST_JUDGES = 3
_COLUMNS = ("judge_recall", "judge_precision", "judge_fluency")


class _JudgeAnswer(msgspec.Struct, frozen=True):
    matches: dict[int, list[int]]  # number of a key point → numbers of the sentences that state it
    fluency: int

    def stating(self) -> set[int]:
        """Return the numbers of the sentences that state a key point."""
        return set(chain.from_iterable(self.matches.values()))


class _Task(NamedTuple):
    """What is judged: the sentences of a summary, with the references and the group of its example."""

    id: str
    reference: str
    sentences: tuple[str, ...]
    group: str


class Judge(core.Metric):
    """Recall and precision against key points of the references, and fluency, by one to three language models.

    Recall is the share of key points that a sentence of the summary states; precision is the share of its sentences
    that state a key point: completeness and conciseness of FineSurE (Song et al. 2024, arXiv:2407.00908). A score is
    the mean over the judges if all have a verdict. Decoding is greedy.

    An empty summary has a recall of 0 without a request, and no precision and fluency. `judge_missing` is the share of
    an example's questions without a verdict. Of several judges, `judge_same` is the share of key points on which they
    agree, and `judge_alpha` Krippendorff's α of these verdicts over all examples.

    Deviation: the key points are those of all references together, where FineSurE has one reference.
    """

    needs_source = False
    name = "judge"
    # 1 missed verdicts before a second thought, and after less usual marks of thinking
    version = 2
    columns = (*_COLUMNS, "judge_missing")
    further = (
        "judge_same",
        *(f"{column}_{number}" for number, column in product((1, 2, 3), _COLUMNS)),
    )
    units = MappingProxyType(
        {name: "1–5" for name in (*columns, *further) if "fluency" in name} | {"judge_alpha": "α"}
    )

    def __init__(self, scoring: core.Scoring) -> None:
        super().__init__(scoring)
        self._on_points: dict[_Task, list[list[bool]]] = {}  # answers, [judges, key points]

    def check(self) -> None:
        """Open the models, and read the file of key points."""
        self.signature(0)

    def signature(self, n: int) -> str:
        """Name the metric, its version, models with a digest of what decides their answers, key points, splitter."""
        points = "of_first_judge" if self._given is None else f"given@{digest(self._given)[:8]}"
        models = ",".join(
            f"{Path(split_revision(judge.name)[0]).name}@{judge.key[:8]}" for judge in self._judges
        )
        parts = f"models:{models}|prompts:{digest(prompts())[:8]}|key_points:{points}|sentences:{SPLITTER_NAME}"
        return f"{self.name}:{self.version}|{parts}"

    # one batch of questions for each judge is faster than a question for each summary
    def prepare(self, items: Iterable[tuple[str, Example]]) -> None:
        """Say what it costs, and ask all judges what is not answered yet."""
        device = self.scoring.device
        tasks = [_task(*item) for item in items]
        tasks = [task for task in tasks if task.sentences]
        costs = [self._cost(judge, tasks) for judge in self._judges]
        if any(costs):
            described = "; ".join(filter(None, costs))
            _log.info(f"judges: {described}; not counting answers that are asked for again")
        self._judges[0].ask(filter(None, map(self._points_question, tasks)), device)
        for judge in self._judges:
            judge.ask((self._question(task) for task in tasks), device)
            judge.check_any_answer()

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; shares 0–1, `judge_fluency` 1–5, NaN without a verdict or without a text to judge."""
        return self.score_sentences(prediction, example)[0]

    def score_sentences(
        self, prediction: str, example: Example
    ) -> tuple[dict[str, float], Sequence[SentenceScore]]:
        """Score one prediction; the score of a key point or a sentence is the share of judges that found it."""
        self.prepare([(prediction, example)])
        task = _task(prediction, example)
        points, asked = self._points(task), list[Any]()
        # an empty summary states no key point, which needs no request
        sentence_scores: list[SentenceScore] = []
        has_points = points or (task.reference and self._given is None)
        rows = [[0.0 if has_points else math.nan, math.nan, math.nan]] * len(self._judges)
        if task.sentences:
            asked = [judge.find_answer(self._question(task)) for judge in self._judges]
            rows = [_score_answer(task, answer) for answer in asked]
            if points and None not in asked:
                sentence_scores = self._mean_over_judges(task, points, asked)
            asked += [points] if self._points_question(task) else []
        missing = float(np.mean([answer is None for answer in asked])) if asked else math.nan
        scores = dict(zip(self.columns, [*np.mean(rows, axis=0).tolist(), missing], strict=True))
        if len(rows) > 1:
            equal = np.ptp(np.array(self._on_points.get(task, [[]]), dtype=float), axis=0) == 0
            values = [float(equal.mean()) if equal.size else math.nan, *chain(*rows)]
            scores |= dict(zip(self.further, values, strict=False))
        return scores, sentence_scores

    def pooled(self) -> dict[str, tuple[float, float, float, int]]:
        """Return Krippendorff's α of several judges' answers on key points, if two sources define it."""
        rows = list(self._on_points.values())
        if len(self._judges) < 2 or not rows:
            return {}
        most = max(len(of_task[0]) for of_task in rows)
        table = np.full((len(self._judges), len(rows), most), np.nan)
        for index, of_task in enumerate(rows):
            table[:, index, : len(of_task[0])] = of_task
        groups = number_groups([task.group for task in self._on_points])
        counts = draw_counts(self.scoring.resamples, len(rows), BOOTSTRAP_SEED, groups)
        draws = krippendorff_alpha(table, counts)
        # one source has no spread
        low, high = percentile_interval(draws, len(np.unique(groups)))
        return {} if math.isnan(low) else {"judge_alpha": (float(draws[0]), low, high, len(rows))}

    def _mean_over_judges(
        self, task: _Task, points: Sequence[str], answers: Sequence[_JudgeAnswer]
    ) -> list[SentenceScore]:
        on_points, on_sentences = [], []  # [judges, key points], [judges, sentences]
        for answer in answers:
            stating = answer.stating()
            on_points.append([bool(answer.matches[number + 1]) for number in range(len(points))])
            on_sentences.append([number + 1 in stating for number in range(len(task.sentences))])
        self._on_points[task] = on_points
        shares = [*np.mean(on_points, axis=0).tolist(), *np.mean(on_sentences, axis=0).tolist()]
        return [SentenceScore(share, -1, point) for share, point in zip_longest(shares, points)]

    @cached_property
    def _judges(self) -> list[JudgeModel]:
        names = list(dict.fromkeys(self.scoring.judge_models))
        if not 1 <= len(names) <= _MOST_JUDGES:
            problem = f"has {len(names)} models" if names else "is missing"
            advice = f"give one to {_MOST_JUDGES} language models"
            raise UsageError(f"score.judge_models {problem}: {advice}")
        return [JudgeModel(name, self.scoring.judge_settings, self.version) for name in names]

    @cached_property
    def _given(self) -> dict[str, list[str]] | None:
        if (file := self.scoring.judge_key_points) is None:
            return None
        try:
            points = read_json(path := Path(file).expanduser(), dict[str, list[str]])
        except (OSError, BadFile) as problem:
            form = "score.judge_key_points is a JSON object, id → list of key points"
            raise DataError(f"cannot be read ({problem}); {form}", path) from problem
        return {name: _cleaned(texts) for name, texts in points.items()}

    def _points(self, task: _Task) -> Sequence[str] | None:
        """Return the key points; empty if there is nothing to find them for, None without an answer."""
        if self._given is None:
            question = self._points_question(task)
            return self._judges[0].find_answer(question) if question else ()
        if task.id not in self._given:
            problem = f"no key points of '{task.id}': add them, or leave score.judge_key_points out"
            raise DataError(problem, self.scoring.judge_key_points)
        return self._given[task.id]

    def _points_question(self, task: _Task) -> JudgeQuestion | None:
        if self._given is not None or not (task.reference and task.sentences):
            return None
        return JudgeQuestion(f"{prompts()['key_points']}\n\n{task.reference}", _read_points)

    def _question(self, task: _Task, points: Sequence[str] | None = None) -> JudgeQuestion:
        """Return what each judge is asked about a summary; default: with its key points, if any are known."""
        points = (self._points(task) or ()) if points is None else points
        lists = f"{_numbered('Key points:', points)}\n\n{_numbered('Summary:', task.sentences)}"
        read = partial(_read_answer, num_points=len(points), num_sentences=len(task.sentences))
        return JudgeQuestion(f"{prompts()['verdict']}\n\n{lists}", read)

    def _cost(self, judge: JudgeModel, tasks: Sequence[_Task]) -> str:
        """Describe the requests that are not answered yet, without retries; empty if there are none."""
        first, longest, tokens = self._judges[0], judge.settings.decode_length, dict[str, int]()
        for task in tasks:
            of_points = self._points_question(task)
            # the key points of a new reference are not known, so their length is bounded
            is_unknown = of_points is not None and not first.has_answered(of_points)
            if of_points and is_unknown and judge is first:
                tokens[of_points.prompt] = judge.count(of_points.prompt)
            question = self._question(task, () if is_unknown else None)
            if is_unknown or not judge.has_answered(question):
                unknown = first.settings.decode_length if is_unknown else 0
                tokens[question.prompt] = judge.count(question.prompt) + unknown
        most, limit = max(tokens.values(), default=0) + longest, judge.engine.context or math.inf
        if most > limit:
            problem = f"score.judge_models={judge.name} reads {limit:,} tokens, a question and its answer have {most:,}"
            raise UsageError(
                f"{problem}: choose another model, or a smaller score.judge_settings.decode_length"
            )
        sent, answered = sum(tokens.values()), longest * len(tokens)
        cost = f"{judge.name}, {format_count(len(tokens), 'request')}, at most {sent:,} tokens in and {answered:,} out"
        prices = judge.settings.input_price, judge.settings.output_price
        if None not in prices:
            cost += f", US$ {(sent * prices[0] + answered * prices[1]) / 1e6:,.4g}"
        return cost if tokens else ""


def _task(prediction: str, example: Example) -> _Task:
    reference = "\n".join(" ".join(sentences) for sentences in example.references).strip()
    sentences = tuple(split_summary(prediction))
    return _Task(example.id, reference, sentences, example.source_group())


def _numbered(heading: str, texts: Sequence[str]) -> str:
    lines = [f"{number}. {text}" for number, text in enumerate(texts, start=1)]
    return "\n".join([heading, *lines])


def _cleaned(points: Sequence[str]) -> list[str]:
    texts = dict.fromkeys(" ".join(point.split()) for point in points)
    return [text for text in texts if text]


def _read_points(text: str) -> list[str] | None:
    return _cleaned(parse_json(text, dict[str, list[str]]).get("key_points", [])) or None


def _read_answer(text: str, num_points: int, num_sentences: int) -> _JudgeAnswer | None:
    answer = parse_json(text, _JudgeAnswer)
    is_whole = answer.matches.keys() == set(range(1, num_points + 1))
    is_whole = is_whole and answer.stating() <= set(range(1, num_sentences + 1))
    return answer if is_whole and 1 <= answer.fluency <= 5 else None


def _score_answer(task: _Task, answer: _JudgeAnswer | None) -> list[float]:
    """Return recall, precision and fluency; the first two need key points."""
    if answer is None:
        return [math.nan] * 3
    recall = precision = math.nan
    if answer.matches:
        recall = float(np.mean([bool(numbers) for numbers in answer.matches.values()]))
        precision = len(answer.stating()) / len(task.sentences)
    return [recall, precision, answer.fluency]
