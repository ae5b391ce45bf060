"""`refine`: the summary so far and the next part, part by part (incremental updating: BooookScore, Chang et al. 2024)."""

from math import ceil

from longsumbench.core import Evidence, Example, LanguageModel
from longsumbench.models.prompt.config import PromptConfig, RequestSizes
from longsumbench.models.prompt.readings.reading import Ask, Prompting, Reading, Rounds
from longsumbench.models.prompt.source_text import PromptRoom, Span


class Refine(Reading):
    """One part after the other; from the second on, the prompt has the summary of those before.

    Choice: a summary that will be refined has at most half of the room, so that the next part has the other half.
    """

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
        """Ask once a part."""
        end = len(self.passage.text)
        span = self._next_part(0, self.room)
        prompt = self.prompt([span], self.room)
        half = end if span[1] == end else self.room_of("refine").tokens // 2
        while True:
            is_last = span[1] == end
            [reply] = yield [Ask((prompt,), max_tokens=None if is_last else max(1, half))]
            self.answers.append(reply.text)
            if is_last:
                return reply
            room = self.room_of("refine", reply.text)
            span = self._next_part(span[1], room)
            prompt = self.prompt([span], room, "refine", reply.text)

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
