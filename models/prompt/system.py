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
from dataclasses import replace
from functools import cached_property
from itertools import count, islice
from pathlib import Path
from typing import Any, Self

from longsumbench.core import (
    Answer,
    Decoding,
    Example,
    FitContext,
    FitReport,
    Message,
    Request,
    Split,
    Summary,
    System,
    count_words,
)
from longsumbench.core.answer_text import UNKNOWN_MARK, report_failed
from longsumbench.errors import MissingSplit, UsageError
from longsumbench.modeling import processes
from longsumbench.modeling.adapters import check_base, has_adapter
from longsumbench.modeling.extraction import mean_target_words
from longsumbench.modeling.training.fitting import checkpoint_folder, read_report
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.dialogue import Dialogue
from longsumbench.models.prompt.prompt_builder import WORD_TOKENS, PromptBuilder, PromptFitted
from longsumbench.progress import note_progress

_log = logging.getLogger(__name__)


class PromptSystem(System):
    """A language model that is prompted for a summary, as it is or trained further.

    Attributes:
        checkpoint: the folder of what was trained; set by `fit` if anything was.
        unknown_mark: the first one in an answer, of a chat format.
    """

    Config, State = PromptConfig, PromptFitted
    config: PromptConfig
    state: PromptFitted
    checkpoint: Path

    def __init__(self, config: PromptConfig) -> None:
        super().__init__(config)
        # Of the checked examples.
        self._prompt_names: set[str] = set()
        self.unknown_mark = ""

    @cached_property
    def builder(self) -> PromptBuilder:
        """What makes the prompts."""
        return PromptBuilder(self.config, self.state)

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of the model, and the prompts of the checked examples."""
        builder = self.builder
        names = sorted(self._prompt_names)
        hashes = [builder.prompts[name].hash for name in names]
        return {
            **builder.engine.metadata(),
            "context": builder.budget,
            "released": self.config.released,
            "prompt": ", ".join(Path(name).stem for name in names),
            "prompt_hash": ", ".join(hashes),
        }

    def check_examples(self, examples: Iterable[Example]) -> None:
        """Check that prompts have room for texts and, with `model.reading=whole`, that the texts fit.

        The prompts are as short as they can be, without examples (`model.shots`) that are not drawn yet.

        Raises:
            UsageError: a query is missing, or a prompt is too long.
        """
        builder = self.builder
        lengths: list[tuple[int, str]] = []
        for example in examples:
            self._prompt_names.add(builder.prompt_name(example))
            if builder.choose_prompt(example).asks_query and not example.query:
                name, what = self.config.prompt, "prompt"
                if name is None:
                    name, what = self.config.reading, "reading"
                raise UsageError(
                    f"model.{what}={name} asks for a query, and example '{example.id}' has none: choose another {what}"
                )
            builder.selector.check_example(example)
            if builder.counts_tokens:
                lengths.append((self._least_length(example), example.id))
        if lengths:
            self._check_lengths(lengths)

    def _least_length(self, example: Example) -> int:
        """Return the tokens of the longest prompt about an example; without its text if that may be cut."""
        builder, reading = self.builder, self.config.reading_class
        text = builder.passage(example).text if reading.refuses_long_texts else ""
        rooms = [builder.room(example), builder.room(example, reading.entry_for(builder.engine))]
        # With what was written before, some have a paragraph more.
        rooms += [builder.room(example, step, " ") for step in reading.steps_for(self.config)]
        return max(room.count(text) for room in rooms)

    def _check_lengths(self, lengths: Sequence[tuple[int, str]]) -> None:
        """Check that prompts of some tokens, each with the id of its example, have room for a unit of the text."""
        config, reading, budget = self.config, self.config.reading_class, self.builder.budget or 0
        too_long = [
            length for length in lengths if length[0] + reading.least_room_for(config) > budget
        ]
        tokens, name = max(lengths)
        if too_long:
            subject = f"{len(too_long)} of {len(lengths)} prompts are"
            raise self.builder.too_long(tokens, name, subject)
        # The snippets of a run have their own length.
        setting = "" if config.selects_by_run else reading.unit_setting
        unit = vars(config).get(setting) or 0
        if tokens + unit > budget:
            raise UsageError(
                f"model.{setting}={unit:,} does not fit into a prompt of {budget:,} tokens, of which example"
                f" '{name}' needs {tokens:,} without its text: choose at most {budget - tokens:,}, or a larger"
                " model.input_length"
            )

    def fit(self, context: FitContext) -> FitReport:
        """Learn what the prompts need, as `prepare` does; then train, as the settings say.

        Raises:
            UsageError: a prompt of the training split has no room for text.
            EnvironmentProblem: a package is missing, or the network does not fit into memory.
        """
        with processes.first_process_first():
            self.prepare(context)
        engine = self.builder.engine
        if not self.config.tunes or not context.recipe.max_steps:
            return FitReport(parameters=engine.metadata().get("parameters", 0))
        from longsumbench.models.prompt import fine_tuning

        self.state.base = engine.identity()["checkpoint"]
        self.checkpoint = fine_tuning.fine_tune(self.builder, context, self.save)
        self.load_checkpoint(1)
        return read_report(self.checkpoint)

    def load_checkpoint(self, number: int) -> None:
        """Write with the n-th best weights of `FitReport.kept`; 1 is the best."""
        engine: Any = self.builder.engine
        engine.use(checkpoint_folder(self.checkpoint, number))

    def prepare(self, context: FitContext) -> None:
        """Learn the length to ask for, and draw examples.

        Raises:
            MissingSplit: the training split is needed, and missing.
            UsageError: too few examples are short enough.
        """
        config, train = self.config, context.train
        tunes = config.tunes and context.recipe.max_steps
        split = context.validation if train is None else train
        if split is not None:
            self.state.queried = split.queried
        if config.length == "train" or config.shots or tunes:
            if train is None or len(train) == 0:
                setting = "length=train" if config.length == "train" else f"shots={config.shots}"
                advice = "choose model.length=<words> model.shots=0"
                if tunes:
                    setting, advice = "lora_rank or model.tune_all", "add one, or leave it out"
                raise MissingSplit(f"model.{setting} needs a train split: {advice}")
            if config.length == "train":
                self.state.target_words = mean_target_words(train)
            if config.shots:
                self.state.shots = self._draw_shots(train, context.recipe.seed)
        words = self.builder.words
        tokens = words * WORD_TOKENS
        if tokens > config.decode_length:
            _log.warning(
                f"model.decode_length={config.decode_length} is short for a summary of {words:,.0f} words: choose at"
                f" least {round(tokens):,}, or a smaller model.length"
            )
        self.builder.selector.prepare(context)

    def save(self, folder: Path) -> None:
        """Save the settings, what was learned, the selector, and the weights that were trained."""
        own = self.config
        if self.state.base is not None:
            engine: Any = self.builder.engine
            engine.save(folder)
            # What was loaded may read its own folder, which has no meaning elsewhere.
            self.config = engine.config
        super().save(folder)
        self.config = own
        self.builder.selector.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load what `save` wrote.

        Raises:
            UsageError: an adapter was trained for other weights than those of `model.checkpoint`.
        """
        system = super().load(folder)
        base, first = system.state.base, system.config
        if base is not None and not has_adapter(folder):
            # It needs no other checkpoint.
            system.config = replace(first, checkpoint=str(folder), revision=None)
        system.builder.selector.load(folder)
        if base is None:
            return system
        system.checkpoint = folder
        engine: Any = system.builder.engine
        if has_adapter(folder):
            check_base(base, engine.folder, f"{folder}")
        # Facts keep the name of the first checkpoint.
        engine.config = first
        engine.pretrained = replace(engine.pretrained, name=first.checkpoint)
        engine.use(folder)
        return system

    def _draw_shots(self, train: Split, seed: int) -> list[Message]:
        """Return the turns of examples drawn from the training split: the first ones that fit into half of a prompt."""
        number = self.config.shots
        builder = self.builder
        # Tokens of one example.
        longest = (builder.budget or sys.maxsize) // (2 * number)
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
            text = builder.passage(example).text
            *_, question = builder.messages(example, text, count_words([answer]))
            turn: list[Message] = [question, {"role": "assistant", "content": answer}]
            if builder.engine.count(turn) <= longest:
                turns.extend(turn)
            if len(turns) == 2 * number:
                return turns
        raise UsageError(
            f"model.shots={number}: only {len(turns) // 2} of {len(train):,} training examples have at most {longest:,}"
            " tokens, so that all fit into half of a prompt: choose fewer model.shots or a larger model.input_length"
        )

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield one summary per example, in their order; an empty one of an example without an answer.

        Raises:
            SuiteError: an example has no answer, and `decoding.failed` is "stop". Answers about the others are kept.
        """
        limit = min(self.config.decode_length, decoding.max_length or self.config.decode_length)
        self.builder.selector.decoding = decoding
        engine: Any = self.builder.engine
        engine.unfinished = self.unfinished
        dialogues = [Dialogue(self.builder, example, limit) for example in examples]
        unfinished = deque(dialogues)
        # A round answers the next requests of all dialogues together. Summaries are given as soon as they are written.
        for number in count(1):
            requests: list[Request] = []
            for dialogue in dialogues:
                requests += dialogue.requests(decoding)
            if not requests:
                break
            answers = _note_answers(engine.answer(requests, decoding), number, requests)
            for dialogue in [dialogue for dialogue in dialogues if dialogue.pending]:
                dialogue.add_answers(list(islice(answers, len(dialogue.pending))))
                while unfinished and not (unfinished[0].pending or unfinished[0].problem):
                    yield self._finish_summary(unfinished.popleft(), decoding)
        failed = [
            (dialogue.example.id, dialogue.problem) for dialogue in dialogues if dialogue.problem
        ]
        report_failed(failed, decoding.failed)
        for dialogue in unfinished:
            yield self._finish_summary(dialogue, decoding)

    def _finish_summary(self, dialogue: Dialogue, decoding: Decoding) -> Summary:
        """Return the summary of a dialogue; warn of the first one with what looks like a mark of a chat format."""
        summary = dialogue.summary(decoding)
        mark = UNKNOWN_MARK.search(summary.text)
        if mark and not self.unknown_mark:
            self.unknown_mark = mark[0]
            _log.warning(
                f"an answer has '{mark[0]}', which looks like a mark of a chat format: it stays, and is scored"
            )
        return summary


def _note_answers(
    answers: Iterable[Answer], number: int, requests: Sequence[Request]
) -> Iterator[Answer]:
    """Yield the answers of a round, and show how far it is."""
    tokens = 0
    for place, answer in enumerate(answers, start=1):
        just_done = answer.prompt_tokens + answer.output_tokens
        tokens += just_done
        note_progress(
            f"round {number}, request {place} of {len(requests)}, {tokens:,} tokens sent and written",
            just_done,
        )
        yield answer
