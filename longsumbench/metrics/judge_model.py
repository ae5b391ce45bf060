"""A language model that answers questions about summaries; each is asked once, and its answer is stored.

An answer is JSON, a text, or the probabilities of some words (`does_it_say`, `rate_language`). JSON in another format is
asked for again in the same conversation, and then there is no verdict.
"""

import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import yaml  # type: ignore[import-untyped] # not annotated

from longsumbench import core
from longsumbench.cache.artifacts import user_cache
from longsumbench.cache.request_cache import REQUESTS, RequestCache
from longsumbench.conf import CONF
from longsumbench.core import Message, registry
from longsumbench.core.answer_text import split_answer
from longsumbench.errors import EnvironmentProblem, SuiteError, UsageError
from longsumbench.files import BadFile, digest, parse_json, read_text
from longsumbench.formatting import format_count
from longsumbench.modeling.checkpoints import split_revision
from longsumbench.progress import track

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_RETRIES = 2
_QUOTED = 500  # characters of a wrong answer that are sent with a retry
_BYTES_PER_TOKEN = 2  # fewest, about, where there is no tokenizer
# Settings of model=prompt that decide nothing here
_UNUSED = ("checkpoint", "revision", "prompt", "length", "shots", "reading", "input_length")


@cache
def prompts() -> dict[str, str]:
    """Return name → text of what judges are asked."""
    return dict(yaml.safe_load(read_text(CONF / "judge.yaml")))


class JudgeQuestion(NamedTuple):
    """What a judge is asked."""

    prompt: str
    read: Callable[[str], Any]  # text → the answer; None or BadFile if it has another format
    is_json: bool = True  # what is around the JSON is left out; other answers are as they are, and not asked for again
    choices: tuple[str, ...] = ()  # words whose probabilities are the answer


def find_unlike(examples: Iterable[tuple[str, str, _T]]) -> dict[str, _T]:
    """Return the id of each example → what the next one of another source has; one without it is passed over.

    Args:
        examples: the id, the group and what is looked for; empty if an example has none.
    """
    listed = list(examples)
    unlike = {}
    for index, (example_id, group, _) in enumerate(listed):
        for index_after in chain(range(index + 1, len(listed)), range(index)):
            _, its_group, sought = listed[index_after]
            if its_group != group and sought:
                unlike[example_id] = sought
                break
    return unlike


def does_it_say(passage: str, statement: str) -> JudgeQuestion:
    """Return a question whose answer is the probability that a passage says what a statement says."""
    prompt = fill_prompt(prompts()["says"], {"{passage}": passage, "{statement}": statement})
    return JudgeQuestion(prompt, lambda text: _read_numbers(text)[0], False, ("yes", "no"))


def rate_language(summary: str) -> JudgeQuestion:
    """Return a question whose answer is the expected rating of a summary's language, 1–5."""
    ratings = tuple("12345")

    def read(text: str) -> float:
        products = zip(map(int, ratings), _read_numbers(text), strict=True)
        return math.fsum(rating * probability for rating, probability in products)

    prompt = fill_prompt(prompts()["rating"], {"{summary}": summary})
    return JudgeQuestion(prompt, read, False, ratings)


def fill_prompt(prompt: str, texts: Mapping[str, str]) -> str:
    """Put texts into their places; one that names a place changes nothing."""
    places = "|".join(map(re.escape, texts))
    return re.sub(places, lambda place: texts[place[0]], prompt)


def _read_numbers(text: str) -> list[float]:
    return parse_json(text, list[float])


