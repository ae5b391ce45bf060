"""The interface of what runs a language model: requests, answers, and an engine that gives them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from longsumbench.core.run_settings import Decoding
from longsumbench.errors import SuiteError

Message = Mapping[str, str]  # {"role": "system" | "user" | "assistant", "content": the text}


@dataclass(frozen=True)
class Request:
    """One request to a language model."""

    messages: tuple[Message, ...]  # the whole prompt
    seed: int  # of sampling; it depends on `decode.seed`, the example and the number of the request
    max_tokens: int  # the most tokens of the answer, thinking included


@dataclass(frozen=True)
class Answer:
    """What a language model answered."""

    text: str  # as the model gave it; `answer_text.split_answer` removes thinking and marks
    complete: bool  # False if it stopped at `max_tokens`
    refused: bool  # True if a content filter removed the answer, or it is empty for that reason
    prompt_tokens: int  # tokens of the prompt
    output_tokens: int  # tokens of the answer, thinking included
    # why there is no answer, if the request itself is the reason; None if there is one
    problem: SuiteError | None = None
    thinking: str = ""  # thinking that is not in the text, because the server separated it


class LanguageModel(Protocol):
    """A language model that answers requests. Opening one is cheap: weights are loaded at the first answer.

    An engine is opened with the settings of `model=prompt` (`registry.config_of("prompt")`).
    """

    @property
    def tokenizer(self) -> Any:
        """The model's fast tokenizer; None if it is unknown."""

    @property
    def context(self) -> int | None:
        """The most tokens of a prompt together with its answer; None if it is unknown."""

    def count(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens of a prompt with the chat template; needs a tokenizer."""

    def answer(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Answer]:
        """Yield the answers in the order of the requests, of which there may be more than `decoding.batch_size`."""

    def identity(self) -> dict[str, Any]:
        """Return what identifies the model beyond its settings (hashes, a commit) as JSON values."""

    def facts(self) -> dict[str, Any]:
        """Return facts about the model, as `System.facts` does; no prompt is needed for them."""
