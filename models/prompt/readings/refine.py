"""`refine`: the summary so far and the next part, part by part (incremental updating: BooookScore, Chang et al. 2024)."""

from math import ceil

from longsumbench.core import Evidence, Example, LanguageModel
from longsumbench.models.prompt.config import PromptConfig, RequestSizes
from longsumbench.models.prompt.readings.reading import Ask, Prompting, Reading, Rounds
from longsumbench.models.prompt.source_text import LongText, Passage, PromptRoom, Span


class Refine(Reading):
    """One part after the other; from the second on, the prompt has the summary of those before.

    Choice: a summary that will be refined has at most half of the room, so that the next part has the other half. The
    end of a longer one is left out.
    """

    # Of the summary and the next part, each of which has half.
    least_room = 32
    reads_all = True
    keeps_evidence = True

    @classmethod
    def request_lengths(cls, config: PromptConfig, sizes: RequestSizes) -> tuple[float, float]:
        """Every part has a prompt and an answer; from the second on, the prompt has the summary so far."""
        answer = min(sizes.answer, sizes.room / 2)
        num_later = ceil(max(0.0, sizes.source - sizes.room) / (sizes.room - answer))
        prompts = sizes.source + (1 + num_later) * sizes.instructions + num_later * answer
        return prompts, (1 + num_later) * sizes.answer

    @classmethod
    def entry_for(cls, engine: LanguageModel) -> str:
        """From the second part on."""
        return "refine"

    def __init__(self, system: Prompting, example: Example, limit: int) -> None:
        super().__init__(system, example, limit)
        self.answers: list[str] = []

    def rounds(self) -> Rounds:
        """Ask once a part.

        Raises:
            UsageError: there is no room for a summary and a part.
        """
        end = len(self.passage.text)
        span, half = (0, end), end
        if self.room.excess(self.passage.text) > 0:
            span = self._next_part(0, self.room)
            room = self.room_of("refine")
            half = room.tokens // 2
            if room.tokens < self.least_room:
                raise self.no_room(room)
        prompt = self.prompt([span], self.room)
        while True:
            is_last = span[1] == end
            [reply] = yield [Ask((prompt,), max_tokens=None if is_last else half)]
            self.answers.append(reply.text)
            if is_last:
                return reply
            written = self._first_tokens(reply.text, half)
            room = self.room_of("refine", written)
            span = self._next_part(span[1], room)
            prompt = self.prompt([span], room, "refine", written)

    def _first_tokens(self, written: str, length: int) -> str:
        """Return a summary, or the beginning of one that is longer."""
        text = LongText(Passage.of_summaries([written]), self.system.engine.tokenizer)
        if len(text.offsets) <= length:
            return written
        return text.passage.text[: text.offsets[length - 1][1]]

    def _next_part(self, begin: int, room: PromptRoom) -> Span:
        """Return the longest part from a character on that fits.

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

    def evidence(self) -> Evidence:
        """Return the part that each request had."""
        chosen = [[index] for index in range(len(self.spans))]
        return self.selection(self.spans, chosen, self.answers, "request")
