"""PromptSystem: a language model is asked for a summary of each text.

    Example --prompts--> messages --truncation--> requests --LanguageModel--> answers --> Summary

With `model.truncate=stages`, the answers about the parts of a text are the text of the next requests.

`PromptSystem.summarize` is the door: it asks the engine, round by round, what the `Dialogue` of each example wants next.
"""

import logging
import random
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import Any

from longsumbench.core import (
    Answer,
    Decoding,
    Example,
    FitContext,
    FitReport,
    Fitted,
    LanguageModel,
    Message,
    Request,
    Split,
    Summary,
    System,
    Truncation,
    count_words,
)
from longsumbench.core.answer_text import UNKNOWN_MARK, split_answer
from longsumbench.errors import MissingSplit, SuiteError, UsageError
from longsumbench.files import digest
from longsumbench.formatting import format_count
from longsumbench.modeling.extraction import extract_length, mean_target_words
from longsumbench.models.prompt.chat import starts_thinking
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.prompts import Prompt
from longsumbench.models.prompt.truncation import LongText, Passage

_log = logging.getLogger(__name__)

# The share of its text that the summaries of a stage may have at most.
_SHORTER = 0.8
# Tokens of a word, about, in an answer.
_WORD_TOKENS = 1.5
_ANSWER_COUNTS = (
    "requests",
    "prompt_tokens",
    "output_tokens",
    "thinking_tokens",
    "refused",
    "failed",
)
# Characters of the ids in a message.
_LONGEST_NAMES = 200


class Dialogue:
    """The requests about one example, and what was answered so far. An empty text gets no request.

    Raises:
        UsageError: there is no room for the text, or it does not fit and must not be cut.
    """

    def __init__(self, system: "PromptSystem", example: Example) -> None:
        self.system, self.example = system, example
        # The requests to answer next; empty when the summary is written.
        self.prompts: list[list[Message]] = []
        # Why there is no answer to a request.
        self.problem: SuiteError | None = None
        self._sent: list[list[Message]] = []
        # Of the text in the current prompts.
        self._tokens = 0
        self._text, self._complete = "", True
        self._counts = Counter(dict.fromkeys(_ANSWER_COUNTS, 0))
        # None if tokens are unknown.
        self.ledger = self._begin(system.passage(example), system.config.truncate)

    def _begin(self, passage: Passage, policy: str) -> Truncation | None:
        """Set the first requests, and return the ledger."""
        if not passage.text:
            return Truncation(0, 0)
        if self.system.engine.tokenizer is None or self.system.budget is None:
            self._ask([passage.text])
            return None
        text = self._long_text(passage)
        if text.excess <= 0 or policy == "stages":
            self._ask_about(text)
            return text.ledger([(0, len(passage.text))])
        if policy == "none":
            raise _too_long(self.system, text.budget + text.excess, self.example.id)
        shortened, ledger = text.shortened(policy)
        self._ask([shortened] if shortened else [], text)
        return ledger

    def _long_text(self, passage: Passage) -> LongText:
        engine, budget = self.system.engine, self.system.budget
        assert budget is not None

        def count(text: str) -> int:
            return engine.count(self.system.messages(self.example, text))

        return LongText(passage, engine.tokenizer, count, budget)

    def _ask_about(self, text: LongText) -> None:
        """Set the requests about a text, in parts if it is too long."""
        self._ask([text.passage.text] if text.excess <= 0 else text.parts(), text)
        self._tokens = len(text.offsets)

    def _ask(self, parts: Sequence[str], text: LongText | None = None) -> None:
        """Set the requests about parts of a text; without any, there is no room for the text."""
        if text is not None and not parts:
            raise _too_long(self.system, text.budget - text.room, self.example.id)
        self.prompts = [self.system.messages(self.example, part) for part in parts]

    def requests(self, decoding: Decoding, limit: int) -> list[Request]:
        """Return the next requests, each with its own seed."""
        requests = []
        for prompt in self.prompts:
            seed = int(digest([decoding.seed, self.example.id, len(self._sent)])[:8], 16)
            requests.append(Request(tuple(prompt), seed, limit))
            self._sent.append(prompt)
        return requests

    def add_answers(self, answers: Sequence[Answer]) -> None:
        """Take the answers to the requests; of several, ask for one summary of them, in stages if it must be."""
        self.prompts = []
        texts = []
        for answer in answers:
            texts.append(self._add_answer(answer))
            self.problem = self.problem or answer.problem
        if self.problem:
            self._counts["failed"] = 1
            return
        passage = Passage.of_summaries(texts)
        if len(texts) == 1:
            self._text = texts[0]
        elif passage.text:
            text = self._long_text(passage)
            # Summaries that do not get shorter might be summarized for ever.
            if text.excess > 0 and len(text.offsets) > _SHORTER * self._tokens:
                self._text, self._complete = "\n".join(texts), False
            else:
                self._ask_about(text)

    def _add_answer(self, answer: Answer) -> str:
        """Count an answer, and return its text without thinking and marks of chat formats."""
        engine, config = self.system.engine, self.system.config
        thinks_first = not answer.thinking and starts_thinking(engine.tokenizer, config)
        text, thinking, unfinished = split_answer(answer.text, config.thinking_end, thinks_first)
        self._complete &= answer.complete and not unfinished
        _report_unknown_mark(self.system, text)
        self._counts.update(
            requests=1,
            prompt_tokens=answer.prompt_tokens,
            output_tokens=answer.output_tokens,
            thinking_tokens=_tokens_within(engine, answer.thinking + thinking, answer),
            refused=int(answer.refused),
        )
        return text

    def summary(self, keep_inputs: bool) -> Summary:
        """Return the summary, with the price of its tokens in US dollars if there is one."""
        config = self.system.config
        counts: dict[str, float] = dict(self._counts)
        if config.input_price is not None and config.output_price is not None:
            dollars = config.input_price * counts["prompt_tokens"]
            dollars += config.output_price * counts["output_tokens"]
            counts["price"] = dollars / 1_000_000
        return Summary(
            self.example.id,
            self._text,
            self.ledger,
            self._complete,
            self._counts["output_tokens"],
            counts=counts,
            read=_sent_text(self._sent) if keep_inputs else None,
        )


