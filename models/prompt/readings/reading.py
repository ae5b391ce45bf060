"""The base class of the ways of reading: what is asked about one example, and what is made of the answers.

A reading is a generator of rounds. `Reading.rounds` yields the `PromptRound`s that can be answered together, receives a
`PartialSummary` for each, and returns the summary. `ends.py` has the shortest ones.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longsumbench.core import Evidence, Example, LanguageModel, Message, Scores, Span, Truncation
from longsumbench.errors import UsageError
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.prompt_builder import PromptBuilder
from longsumbench.models.prompt.source_text import LongText, PromptRoom


@dataclass(frozen=True)
class PromptRound:
    """One request of a reading; see `Request` for its fields."""

    # A prompt; several are pages, whose distributions are mixed.
    prompts: Sequence[Sequence[Message]]
    # The most tokens of the answer; None: those of the summary.
    max_tokens: int | None = None
    written: tuple[int, ...] = ()
    stop_after: int | None = None


@dataclass(frozen=True)
class PartialSummary:
    """An answer, or the summary that is made of several."""

    text: str  # without thinking and marks of chat formats
    complete: bool = True  # False if it stopped at a limit
    # See `Answer`.
    ids: tuple[int, ...] = ()
    confidences: NDArray[np.float32] | None = None


Rounds: TypeAlias = Generator[list[PromptRound], list[PartialSummary], PartialSummary]


class Reading(ABC):
    """How one example is read.

    Attributes:
        settings: names of the settings that only some readings have, and this one.
        own_steps: the texts of a prompt that it uses if the prompt has them.
        unit_setting: name of the setting with the length of the unit that a prompt has room for, if there is one.
        least_room: tokens that a prompt must have room for beyond its own.
        least_step_room: the same of the steps of `steps_for`.
        refuses_long_texts: a text that does not fit into a prompt is an error.
        reads_all: it reads the whole text, however long.
        answers_parts: each part of a long text has an answer.
        answers_once: the summary is one answer, which can be trained.
        selects: it needs a selector (`model.selector`).
        usual_part: tokens of a part, about, if the model chooses where it ends.
        mixes_pages: it needs an engine that gives tokens.
        evidence_row: what a row of the evidence is about; empty: the reading keeps no evidence.
        sent: the spans of the text that each request had.
        answers: the texts of the answers to these requests so far.
        scores: for each request the scores of all units, if they have any.
        counts: further counts of the ledger.

    Raises:
        UsageError: by `rounds`, if there is no room for the text.
    """

    settings: ClassVar[frozenset[str]] = frozenset()
    own_steps: ClassVar[frozenset[str]] = frozenset()
    unit_setting: ClassVar[str] = ""
    least_room: ClassVar[int] = 1
    least_step_room: ClassVar[int] = 48
    refuses_long_texts: ClassVar[bool] = False
    reads_all: ClassVar[bool] = False
    answers_parts: ClassVar[bool] = False
    answers_once: ClassVar[bool] = True
    selects: ClassVar[bool] = False
    usual_part: ClassVar[int] = 0
    mixes_pages: ClassVar[bool] = False
    evidence_row: ClassVar[str] = ""

    def __init__(self, builder: PromptBuilder, example: Example, limit: int) -> None:
        self.builder, self.example = builder, example
        # The most tokens of the summary.
        self.limit = limit
        self.passage = builder.passage(example)
        self.sent: list[list[Span]] = []
        self.answers: list[str] = []
        self.scores: list[Scores] = []
        self.counts = Counter[str]()

    @classmethod
    def least_room_for(cls, config: PromptConfig) -> int:
        """Return the tokens that a prompt must have room for beyond its own."""
        return cls.least_step_room if cls.steps_for(config) else cls.least_room

    @classmethod
    def settings_for(cls, config: PromptConfig) -> frozenset[str]:
        """Return those of `settings` that have an effect, given the others."""
        return cls.settings

    @classmethod
    def steps_for(cls, config: PromptConfig) -> frozenset[str]:
        """Return the texts of a prompt that the settings need, besides `entry_for`."""
        return frozenset()

    @classmethod
    def entry_for(cls, engine: LanguageModel) -> str:
        """Return the name of the prompt's text that is needed; see `Prompt`."""
        return "user"

    @abstractmethod
    def rounds(self) -> Rounds:
        """Yield the requests of each round, and return the summary; the text is not empty."""

    @cached_property
    def text(self) -> LongText:
        """The text with its tokens."""
        return LongText(self.passage, self.builder.engine.tokenizer)

    @cached_property
    def room(self) -> PromptRoom:
        """The prompt that asks for a summary, before it has a text."""
        return self.builder.room(self.example)

    def ask(self, spans: list[Span], room: PromptRoom, max_tokens: int | None = None) -> Rounds:
        """Ask once about some spans of the text; return the answer."""
        [draft] = yield [PromptRound([self.prompt(spans, room)], max_tokens)]
        self.answers.append(draft.text)
        return draft

    def prompt(self, spans: list[Span], room: PromptRoom) -> list[Message]:
        """Return the prompt with some spans of the text, which count as read.

        Raises:
            UsageError: there are none, because nothing fits into the room.
        """
        if not spans:
            raise self.no_room(room)
        self.sent.append(spans)
        return room.messages(self.text.joined(spans))

    def prompt_parts(
        self,
        text: LongText,
        borders: Sequence[int] = (),
        longest: int | None = None,
        entry: str = "user",
    ) -> list[list[Message]]:
        """Return a prompt for each part of a text; see `LongText.parts`.

        Raises:
            UsageError: there is no room for a part.
        """
        room = self.builder.room(self.example, entry)
        spans = text.parts(room, borders, longest)
        if not spans:
            raise self.no_room(room)
        if text is self.text:
            self.sent = [[span] for span in spans]
        return [room.messages(text.joined([span])) for span in spans]

    def next_part(self, begin: int, room: PromptRoom) -> Span:
        """Return the longest part of the text from a character on that fits.

        Raises:
            UsageError: there is no room for any.
        """
        length = room.tokens
        while length > 0:
            span = begin, self.text.part_end(begin, length)
            excess = room.excess(self.text.joined([span]))
            if excess <= 0:
                return span
            length -= excess
        raise self.no_room(room)

    def no_room(self, room: PromptRoom) -> UsageError:
        """Return the error about a prompt without room for the text."""
        return self.builder.too_long(room.count(""), self.example.id)

    def ledger(self) -> Truncation | None:
        """Return the ledger of what was read so far; None if tokens are not counted."""
        if not self.passage.text:
            return Truncation(0, 0)
        if not self.builder.counts_tokens:
            return None
        return self.text.ledger(self.text.whole if self.reads_all else chain(*self.sent))

    @property
    def units(self) -> list[Span]:
        """The characters of each unit of the text: of each part that was sent."""
        return list(chain(*self.sent))

    def evidence(self) -> Evidence:
        """Return how many tokens of each unit the requests had; those without an answer are left out."""
        units = self.units
        shape = len(self.answers), len(units)
        selected = []
        for spans in self.sent[: len(self.answers)]:
            is_sent = np.zeros(len(self.text.offsets), bool)
            for span in spans:
                is_sent[self.text.token_slice(span)] = True
            selected.append([is_sent[self.text.token_slice(unit)].sum() for unit in units])
        arrays: dict[str, NDArray[Any]] = {
            "selected_tokens": np.array(selected, np.int32).reshape(shape)
        }
        if self.selects:
            scores = self.scores[: len(self.answers)]
            arrays["scores"] = np.array(scores, np.float64).reshape(shape)
        texts = {"unit": self.quote_spans(units), self.evidence_row: tuple(self.answers)}
        return Evidence(arrays, dict.fromkeys(arrays, (self.evidence_row, "unit")), texts)

    def quote_spans(self, units: Sequence[Span]) -> tuple[str, ...]:
        """Return the text of each unit."""
        return tuple(self.passage.text[start:end].strip() for start, end in units)
