"""A language model for tests whose answers are made of what it was sent, and tokenizers of two kinds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hypothesis import strategies as st

from longsumbench.core import (
    Answer,
    Decoding,
    Document,
    Example,
    LanguageModel,
    Message,
    Request,
    Section,
    Summary,
    build_settings,
)
from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.models.prompt.chat import chat_ids
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.system import PromptSystem
from support.tiny_causal import CHAT_TEMPLATE
from support.toys import WORDS, ToySplit, settings_of

# Texts of words that tokenizers and prompts take for something else.
_WORDS = st.sampled_from([*WORDS, "naïve", "🦜", "a{b}", "{document}", "—", "3.5"])
SENTENCES = st.lists(_WORDS, min_size=1, max_size=8).map(lambda words: " ".join(words) + ".")
PARAGRAPHS = st.lists(st.lists(SENTENCES, min_size=1, max_size=4), min_size=1, max_size=5)
DOCUMENTS = st.lists(PARAGRAPHS, min_size=1, max_size=3)
# What models answer: a sign, nothing, what they were sent, more than fits anywhere, new sentences each time.
REPLIES: dict[str, Callable[[str], str]] = {
    "short": lambda text: "Mihit.",
    "nothing": lambda text: "",
    "echo": str,
    "long": lambda text: "kadan lohit. " * 400,
    "endless": lambda text: "kadan lohit " * 400,
    "new": lambda text: f"Mihit {len(text)}.",
}
# The strategies of other tools and papers.
STRATEGIES = {
    "previous": settings_of("reading=stages merge_with=previous shrink=0.5"),
    "passages": settings_of("reading=stages merge_with=passages page_length=40"),
    "passages_only": settings_of("reading=stages merge_with=passages_only shrink=0.8"),
    "compress": settings_of("reading=refine compress=true"),
    "final": settings_of("reading=refine final=true"),
    "gists": settings_of("reading=gists"),
}
QUERY = "Why does kadan come first?"  # which only gists need


@cache
def chat_tokenizer(kind: str) -> Any:
    """Return a tokenizer of bytes ("trained") or of whole words and signs ("words"), with a chat template."""
    tokenizer = train_tokenizer(ToySplit.of("train", 12), 320 if kind == "trained" else 24, kind)
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


@dataclass
class EchoEngine:
    """A language model that answers by a function of the last message; it keeps what it was sent."""

    reply: Callable[[str], str] = str
    tokenizer: Any = field(default_factory=lambda: chat_tokenizer("trained"))
    context: int | None = 10_000
    gives_tokens: bool = False
    refuses: bool = False
    asked: list[Request] = field(default_factory=list)

    def count(self, messages: Sequence[Message]) -> int:
        """Count with the chat template."""
        return len(chat_ids(self.tokenizer, messages, PromptConfig()))

    def answer(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Answer]:
        """Answer each request at once."""
        for request in requests:
            self.asked.append(request)
            text = "" if self.refuses else self.reply(request.messages[-1]["content"])
            tokens = (
                len(text.split())
                if self.tokenizer is None
                else len(self.tokenizer(text)["input_ids"])
            )
            sent = 0
            if self.tokenizer is not None:
                sent = sum(map(self.count, (request.messages, *request.more_pages)))
            yield Answer(text, tokens <= request.max_tokens, self.refuses, sent, tokens)

    def identity(self) -> dict[str, Any]:
        """It is always the same."""
        return {"checkpoint": "echo"}

    def metadata(self) -> dict[str, Any]:
        """It has no weights."""
        return {"engine": "echo", "context": self.context}


def prompted(engine: LanguageModel, /, **settings: Any) -> PromptSystem:
    """Return a system that asks an engine for summaries of 50 words, unless the settings differ."""
    values = {"length": "50", "decode_length": 100, **settings}
    config: PromptConfig = build_settings(PromptConfig, values, "model.")
    config.open_engine = lambda: engine  # type: ignore[method-assign]
    return PromptSystem(config)


def summarize(system: PromptSystem, *examples: Example, **decoding: Any) -> list[Summary]:
    """Return the summaries of a batch with all that can be kept, after the checks of a run."""
    system.check_examples(examples)
    defaults = {"keep_inputs": "all", "evidence": "all", "device": "cpu"}
    return list(system.summarize(examples, Decoding(**{**defaults, **decoding})))


def text_example(
    *documents: Sequence[Sequence[str]], query: str | None = None, name: str = "one"
) -> Example:
    """Return an example of some documents, each a list of paragraphs, each a list of sentences."""
    read = tuple(
        Document(None, (Section(None, tuple(map(tuple, paragraphs))),)) for paragraphs in documents
    )
    return Example(name, None, query, read, (("A reference.",),))