class JudgeModel:
    """A language model that is loaded, with its answers so far."""

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any],
        version: int,
        setting: str = "score.judge_models",
    ) -> None:
        """Load a language model.

        Args:
            name: folder or hub name, which may end with @revision.
            settings: those of `model=prompt`.
            version: that of the metric.
            setting: that has the name.

        Raises:
            UsageError: a setting is unknown, or decides nothing here.
            SuiteError: the model cannot be loaded.
        """
        for setting in filter(_UNUSED.__contains__, settings):
            problem = f"score.judge_settings has '{setting}', which it does not decide"
            raise UsageError(f"{problem}: leave it out")
        # a name of a server may contain an @
        checkpoint, revision = name, None
        if settings.get("engine") != "api":
            checkpoint, revision = split_revision(name)
        values = {"checkpoint": checkpoint, "revision": revision, "reading": "whole", **settings}
        self.name, self._setting = name, setting
        with self._named():
            self.settings: Any = core.build_settings(
                registry.load_config_class("prompt"), values, "model."
            )
            self.engine: core.LanguageModel = registry.engines.load(self.settings.engine)(
                self.settings
            )
            decisive = core.outcome_settings(self.settings) | self.engine.identity()
        # of what decides an answer, next to its question
        self.key = digest([version, prompts(), _RETRIES, decisive])
        self._answers: dict[str, str] = {}  # prompt → JSON or text; empty: no verdict
        self._cause = "its answers have another format"
        self._stored = RequestCache(user_cache().root / REQUESTS)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the model and its settings in errors of a language model."""
        try:
            yield
        except SuiteError as error:
            text = re.sub(r"\bmodel\.(checkpoint|revision)\b", self._setting, str(error))
            text = re.sub(r"\bmodel\.(?=[a-z_]+)", "score.judge_settings.", text)
            error.args = (f"judge {self.name}: {text}",)
            raise

    def count(self, prompt: str) -> int:
        """Return the number of tokens of a prompt, estimated if there is no tokenizer."""
        if self.engine.tokenizer is None:
            return len(prompt.encode()) // _BYTES_PER_TOKEN
        return self.engine.count([{"role": "user", "content": prompt}])

    def has_answered(self, question: JudgeQuestion) -> bool:
        """Return whether an answer is known, from now or from an earlier process."""
        prompt = question.prompt
        if prompt not in self._answers:
            stored = self._stored.get(digest((self.key, prompt)))
            if stored is not None:
                self._answers[prompt] = stored
        return prompt in self._answers

    def find_answer(self, question: JudgeQuestion) -> Any:
        """Return the answer to a question that was asked; None: it has another format."""
        return _read(question, self._answers[question.prompt])

    def find_answers(self, questions: Iterable[JudgeQuestion]) -> list[Any]:
        """Return the answers to some questions; see `find_answer`."""
        return [self.find_answer(question) for question in questions]

    def ask(self, questions: Iterable[JudgeQuestion], device: str) -> None:
        """Ask what is not answered yet, and store each answer as it arrives; a wrong format is asked for again."""
        waiting = {}
        turns: dict[str, list[Message]] = {}
        for question in questions:
            if not self.has_answered(question):
                waiting[question.prompt] = question
                turns[question.prompt] = [{"role": "user", "content": question.prompt}]
        decoding = core.Decoding(device=device)
        for attempt in range(_RETRIES + 1 if waiting else 0):
            requests = []
            for prompt, question in waiting.items():
                longest = 1 if question.choices else self.settings.decode_length
                turn = tuple(turns[prompt])
                requests.append(core.Request(turn, 0, longest, choices=question.choices))
            with self._named():
                answers = self.engine.answer(requests, decoding)
                answers = track(answers, f"asking {self.name}", len(requests), "requests")
                for question, answer in zip([*waiting.values()], answers, strict=True):
                    text = split_answer(
                        answer.text, self.settings.thinking_end, False, bool(answer.thinking)
                    ).text
                    reply = "" if question.is_json else text
                    if question.choices:
                        self._cause = "it gives no probabilities of these words"
                        weighed = answer.probabilities
                        reply = json.dumps(weighed) if weighed else ""
                    if question.is_json and answer.complete and not answer.refused:
                        reply = text[text.find("{") : text.rfind("}") + 1]
                    if _read(question, reply) is None:
                        reply = ""
                    if answer.problem:
                        self._cause = str(answer.problem)
                    # an answer of another format is asked for again in the same conversation
                    is_last = attempt == _RETRIES or not question.is_json
                    if reply or answer.problem or answer.refused or is_last:
                        prompt = waiting.pop(question.prompt).prompt
                        self._answers[prompt] = reply
                        if not answer.problem:  # a server may answer it later
                            self._stored.put(digest((self.key, prompt)), self.name, reply)
                    turns[question.prompt] += [
                        {"role": "assistant", "content": text[:_QUOTED]},
                        {"role": "user", "content": prompts()["again"]},
                    ]
        if lost := sum(not self._answers[prompt] for prompt in turns):
            _log.warning(
                f"judge {self.name}: no verdict on {format_count(lost, 'question')} of {len(turns):,}"
            )

    def check_any_answer(self) -> None:
        """Raise EnvironmentProblem if none of the questions so far has an answer in its format."""
        if self._answers and not any(self._answers.values()):
            with self._named():
                raise EnvironmentProblem(
                    f"no verdict on any question ({self._cause}): choose another model, or correct its settings"
                )


def _read(question: JudgeQuestion, text: str) -> Any:
    try:
        return question.read(text)
    except BadFile:
        return None
