"""The dialogue with a language model about one example: a reading's requests and answers, and what they cost."""

from collections import Counter
from collections.abc import Sequence

from longsumbench.core import (
    Answer,
    Decoding,
    Example,
    Message,
    Request,
    Summary,
)
from longsumbench.core.answer_text import split_answer
from longsumbench.errors import SuiteError
from longsumbench.files import digest
from longsumbench.models.prompt.chat import starts_thinking
from longsumbench.models.prompt.prompt_builder import PromptBuilder
from longsumbench.models.prompt.readings.reading import PartialSummary, PromptRound, Reading

_ANSWER_COUNTS = (
    "requests",
    "prompt_tokens",
    "output_tokens",
    "thinking_tokens",
    "refused",
    "failed",
)


class Dialogue:
    """The requests about one example, and what was answered so far. An empty text gets no request.

    Attributes:
        pending: the requests to answer next; empty when the summary is written.
        problem: why there is no answer to a request; None if there is one.

    Raises:
        UsageError: there is no room for the text, or it does not fit and must not be cut.
    """

    def __init__(self, builder: PromptBuilder, example: Example, limit: int) -> None:
        self.builder, self.example, self.limit = builder, example, limit
        self.reading: Reading = builder.config.reading_class(builder, example, limit)
        self.pending: list[PromptRound] = []
        self.problem: SuiteError | None = None
        self._sent: list[Sequence[Message]] = []
        self._counts = Counter(dict.fromkeys(_ANSWER_COUNTS, 0))
        self._result = PartialSummary("")
        self._rounds = self.reading.rounds()
        if self.reading.passage.text:
            self.pending = next(self._rounds)

    def requests(self, decoding: Decoding) -> list[Request]:
        """Return the next requests, each with its own seed."""
        requests = []
        for ask in self.pending:
            seed = int(digest([decoding.seed, self.example.id, len(self._sent)])[:8], 16)
            first, *more = [tuple(prompt) for prompt in ask.prompts]
            most = min(self.limit, ask.max_tokens or self.limit)
            requests.append(Request(first, seed, most, tuple(more), ask.written, ask.stop_after))
            self._sent += ask.prompts
        return requests

    def add_answers(self, answers: Sequence[Answer]) -> None:
        """Take the answers to the requests, and ask what the reading wants to know next."""
        asks, self.pending = self.pending, []
        drafts = []
        for ask, answer in zip(asks, answers, strict=True):
            drafts.append(self._read_answer(ask, answer))
            self.problem = self.problem or answer.problem
        if self.problem:
            self._counts["failed"] = 1
            return
        try:
            self.pending = self._rounds.send(drafts)
        except StopIteration as end:
            self._result = end.value

    def _read_answer(self, ask: PromptRound, answer: Answer) -> PartialSummary:
        """Count an answer, and return its text without thinking and marks of chat formats."""
        engine, config = self.builder.engine, self.builder.config
        thinks_first = not answer.thinking and starts_thinking(engine.tokenizer, config)
        text, thinking, unfinished = split_answer(
            answer.text, config.thinking_end, thinks_first, bool(answer.thinking)
        )
        # An answer that continues another one has its thinking, too.
        num_written = len(ask.written)
        counted = self._counts["thinking_tokens"] if num_written else 0
        thinking_tokens = self._tokens_within(answer.thinking + thinking, answer)
        thinking_tokens = max(thinking_tokens, answer.thinking_tokens)
        thinking_tokens = min(thinking_tokens, num_written + answer.output_tokens)
        self._counts.update(
            requests=1,
            prompt_tokens=answer.prompt_tokens,
            output_tokens=answer.output_tokens,
            thinking_tokens=thinking_tokens - counted,
            refused=int(answer.refused),
        )
        if answer.unread_tokens:
            self._counts["unread_tokens"] += answer.unread_tokens
        complete = answer.complete and not unfinished
        return PartialSummary(text, complete, answer.ids, answer.confidences)

    def _tokens_within(self, text: str, answer: Answer) -> int:
        """Return how many tokens of an answer are in its first text; without a tokenizer, by their characters."""
        tokenizer = self.builder.engine.tokenizer
        if tokenizer is None:
            characters = max(1, len(answer.thinking + answer.text))
            return round(answer.output_tokens * len(text) / characters)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        return len(ids)

    def summary(self, decoding: Decoding) -> Summary:
        """Return the summary, with the price of its tokens in US dollars if there is one."""
        evidence = read = None
        if self.reading.evidence_row and decoding.evidence != "none":
            evidence = self.reading.evidence()
        if decoding.keep_inputs != "none":
            # With pages, a request has several prompts.
            unit = "page" if len(self._sent) > self._counts["requests"] else "request"
            read = _sent_text(self._sent, unit)
        ledger = self.reading.ledger()
        if ledger and self.problem:
            ledger = ledger.unread()
        config = self.builder.config
        counts: dict[str, float] = {**self._counts, **self.reading.counts}
        if config.input_price is not None and config.output_price is not None:
            dollars = config.input_price * counts["prompt_tokens"]
            dollars += config.output_price * counts["output_tokens"]
            counts["price"] = dollars / 1_000_000
        return Summary(
            self.example.id,
            self._result.text,
            ledger,
            self._result.complete,
            self._counts["output_tokens"],
            evidence=evidence,
            counts=counts,
            read=read,
        )


def _sent_text(prompts: Sequence[Sequence[Message]], unit: str) -> str:
    """Return all messages of some prompts, each after a line with its number and its role; a prompt is a `unit`."""
    texts = []
    for number, prompt in enumerate(prompts, start=1):
        for message in prompt:
            heading = f"── {unit} {number} of {len(prompts)}, {message['role']}"
            texts.append(f"{heading}\n{message['content']}")
    return "\n\n".join(texts)
