"""The base class of the ways of reading: what is asked about one example, and what is made of the answers.

A reading is a generator of rounds. `Reading.rounds` yields the `Ask`s that can be answered together, receives their
`Reply`s, and returns the summary. `ends.py` has the shortest ones.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longsumbench.core import Evidence, Example, LanguageModel, Message, Scores, Truncation
from longsumbench.errors import UsageError
from longsumbench.models.prompt.config import PromptConfig, RequestSizes
from longsumbench.models.prompt.selector import Selector
from longsumbench.models.prompt.source_text import LongText, Passage, PromptRoom, Span


@dataclass(frozen=True)
class Ask:
    """One request of a reading; see `Request` for its fields."""

    # A prompt; several are pages, whose distributions are mixed.
    prompts: tuple[Sequence[Message], ...]
    # The most tokens of the answer; None: those of the summary.
    max_tokens: int | None = None
    written: tuple[int, ...] = ()
    stop_after: int | None = None


@dataclass(frozen=True)
class Reply:
    """An answer, or the summary that is made of several."""

    text: str  # without thinking and marks of chat formats
    complete: bool = True  # False if it stopped at a limit
    # See `Answer`.
    ids: tuple[int, ...] = ()
    confidences: NDArray[np.float32] | None = None


Rounds: TypeAlias = Generator[list[Ask], list[Reply], Reply]


class Prompting(Protocol):
    """What a reading needs of `PromptSystem`; see there."""

    config: PromptConfig

    @property
    def engine(self) -> LanguageModel:
        """The language model."""

    @property
    def selector(self) -> Selector:
        """What chooses snippets."""

    @property
    def budget(self) -> int | None:
        """The most tokens of a prompt; None if nothing limits it."""

    @property
    def counts_tokens(self) -> bool:
        """True if tokens are counted, and limited."""

    def passage(self, example: Example) -> Passage:
        """Return the whole text of an example."""

    def words(self, example: Example) -> int:
        """Return the number of words to ask for."""

    def messages(
        self, example: Example, text: str, *, entry: str = "user", written: str = ""
    ) -> list[Message]:
        """Return the prompt of an example with a text."""

    def too_long(self, tokens: int, example: str, *, with_text: bool = False) -> UsageError:
        """Return the error about a prompt of some tokens, with its text or without."""


class Reading(ABC):
    """How one example is read.

    Attributes:
        settings: names of the settings that only some readings have, and this one.
        unit_setting: name of the setting with the length of the unit that a prompt has room for, if there is one.
        least_room: tokens that a prompt must have room for beyond its own.
        refuses_long_texts: a text that does not fit into a prompt is an error.
        reads_all: it reads the whole text, however long.
        selects: it needs a selector (`model.selector`).
        mixes_pages: it needs an engine that gives tokens.
        keeps_evidence: it says which parts of the text each request had.
        spans: the characters that were sent so far.

    Raises:
        UsageError: by `rounds`, if there is no room for the text.
    """

    settings: ClassVar[frozenset[str]] = frozenset()
    unit_setting: ClassVar[str] = ""
    least_room: ClassVar[int] = 1
    refuses_long_texts: ClassVar[bool] = False
    reads_all: ClassVar[bool] = False
    selects: ClassVar[bool] = False
    mixes_pages: ClassVar[bool] = False
    keeps_evidence: ClassVar[bool] = False

    def __init__(self, system: Prompting, example: Example, limit: int) -> None:
        self.system, self.example = system, example
        # The most tokens of the summary.
        self.limit = limit
        self.passage = system.passage(example)
        self.spans: list[Span] = []

    @classmethod
    def request_lengths(cls, config: PromptConfig, sizes: RequestSizes) -> tuple[float, float]:
        """Return the tokens of all prompts about a text, and of all answers, about; by default of one request."""
        read = sizes.source if cls.reads_all else min(sizes.source, sizes.room)
        return sizes.instructions + read, sizes.answer

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
        return LongText(self.passage, self.system.engine.tokenizer)

    @cached_property
    def room(self) -> PromptRoom:
        """The room of a prompt that asks for a summary; see `room_of`."""
        return self.room_of("user")

    def room_of(self, entry: str, written: str = "") -> PromptRoom:
        """Return the room of a prompt by one of its texts; see `Prompt.messages`."""
        budget = self.system.budget
        assert budget is not None

        def count(text: str) -> int:
            return self.system.engine.count(self.messages(text, entry, written))

        return PromptRoom(count, budget)

    def messages(self, text: str, entry: str = "user", written: str = "") -> list[Message]:
        """Return the prompt of the example with a text."""
        return self.system.messages(self.example, text, entry=entry, written=written)

    def prompt(
        self, spans: Sequence[Span], room: PromptRoom, entry: str = "user", written: str = ""
    ) -> list[Message]:
        """Return the prompt with some spans of the text, which count as read.

        Raises:
            UsageError: there are none, because nothing fits into the room.
        """
        if not spans:
            raise self.no_room(room)
        self.spans += spans
        return self.messages(self.text.joined(spans), entry, written)

    def no_room(self, room: PromptRoom) -> UsageError:
        """Return the error about a prompt without room for the text."""
        return self.system.too_long(room.count(""), self.example.id)

    def ledger(self) -> Truncation | None:
        """Return the ledger of what was read so far; None if tokens are not counted."""
        if not self.passage.text:
            return Truncation(0, 0)
        if not self.system.counts_tokens:
            return None
        return self.text.ledger(self.text.whole if self.reads_all else self.spans)

    def evidence(self) -> Evidence | None:
        """Return what the model read while it wrote; None if the reading keeps none."""
        return None

    def texts_of(self, units: Sequence[Span]) -> tuple[str, ...]:
        """Return the text of each unit."""
        return tuple(self.passage.text[start:end].strip() for start, end in units)

    def selection(
        self,
        units: Sequence[Span],
        chosen: Sequence[Sequence[int]],
        answers: Sequence[str],
        row: str,
        scores: Sequence[Scores] | None = None,
    ) -> Evidence:
        """Return which units of the text each request had.

        Args:
            units: their characters.
            chosen: for each request the indices of its units.
            answers: to the requests; a request that failed has none.
            row: what an answer is, "segment" of the summary or "request".
            scores: for each request the scores of all units; None if units have no scores.
        """
        lengths = [self.text.length(unit) for unit in units]
        selected = np.zeros((len(answers), len(units)), np.int32)
        for number in range(len(answers)):
            for index in chosen[number]:
                selected[number, index] = lengths[index]
        arrays: dict[str, NDArray[Any]] = {"selected_tokens": selected}
        if scores is not None:
            answered = scores[: len(answers)]
            arrays["scores"] = np.array(answered, np.float64).reshape(selected.shape)
        texts = {"unit": self.texts_of(units), row: tuple(answers)}
        return Evidence(arrays, dict.fromkeys(arrays, (row, "unit")), texts)
