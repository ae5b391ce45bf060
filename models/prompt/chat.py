"""How chat messages become tokens."""

import re
from collections.abc import Sequence
from typing import Any

from longsumbench.core import Message
from longsumbench.core.answer_text import begins_thinking
from longsumbench.errors import UsageError
from longsumbench.interrupts import time_limit
from longsumbench.modeling.checkpoints import describe_error
from longsumbench.models.prompt.config import PromptConfig

_LONGEST_TEMPLATE = 0.5  # minutes, to fill it
_NONCHARACTERS = range(0xFDD0, 0xFDF0)  # code points that no text has


def chat_text(
    tokenizer: Any, messages: Sequence[Message], config: PromptConfig, goes_on: bool = True
) -> str:
    """Return messages as text with the chat template; it `goes_on` with the beginning of an answer.

    Raises:
        UsageError: the tokenizer has no chat template, or the template refuses the messages or leaves out the last one.
    """
    if config.chat_template == "none":
        return "\n\n".join([*(message["content"] for message in messages), ""])
    options = {} if config.thinking is None else {"enable_thinking": config.thinking}
    shown_as = f"model.checkpoint={config.checkpoint}"
    advice = "a model trained for chats, or model.chat_template=none, which joins the messages by blank lines"
    if config.engine == "api":  # the tokenizer has its own setting
        shown_as = f"model.tokenizer={config.tokenizer}"
        advice = "another tokenizer, or none with model.reading=whole model.shots=0"
    if not tokenizer.chat_template:
        raise UsageError(
            f"the tokenizer of {shown_as} has no chat template, as those of base models: choose {advice}"
        )
    endless = UsageError(
        f"the chat template of {shown_as} does not end: choose model.chat_template=none"
    )
    try:
        with time_limit(_LONGEST_TEMPLATE, problem=endless):
            text: str = tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                add_generation_prompt=goes_on,
                tokenize=False,
                **options,
            )
    except UsageError:
        raise
    except Exception as error:  # a template can raise any
        raise UsageError(
            f"the chat template of {shown_as} refuses the prompt ({describe_error(error)}):"
            " choose a model.prompt without system text, or model.shots=0"
        ) from error
    # One for pictures writes only the parts of a message that are in a list; others change line breaks
    if "".join(messages[-1]["content"].split()) not in "".join(text.split()):
        raise UsageError(
            f"the chat template of {shown_as} leaves out what a message says: choose {advice}"
        )
    return text


def starts_thinking(tokenizer: Any, config: PromptConfig) -> bool:
    """Return True if the chat template writes the mark that begins the thinking, so that no answer has it."""
    if tokenizer is None or not tokenizer.chat_template:
        return False
    text = chat_text(tokenizer, [{"role": "user", "content": "a text"}], config)
    return begins_thinking(text, config.thinking_end)


def chat_ids(tokenizer: Any, messages: Sequence[Message], config: PromptConfig) -> list[int]:
    """Return the tokens of a prompt; a chat template writes the start token itself.

    A special token in a message ("<|im_end|>") is tokenized as text, so that no document ends a turn. Without a chat
    template it is special, because the format of the model can only be in the messages.
    """
    if config.chat_template == "none":
        return list(tokenizer(chat_text(tokenizer, messages, config), verbose=False)["input_ids"])
    # A character that no message has marks the places of special tokens.
    contents = "".join(message["content"] for message in messages)
    special = [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]
    tokens = [token for token in sorted(special, key=len, reverse=True) if token in contents]
    mark = next(char for char in map(chr, _NONCHARACTERS) if char not in contents)
    # The template sees a mark in place of each special token; what is between two marks is tokenized alone.
    hidden = []
    for message in messages:
        content = message["content"]
        for number, token in enumerate(tokens):
            content = content.replace(token, f"{mark}{number}{mark}")
        hidden.append({**message, "content": content})
    pieces = re.split(rf"{mark}(\d+){mark}", chat_text(tokenizer, hidden, config))
    ids: list[int] = []
    for place, piece in enumerate(pieces):
        # Every second piece is the number of a token.
        is_token = place % 2 == 1
        encoded = tokenizer(
            tokens[int(piece)] if is_token else piece,
            add_special_tokens=False,
            verbose=False,
            split_special_tokens=is_token,
        )
        ids += encoded["input_ids"]
    return ids
