"""Judge: which key points of the references a summary states, and how fluent it is, as language models see it.

references --key points--> numbered points, with the numbered sentences of a summary --answer--> recall, precision,
fluency.

With `score.judge_form=probabilities`, a small model can judge: each key point and each sentence is a question of yes or no.
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
from longsumbench.metrics.judge_model import (
    JudgeModel,
    JudgeQuestion,
    does_it_say,
    find_unlike,
    prompts,
    rate_language,
)
from longsumbench.metrics.rank_statistics import (
    draw_counts,
    krippendorff_alpha,
    percentile_interval,
)
from longsumbench.metrics.statistics import BOOTSTRAP_SEED, number_groups
from longsumbench.modeling.checkpoints import split_revision
from longsumbench.sentences import SPLITTER_NAME, split_summary

_log = logging.getLogger(__name__)

_MOST_JUDGES = 3
_PROBABLE = 0.5  # from here on, a key point counts as stated where judges are compared
_COLUMNS = ("judge_recall", "judge_precision", "judge_fluency")
_OF_SEVERAL = (
    "judge_same",
    *(f"{column}_{number}" for number, column in product((1, 2, 3), _COLUMNS)),
)


class _JudgeAnswer(msgspec.Struct, frozen=True):
    matches: dict[int, list[int]]  # number of a key point → numbers of the sentences that state it
    fluency: int


class _Verdict(NamedTuple):
    """What a judge says of a summary.

    Attributes:
        points: of each key point whether, or how probably, the summary states it.
        sentences: of each sentence whether, or how probably, it states a key point.
        fluency: 1–5.
    """

    points: Sequence[float]
    sentences: Sequence[float]
    fluency: float

    def scores(self) -> list[float]:
        """Return recall, precision and fluency; the first two need key points."""
        recall = precision = math.nan
        if self.points:
            recall, precision = float(np.mean(self.points)), float(np.mean(self.sentences))
        return [recall, precision, self.fluency]


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

    By probabilities, recall is the mean probability that the summary says a key point, and precision that the references
    say a sentence; fluency is the expected rating. Key points that are not given are the sentences of the references.
    `judge_margin` is the recall of an example's references minus that of the references of another source: 0 if the judge
    tells nothing apart.

    Deviation: the key points are those of all references together, where FineSurE has one reference.
    """

    needs_source = False
    name = "judge"
    # 1 missed verdicts before a second thought, and after less usual marks of thinking
    version = 2
    columns = (*_COLUMNS, "judge_missing")
    further = ("judge_margin", *_OF_SEVERAL)
    units = MappingProxyType(
        {name: "1–5" for name in (*columns, *further) if "fluency" in name} | {"judge_alpha": "α"}
    )

    def __init__(self, scoring: core.Scoring) -> None:
        super().__init__(scoring)
        self._on_points: dict[_Task, list[list[bool]]] = {}  # answers, [judges, key points]
        self._unlike: dict[str, str] = {}  # id → the references of an example of another source

    def check(self) -> None:
        """Open the models, and read the file of key points."""
        self.signature(0)

    def signature(self, n: int) -> str:
        """Name the metric, its version, models with a digest of what decides their answers, key points, splitter."""
        points = "of_first_judge" if self._given is None else f"given@{digest(self._given)[:8]}"
        models = ",".join(
            f"{Path(split_revision(judge.name)[0]).name}@{judge.key[:8]}" for judge in self._judges
        )
        if self._by_probabilities:
            models += "|form:probabilities"
            points = "sentences" if self._given is None else points
        parts = f"models:{models}|prompts:{digest(prompts())[:8]}|key_points:{points}|sentences:{SPLITTER_NAME}"
        return f"{self.name}:{self.version}|{parts}"

    # one batch of questions for each judge is faster than a question for each summary
    def prepare(self, items: Iterable[tuple[str, Example]]) -> None:
        """Say what it costs, and ask all judges what is not answered yet."""
        device = self.scoring.device
        tasks = [_task(*item) for item in items]
        if len(tasks) > 1:  # what is scored by itself later keeps them
            self._unlike = find_unlike((task.id, task.group, task.reference) for task in tasks)
        tasks = [task for task in tasks if task.sentences]
        costs = [self._cost(judge, tasks) for judge in self._judges]
        if any(costs):
            described = "; ".join(filter(None, costs))
            _log.info(f"judges: {described}; not counting answers that are asked for again")
        self._judges[0].ask(filter(None, map(self._points_question, tasks)), device)
        for judge in self._judges:
            questions = map(self._questions, tasks)
            margins = map(self._margin_questions, tasks)
            judge.ask(chain.from_iterable(chain(questions, margins)), device)
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
            verdicts = []
            for judge in self._judges:
                answers = judge.find_answers(self._questions(task))
                asked += answers
                verdicts.append(_join_answers(answers, len(points or ())))
            rows = [[math.nan] * 3 if each is None else each.scores() for each in verdicts]
            complete = [verdict for verdict in verdicts if verdict is not None]
            if points and len(complete) == len(verdicts):
                sentence_scores = self._mean_over_judges(task, points, complete)
            asked += [points] if self._points_question(task) else []
        missing = float(np.mean([answer is None for answer in asked])) if asked else math.nan
        scores = dict(zip(self.columns, [*np.mean(rows, axis=0).tolist(), missing], strict=True))
        if self._by_probabilities:
            scores["judge_margin"] = self._find_margin(task)
        if len(rows) > 1:
            equal = np.ptp(np.array(self._on_points.get(task, [[]]), dtype=float), axis=0) == 0
            values = [float(equal.mean()) if equal.size else math.nan, *chain(*rows)]
            scores |= dict(zip(_OF_SEVERAL, values, strict=False))
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
        self, task: _Task, points: Sequence[str], verdicts: Sequence[_Verdict]
    ) -> list[SentenceScore]:
        points_of_judges = np.array([verdict.points for verdict in verdicts])
        self._on_points[task] = (points_of_judges >= _PROBABLE).tolist()
        rows = [[*verdict.points, *verdict.sentences] for verdict in verdicts]
        shares = np.mean(rows, axis=0).tolist()
        return [SentenceScore(share, -1, point) for share, point in zip_longest(shares, points)]

    @property
    def _by_probabilities(self) -> bool:
        return self.scoring.judge_form == "probabilities"

    def _margin_questions(self, task: _Task) -> list[JudgeQuestion]:
        """Return whether the references say each key point, and then whether those of another example do."""
        unlike = self._unlike.get(task.id)
        if not (self._by_probabilities and task.reference and unlike):
            return []
        points = self._points(task) or ()
        of_own = [does_it_say(task.reference, point) for point in points]
        return of_own + [does_it_say(unlike, point) for point in points]

    def _find_margin(self, task: _Task) -> float:
        """Return the recall of the references minus that of those of another example, NaN if it is unknown."""
        questions = self._margin_questions(task)
        rows = [judge.find_answers(questions) for judge in self._judges]
        if not questions or None in chain(*rows):
            return math.nan
        recall, recall_of_unlike = np.split(np.mean(rows, axis=0), 2)
        return float(recall.mean() - recall_of_unlike.mean())

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
        if self._given is None and self._by_probabilities:
            return tuple(dict.fromkeys(split_summary(task.reference)))
        if self._given is None:
            question = self._points_question(task)
            return self._judges[0].find_answer(question) if question else ()
        if task.id not in self._given:
            problem = f"no key points of '{task.id}': add them, or leave score.judge_key_points out"
            raise DataError(problem, self.scoring.judge_key_points)
        return self._given[task.id]

    def _points_question(self, task: _Task) -> JudgeQuestion | None:
        if self._by_probabilities or self._given is not None:
            return None
        if not (task.reference and task.sentences):
            return None
        return JudgeQuestion(f"{prompts()['key_points']}\n\n{task.reference}", _read_points)

    def _questions(self, task: _Task, points: Sequence[str] | None = None) -> list[JudgeQuestion]:
        """Return what each judge is asked about a summary; default: with its key points, if any are known."""
        points = (self._points(task) or ()) if points is None else points
        if self._by_probabilities:
            summary, passage = " ".join(task.sentences), "\n".join(points)
            of_points = [does_it_say(summary, point) for point in points]
            of_sentences = [
                does_it_say(passage, sentence) for sentence in task.sentences if passage
            ]
            return [*of_points, *of_sentences, rate_language(summary)]
        lists = f"{_numbered('Key points:', points)}\n\n{_numbered('Summary:', task.sentences)}"
        read = partial(_read_answer, num_points=len(points), num_sentences=len(task.sentences))
        return [JudgeQuestion(f"{prompts()['verdict']}\n\n{lists}", read)]

    def _cost(self, judge: JudgeModel, tasks: Sequence[_Task]) -> str:
        """Describe the requests that are not answered yet, without retries; empty if there are none."""
        first, tokens = self._judges[0], dict[str, int]()
        longest = 1 if self._by_probabilities else judge.settings.decode_length
        for task in tasks:
            of_points = self._points_question(task)
            # the key points of a new reference are not known, so their length is bounded
            is_unknown = of_points is not None and not first.has_answered(of_points)
            if of_points and is_unknown and judge is first:
                tokens[of_points.prompt] = judge.count(of_points.prompt)
            unknown = first.settings.decode_length if is_unknown else 0
            questions = self._questions(task, () if is_unknown else None)
            for question in [*questions, *self._margin_questions(task)]:
                if is_unknown or not judge.has_answered(question):
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


