"""What runs a language model: the interface, and how chat messages become tokens."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from longsumbench.api import Decoding
from longsumbench.errors import UsageError
from longsumbench.modeling.checkpoints import describe_error
from longsumbench.models.prompt.config import PromptConfig

Message = Mapping[str, str]  # {"role": "system" | "user" | "assistant", "content": the text}


@dataclass(frozen=True)
class Request:
    """One request to a language model.

    Attributes:
        messages: the whole prompt.
        seed: of sampling; it depends on `decode.seed`, the example and the number of the request.
        max_tokens: the most tokens of the answer, thinking included.
    """

    messages: tuple[Message, ...]
    seed: int
    max_tokens: int


@dataclass(frozen=True)
class Answer:
    """What a language model answered.

    Attributes:
        text: as the model gave it, thinking included.
        complete: False if it stopped at `max_tokens`.
        refused: True if a content filter removed the answer, or it is empty for that reason.
        prompt_tokens: tokens of the prompt.
        output_tokens: tokens of the answer, thinking included.
    """

    text: str
    complete: bool
    refused: bool
    prompt_tokens: int
    output_tokens: int


class LanguageModel(Protocol):
    """A language model that answers requests. Opening one is cheap: weights are loaded at the first answer."""

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


def chat_text(tokenizer: Any, messages: Sequence[Message], config: PromptConfig) -> str:
    """Return a prompt as the text that the model continues, with its chat template.

    Raises:
        UsageError: the tokenizer has no chat template, or the template refuses the messages.
    """
    if config.chat_template == "none":
        return "\n\n".join([*(message["content"] for message in messages), ""])
    from jinja2.exceptions import TemplateError

    options = {} if config.thinking is None else {"enable_thinking": config.thinking}
    if not tokenizer.chat_template:
        raise UsageError(
            f"the tokenizer of model.checkpoint={config.checkpoint} has no chat template, as those of base models:"
            " choose a model trained for chats, or model.chat_template=none, which joins the messages by blank lines"
        )
    try:
        text: str = tokenizer.apply_chat_template(
            [dict(message) for message in messages], add_generation_prompt=True, tokenize=False, **options
        )
    except TemplateError as error:
        raise UsageError(
            f"the chat template of model.checkpoint={config.checkpoint} refuses the prompt ({describe_error(error)}):"
            " choose a model.prompt without system text, or model.shots=0"
        ) from error
    return text


def chat_ids(tokenizer: Any, messages: Sequence[Message], config: PromptConfig) -> list[int]:
    """Return the tokens of a prompt; a chat template writes the start token itself."""
    text = chat_text(tokenizer, messages, config)
    ids: list[int] = tokenizer(text, add_special_tokens=config.chat_template == "none", verbose=False)["input_ids"]
    return ids
