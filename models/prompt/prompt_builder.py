"""Makes the prompts about examples: the fitting texts, the drawn examples, the number of words, and the room for a text."""

import sys
from dataclasses import dataclass
from functools import cached_property

from longsumbench.core import Example, Fitted, LanguageModel, Message
from longsumbench.errors import UsageError
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.prompts import Prompt
from longsumbench.models.prompt.selector import Selector
from longsumbench.models.prompt.source_text import Passage, PromptRoom

# Tokens of a word, about, in an answer.
WORD_TOKENS = 1.5


@dataclass
class PromptFitted(Fitted):
    """What prompts need.

    Attributes:
        shots: the messages of examples that were drawn.
        base: the digest of the checkpoint that was trained further; None: none was.
    """

    shots: list[Message] | None = None
    base: str | None = None


class PromptBuilder:
    """Makes prompts for one model and one dataset.

    Attributes:
        state: what was learned of the dataset.
        selector: what chooses snippets, for readings that select.
    """

    def __init__(self, config: PromptConfig, state: PromptFitted) -> None:
        self.config, self.state = config, state
        self.selector = Selector(config)

    @cached_property
    def engine(self) -> LanguageModel:
        """The language model, opened when it is first used."""
        return self.config.open_engine()

    @cached_property
    def prompts(self) -> dict[str, Prompt]:
        """The prompts in use, by name."""
        return self.config.prompts(self.engine)

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

    def prompt_name(self, example: Example) -> str:
        """Return the name of the prompt that was chosen, or that fits an example: a query, or several documents."""
        if self.config.prompt:
            return self.config.prompt
        if example.query:
            return "query"
        return "documents" if len(example.documents) > 1 else "document"

    def choose_prompt(self, example: Example) -> Prompt:
        """Return the prompt of an example."""
        return self.prompts[self.prompt_name(example)]

    def passage(self, example: Example) -> Passage:
        """Return the whole text of an example."""
        return Passage.of_example(example, self.choose_prompt(example).label)

    @property
    def words(self) -> int:
        """The number of words to ask for, as `model.length` says; 1 before the mean of the targets is learned."""
        if self.config.length == "train":
            return self.state.target_words or 1
        return int(self.config.length)

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
        prompt = self.choose_prompt(example)
        words = words or self.words
        has_facts = bool(example.planted)
        *system, question = prompt.messages(text, example.query, words, entry, written, has_facts)
        return [*system, *(self.state.shots or ()), question]

    def room(
        self, example: Example, entry: str = "user", written: str = "", words: int | None = None
    ) -> PromptRoom:
        """Return the prompt of an example before it has a text; see `messages`."""

        def messages(text: str) -> list[Message]:
            return self.messages(example, text, words, entry=entry, written=written)

        return PromptRoom(messages, self.engine.count, self.budget or sys.maxsize)

    def too_long(self, tokens: int, example: str, subject: str = "a prompt is") -> UsageError:
        """Return the error about a prompt of some tokens, with its text if that must not be cut, else without."""
        reading = self.config.reading_class
        counted, advice = " without its text", ""
        least = reading.least_room_for(self.config)
        if least > 1:
            counted += f" and at least {least} for that"
        if reading.refuses_long_texts:
            counted, advice = "", "another model.reading, "
        return UsageError(
            f"{subject} too long: example '{example}' needs {tokens:,} tokens{counted}, model.input_length allows"
            f" {self.budget:,}; choose {advice}a larger model.input_length, a shorter model.prompt or fewer model.shots"
        )
