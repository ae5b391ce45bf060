"""The interface of what runs a language model: requests, answers, and an engine that gives them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longsumbench.core.run_settings import Decoding
from longsumbench.errors import SuiteError

# {"role": "system" | "user" | "assistant", "content": the text}.
Message = Mapping[str, str]


@dataclass(frozen=True)
class Request:
    """One request to a language model."""

    messages: tuple[Message, ...]  # the whole prompt
    # Of sampling; it depends on `decode.seed`, the example and the number of the request.
    seed: int
    # The most tokens of the answer, thinking and what is written of it included.
    max_tokens: int
    # Only for engines that `gives_tokens`:
    # Prompts of further pages. The next token is then from the mixture of the distributions of all pages.
    more_pages: tuple[tuple[Message, ...], ...] = ()
    # The tokens of the answer that are written already; the model continues them.
    written: tuple[int, ...] = ()
    # New tokens after which the engine stops and the answer is not complete; None: only at `max_tokens`.
    stop_after: int | None = None
    # Lower-case words: instead of an answer, the probability of each as the first token is asked for.
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a language model answered."""

    # As the model gave it; `answer_text.split_answer` removes thinking and marks.
    text: str
    # False if it stopped at `max_tokens`.
    complete: bool
    # True if a content filter removed the answer, or it is empty for that reason.
    refused: bool
    # Tokens of the prompt.
    prompt_tokens: int
    # Tokens of the answer, thinking included.
    output_tokens: int
    # why there is no answer, if the request itself is the reason; None if there is one
    problem: SuiteError | None = None
    # Tokens that were sent, but that the server does not count as read.
    unread_tokens: int = 0
    # Thinking that is not in the text, because the server separated it.
    thinking: str = ""
    # Tokens of thinking by the server's count, which may not show the thinking; 0 if it does not count them.
    thinking_tokens: int = 0
    # The new tokens, without the end; only of engines that `gives_tokens`.
    ids: tuple[int, ...] = ()
    # The weight of each page at each new token, [pages, tokens]; None unless evidence is kept of several pages.
    confidences: NDArray[np.float32] | None = None
    # Of each of `Request.choices`; they add up to 1. Empty if the model gives none.
    probabilities: tuple[float, ...] = ()


def sum_choices(tokens: Iterable[tuple[str, float]], choices: Sequence[str]) -> tuple[float, ...]:
    """Return the probabilities of choices, relative to their sum; empty if no token is one of them.

    Args:
        tokens: texts of possible first tokens, with their probabilities; blanks and case do not matter.
        choices: lower-case words.
    """
    sums = dict.fromkeys(choices, 0.0)
    for text, probability in tokens:
        word = text.strip().casefold()
        if word in sums:
            sums[word] += probability
    total = sum(sums.values())
    return tuple(value / total for value in sums.values()) if total > 0 else ()


class LanguageModel(Protocol):
    """A language model that answers requests. Opening one is cheap: weights are loaded at the first answer.

    An engine is opened with the settings of `model=prompt` (`registry.load_config_class("prompt")`).
    """

    @property
    def tokenizer(self) -> Any:
        """The model's fast tokenizer; None if it is unknown."""

    @property
    def context(self) -> int | None:
        """The most tokens of a prompt together with its answer; None if it is unknown."""

    @property
    def gives_tokens(self) -> bool:
        """True if it works token by token: it continues `Request.written`, and mixes `Request.more_pages`."""

    def count(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens of a prompt with the chat template; needs a tokenizer."""

    def answer(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Answer]:
        """Yield the answers in the order of the requests, of which there may be more than `decoding.batch_size`."""

    def identity(self) -> dict[str, Any]:
        """Return what identifies the model beyond its settings (hashes, a commit) as JSON values."""

    def metadata(self) -> dict[str, Any]:
        """Return what is known of the model, as `System.metadata` does; no prompt is needed for it."""