def _join_answers(answers: Sequence[Any], num_points: int) -> _Verdict | None:
    """Return the verdict of the answers to all questions about a summary; None if a question has none."""
    if None in answers:
        return None
    if isinstance(answers[0], _Verdict):
        return answers[0]
    *probabilities, fluency = answers
    return _Verdict(probabilities[:num_points], probabilities[num_points:], fluency)


def _numbered(heading: str, texts: Sequence[str]) -> str:
    lines = [f"{number}. {text}" for number, text in enumerate(texts, start=1)]
    return "\n".join([heading, *lines])


def _cleaned(points: Sequence[str]) -> list[str]:
    texts = dict.fromkeys(" ".join(point.split()) for point in points)
    return [text for text in texts if text]


def _read_points(text: str) -> list[str] | None:
    return _cleaned(parse_json(text, dict[str, list[str]]).get("key_points", [])) or None


def _read_answer(text: str, num_points: int, num_sentences: int) -> _Verdict | None:
    answer = parse_json(text, _JudgeAnswer)
    points, sentences = range(1, num_points + 1), range(1, num_sentences + 1)
    stating = set(chain.from_iterable(answer.matches.values()))
    is_whole = answer.matches.keys() == set(points) and stating <= set(sentences)
    if not (is_whole and 1 <= answer.fluency <= 5):
        return None
    stated = [float(bool(answer.matches[number])) for number in points]
    return _Verdict(stated, [float(number in stating) for number in sentences], answer.fluency)