@dataclass
class PromptFitted(Fitted):
    """What prompts need; `shots` are the messages of examples that were drawn."""

    shots: list[Message] | None = None


class PromptSystem(System):
    """A language model that is prompted for a summary, and not trained."""

    Config, State = PromptConfig, PromptFitted
    config: PromptConfig
    state: PromptFitted

    def __init__(self, config: PromptConfig) -> None:
        super().__init__(config)
        # Of the checked examples: has a query, has several documents.
        self._kinds: set[tuple[bool, bool]] = set()
        # The first one in an answer.
        self.unknown_mark = ""

    @cached_property
    def engine(self) -> LanguageModel:
        """The language model, opened when it is first used."""
        return self.config.open_engine()

    @cached_property
    def prompts(self) -> dict[str, Prompt]:
        """The prompts in use, by name."""
        return self.config.prompts()

    @cached_property
    def budget(self) -> int | None:
        """The most tokens of a prompt; None if nothing limits it.

        Raises:
            UsageError: the limit is unknown, or the model has fewer positions.
        """
        config, context = self.config, self.engine.context
        if context is None:
            if config.input_length is None and config.truncate != "none":
                raise UsageError(
                    f"model.input_length is missing: model.checkpoint={config.checkpoint} does not say how many tokens"
                    " it can read; give the most tokens of a prompt"
                )
            return config.input_length
        if (config.input_length or 1) + config.decode_length > context:
            limit = f"model.input_length={config.input_length} and " if config.input_length else ""
            raise UsageError(
                f"{limit}model.decode_length={config.decode_length} exceed the {context:,} positions of"
                f" model.checkpoint={config.checkpoint}: choose smaller lengths"
            )
        return config.input_length or context - config.decode_length

    def facts(self) -> dict[str, Any]:
        """Return facts about the model, and the prompts of the checked examples; without any, of the dataset."""
        kinds = self._kinds or {(bool(self.state.queried), bool(self.state.multi_document))}
        names = sorted({self.prompt_name(*kind) for kind in kinds})
        return {
            **self.engine.facts(),
            "context": self.budget,
            "released": self.config.released,
            "prompt": ", ".join(Path(name).stem for name in names),
            "prompt_hash": ", ".join(self.prompts[name].hash for name in names),
        }

    def check_examples(self, examples: Iterable[Example]) -> None:
        """Check that prompts have room for texts and, with `model.truncate=none`, that the texts fit.

        The prompts are as short as they can be, without examples (`model.shots`) that are not drawn yet.

        Raises:
            UsageError: a query is missing, or a prompt is too long.
        """
        refuses = self.config.truncate == "none"
        words = 1 if self.config.length == "train" else int(self.config.length)
        lengths: list[tuple[int, str]] = []
        for example in examples:
            self._kinds.add(_prompt_kind(example))
            if self.prompt_of(example).asks_query and not example.query:
                raise UsageError(
                    f"model.prompt={self.config.prompt} asks for a query, and example '{example.id}' has none:"
                    " choose another prompt"
                )
            if self.budget is not None and self.engine.tokenizer is not None:
                text = self.passage(example).text if refuses else ""
                lengths.append((self.engine.count(self.messages(example, text, words)), example.id))
        # Without its text, a prompt leaves room for one token of it at least.
        limit = (self.budget or 0) - (0 if refuses else 1)
        too_long = [length for length in lengths if length[0] > limit]
        if too_long:
            raise _too_long(self, *max(too_long), f"{len(too_long)} of {len(lengths)} prompts are")

    def fit(self, context: FitContext) -> FitReport:
        """Learn what the prompts need, as `prepare` does."""
        self.prepare(context)
        return FitReport(parameters=self.engine.facts().get("parameters", 0))

    def prepare(self, context: FitContext) -> None:
        """Choose the prompt that fits the dataset, learn the length to ask for, and draw examples.

        Raises:
            MissingSplit: the training split is needed, and missing.
            UsageError: too few examples are short enough.
        """
        config, train = self.config, context.train
        split = context.validation if train is None else train
        if split is not None:
            self.state.queried = split.queried
            self.state.multi_document = split.multi_document
        asks_as_trained = config.length == "train"
        if asks_as_trained or config.shots:
            if train is None or len(train) == 0:
                setting = "length=train" if asks_as_trained else f"shots={config.shots}"
                raise MissingSplit(
                    f"model.{setting} needs a train split: choose model.length=<words> model.shots=0"
                )
            if asks_as_trained:
                self.state.target_words = mean_target_words(train)
        words = self.state.target_words if asks_as_trained else int(config.length)
        assert words is not None
        tokens = words * _WORD_TOKENS
        if tokens > config.decode_length:
            _log.warning(
                f"model.decode_length={config.decode_length} is short for a summary of {words:,.0f} words: choose at"
                f" least {round(tokens):,}, or a smaller model.length"
            )
        if config.shots and train is not None:
            self.state.shots = self._draw_shots(train, context.recipe.seed)

    def _draw_shots(self, train: Split, seed: int) -> list[Message]:
        """Return the turns of examples drawn from the training split: the first ones that fit into half of a prompt."""
        number = self.config.shots
        # Tokens of one example.
        longest = sys.maxsize if self.budget is None else self.budget // (2 * number)
        # Lengths are known without reading the examples; only the drawn ones are read.
        places = []
        for place, lengths in enumerate(
            zip(train.source_words, train.reference_words, strict=True)
        ):
            if all(lengths) and sum(lengths) <= longest:
                places.append(place)
        random.Random(f"{seed} shots").shuffle(places)  # noqa: S311 - not used for secrets
        turns: list[Message] = []
        for place in places:
            example = train[place]
            answer = " ".join(example.references[0])
            text = self.passage(example).text
            *_, question = self.messages(example, text, count_words([answer]))
            turn: list[Message] = [question, {"role": "assistant", "content": answer}]
            if self.engine.count(turn) <= longest:
                turns.extend(turn)
            if len(turns) == 2 * number:
                return turns
        raise UsageError(
            f"model.shots={number}: only {len(turns) // 2} of {len(train):,} training examples have at most {longest:,}"
            " tokens, so that all fit into half of a prompt: choose fewer model.shots or a larger model.input_length"
        )

    def ledgers(self, example: Example) -> tuple[Truncation | None, None]:
        """Return what `summarize` would cut from an example; None without a tokenizer."""
        return Dialogue(self, example).ledger, None

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield one summary per example, in their order; an empty one of an example without an answer.

        Raises:
            SuiteError: an example has no answer, and `decoding.failed` is "stop". Answers about the others are kept.
        """
        dialogues = [Dialogue(self, example) for example in examples]
        limit = min(self.config.decode_length, decoding.max_length or self.config.decode_length)
        keep_inputs = decoding.keep_inputs != "none"
        unfinished = deque(dialogues)
        # A round answers the next requests of all dialogues together. Summaries are given as soon as they are written.
        while waiting := [dialogue for dialogue in dialogues if dialogue.prompts]:
            requests: list[Request] = []
            for dialogue in waiting:
                requests += dialogue.requests(decoding, limit)
            answers = self.engine.answer(requests, decoding)
            for dialogue in waiting:
                dialogue.add_answers(list(islice(answers, len(dialogue.prompts))))
                while unfinished and not (unfinished[0].prompts or unfinished[0].problem):
                    yield unfinished.popleft().summary(keep_inputs)
        _report_failed([one for one in dialogues if one.problem], decoding.failed)
        for dialogue in unfinished:
            yield dialogue.summary(keep_inputs)

    def prompt_name(self, queried: bool, several: bool) -> str:
        """Return the name of the prompt that was chosen, or that fits examples with a query, or several documents."""
        if self.state.multi_document is not None:
            several = self.state.multi_document
        if self.config.prompt:
            return self.config.prompt
        if queried:
            return "query"
        return "documents" if several else "document"

    def prompt_of(self, example: Example) -> Prompt:
        """Return the prompt of an example."""
        return self.prompts[self.prompt_name(*_prompt_kind(example))]

    def passage(self, example: Example) -> Passage:
        """Return the whole text of an example."""
        return Passage.of_example(example, self.prompt_of(example).label)

    def messages(self, example: Example, text: str, words: int | None = None) -> list[Message]:
        """Return the prompt of an example with a text; the drawn examples come after the system's message.

        It asks for `words`, or as `model.length` says.
        """
        if words is None:
            words = extract_length(
                self.config.length, example, self.state.target_words, "model.length"
            )
        *system, question = self.prompt_of(example).messages(text, example.query, words)
        return [*system, *(self.state.shots or ()), question]


def _sent_text(prompts: Sequence[Sequence[Message]]) -> str:
    """Return all messages of some requests, each after a line with its request and its role."""
    texts = []
    for number, prompt in enumerate(prompts, start=1):
        for message in prompt:
            heading = f"── request {number} of {len(prompts)}, {message['role']}"
            texts.append(f"{heading}\n{message['content']}")
    return "\n\n".join(texts)


def _tokens_within(engine: LanguageModel, text: str, answer: Answer) -> int:
    """Return how many tokens of an answer are in its first text; without a tokenizer, by their characters."""
    if engine.tokenizer is None:
        return round(answer.output_tokens * len(text) / max(1, len(answer.thinking + answer.text)))
    ids = engine.tokenizer(text, add_special_tokens=False)["input_ids"]
    return min(answer.output_tokens, len(ids))


def _report_unknown_mark(system: PromptSystem, text: str) -> None:
    """Warn of the first answer with what looks like a mark of a chat format."""
    mark = UNKNOWN_MARK.search(text)
    if mark and not system.unknown_mark:
        system.unknown_mark = mark[0]
        _log.warning(
            f"an answer has '{mark[0]}', which looks like a mark of a chat format: it stays, and is scored"
        )


def _too_long(
    system: PromptSystem, tokens: int, example: str, subject: str = "a prompt is"
) -> UsageError:
    """Return the error about a prompt of some tokens, with its text if that is not to be cut, else without."""
    counted, advice = " without its text", ""
    if system.config.truncate == "none":
        counted, advice = "", "another model.truncate, "
    return UsageError(
        f"{subject} too long: example '{example}' needs {tokens:,} tokens{counted}, model.input_length allows"
        f" {system.budget:,}; choose {advice}a larger model.input_length, a shorter model.prompt or fewer model.shots"
    )


def _report_failed(dialogues: Sequence[Dialogue], choice: str) -> None:
    """Name the examples without an answer in a warning or, if the choice is to stop, in an error."""
    if not dialogues:
        return
    problem = dialogues[0].problem
    assert problem is not None
    ids = ", ".join(repr(dialogue.example.id) for dialogue in dialogues)
    names = shorten(ids, _LONGEST_NAMES, placeholder=" …")
    lost = f"no answer about {format_count(len(dialogues), 'example')}, {names} (decode.failed={choice}): {problem}"
    if choice == "stop":
        raise type(problem)(
            f"{lost}; decode.failed=empty scores an empty summary, decode.failed=leave_out none"
        )
    _log.warning(lost)


def _prompt_kind(example: Example) -> tuple[bool, bool]:
    """Return whether an example has a query, and several documents."""
    return bool(example.query), len(example.documents) > 1
