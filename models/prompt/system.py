"""PromptSystem: a language model is asked for a summary of each text.

    Example --Reading--> requests --LanguageModel--> answers --Reading--> further requests, or the Summary

`PromptSystem.summarize` is the door: it asks the engine, round by round, what the `Dialogue` of each example wants next.
`readings/` has the ways of reading (`model.reading`); this module knows none of them by name.
"""

import logging
import random
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import Any, Self

from longsumbench.core import (
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
from longsumbench.errors import MissingSplit, UsageError
from longsumbench.formatting import format_count
from longsumbench.modeling.extraction import extract_length, mean_target_words
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.dialogue import Dialogue
from longsumbench.models.prompt.prompts import Prompt
from longsumbench.models.prompt.selector import Selector
from longsumbench.models.prompt.source_text import Passage

_log = logging.getLogger(__name__)

# Tokens of a word, about, in an answer.
_WORD_TOKENS = 1.5
# Characters of the ids in a message.
_LONGEST_NAMES = 200


@dataclass
class PromptFitted(Fitted):
    """What prompts need; `shots` are the messages of examples that were drawn."""

    shots: list[Message] | None = None


class PromptSystem(System):
    """A language model that is prompted for a summary, and not trained.

    Attributes:
        unknown_mark: the first one in an answer, of a chat format.
    """

    Config, State = PromptConfig, PromptFitted
    config: PromptConfig
    state: PromptFitted

    def __init__(self, config: PromptConfig) -> None:
        super().__init__(config)
        # Of the checked examples: has a query, has several documents.
        self._kinds: set[tuple[bool, bool]] = set()
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
    def selector(self) -> Selector:
        """What chooses snippets, for readings that select."""
        return Selector(self.config)

    @property
    def counts_tokens(self) -> bool:
        """True if tokens are counted, and limited."""
        return self.engine.tokenizer is not None and self.budget is not None

    @cached_property
    def budget(self) -> int | None:
        """The most tokens of a prompt; None if nothing limits it.

        Raises:
            UsageError: the limit is unknown, or the model has fewer positions.
        """
        config, context = self.config, self.engine.context
        if context is None:
            if config.input_length is None and not config.reading_class.refuses_long_texts:
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
        """Check that prompts have room for texts and, with `model.reading=whole`, that the texts fit.

        The prompts are as short as they can be, without examples (`model.shots`) that are not drawn yet.

        Raises:
            UsageError: a query is missing, or a prompt is too long.
        """
        reading, config = self.config.reading_class, self.config
        refuses = reading.refuses_long_texts
        words = 1 if config.length == "train" else int(config.length)
        lengths: list[tuple[int, str]] = []
        for example in examples:
            self._kinds.add(_prompt_kind(example))
            self._check_prompt(example)
            if reading.selects:
                self.selector.check_examples([example])
            if self.counts_tokens:
                text = self.passage(example).text if refuses else ""
                counts = []
                for entry in {"user", reading.entry_for(self.engine)}:
                    messages = self.messages(example, text, words, entry=entry)
                    counts.append(self.engine.count(messages))
                lengths.append((max(counts), example.id))
        if not lengths:
            return
        # Without its text, a prompt leaves room for a unit of it at least.
        # The snippets of a run have their own length.
        setting = "" if config.selects_by_run else reading.unit_setting
        unit = vars(config).get(setting) or 1
        budget = self.budget or 0
        too_long = [length for length in lengths if length[0] > budget - reading.least_room]
        if too_long:
            subject = f"{len(too_long)} of {len(lengths)} prompts are"
            raise self.too_long(*max(too_long), with_text=refuses, subject=subject)
        tokens, name = max(lengths)
        if not refuses and tokens + unit > budget:
            raise UsageError(
                f"model.{reading.unit_setting}={unit:,} does not fit into a prompt of {budget:,} tokens, of which example"
                f" '{name}' needs {tokens:,} without its text: choose at most {budget - tokens:,}, or a larger"
                " model.input_length"
            )

    def _check_prompt(self, example: Example) -> None:
        """Check that the prompt of an example has what it needs, and the text that the reading needs."""
        prompt, config = self.prompt_of(example), self.config
        if prompt.asks_query and not example.query:
            raise UsageError(
                f"model.prompt={config.prompt} asks for a query, and example '{example.id}' has none:"
                " choose another prompt"
            )
        entry = config.reading_class.entry_for(self.engine)
        if not prompt.text_of(entry):
            raise UsageError(
                f"model.reading={config.reading} needs a text '{entry}' in the prompt, and"
                f" model.prompt={config.prompt} has none: add it, or choose another prompt"
            )

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
        if config.reading_class.selects:
            self.selector.prepare(context)

    def save(self, folder: Path) -> None:
        """Save the settings, what was learned, and the selector."""
        super().save(folder)
        if self.config.reading_class.selects:
            self.selector.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load what `save` wrote."""
        system = super().load(folder)
        if system.config.reading_class.selects:
            system.selector.load(folder)
        return system

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
        return Dialogue(self, example, self.config.decode_length).ledger, None

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield one summary per example, in their order; an empty one of an example without an answer.

        Raises:
            SuiteError: an example has no answer, and `decoding.failed` is "stop". Answers about the others are kept.
        """
        limit = min(self.config.decode_length, decoding.max_length or self.config.decode_length)
        self.selector.decoding = decoding
        dialogues = [Dialogue(self, example, limit) for example in examples]
        unfinished = deque(dialogues)
        # A round answers the next requests of all dialogues together. Summaries are given as soon as they are written.
        while waiting := [dialogue for dialogue in dialogues if dialogue.asks]:
            requests: list[Request] = []
            for dialogue in waiting:
                requests += dialogue.requests(decoding)
            answers = self.engine.answer(requests, decoding)
            for dialogue in waiting:
                dialogue.add_answers(list(islice(answers, len(dialogue.asks))))
                while unfinished and not (unfinished[0].asks or unfinished[0].problem):
                    yield self._summary_of(unfinished.popleft(), decoding)
        _report_failed([one for one in dialogues if one.problem], decoding.failed)
        for dialogue in unfinished:
            yield self._summary_of(dialogue, decoding)

    def _summary_of(self, dialogue: Dialogue, decoding: Decoding) -> Summary:
        """Return the summary of a dialogue; warn of the first one with what looks like a mark of a chat format."""
        mark = dialogue.unknown_mark
        if mark and not self.unknown_mark:
            self.unknown_mark = mark
            _log.warning(
                f"an answer has '{mark}', which looks like a mark of a chat format: it stays, and is scored"
            )
        keeps_evidence = self.config.reading_class.keeps_evidence and decoding.evidence != "none"
        return dialogue.summary(decoding.keep_inputs != "none", keeps_evidence)

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

    def words(self, example: Example) -> int:
        """Return the number of words to ask for, as `model.length` says."""
        return extract_length(self.config.length, example, self.state.target_words, "model.length")

    def messages(
        self,
        example: Example,
        text: str,
        words: int | None = None,
        *,
        entry: str = "user",
        written: str = "",
    ) -> list[Message]:
        """Return the prompt of an example with a text; the drawn examples come after the system's message.

        It asks for `words`, or as `model.length` says. `entry` and `written`: see `Prompt.messages`.
        """
        if words is None:
            words = self.words(example)
        prompt = self.prompt_of(example)
        *system, question = prompt.messages(text, example.query, words, entry, written)
        return [*system, *(self.state.shots or ()), question]

    def too_long(
        self,
        tokens: int,
        example: str,
        *,
        with_text: bool = False,
        subject: str = "a prompt is",
    ) -> UsageError:
        """Return the error about a prompt of some tokens, with its text if that is not to be cut, else without."""
        counted, advice = " without its text", ""
        least = self.config.reading_class.least_room
        if least > 1:
            counted += f" and at least {least} for that"
        if with_text:
            counted, advice = "", "another model.reading, "
        return UsageError(
            f"{subject} too long: example '{example}' needs {tokens:,} tokens{counted}, model.input_length allows"
            f" {self.budget:,}; choose {advice}a larger model.input_length, a shorter model.prompt or fewer model.shots"
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
