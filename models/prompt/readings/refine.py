"""`refine`: the summary so far and the next part, part by part (incremental updating: BooookScore, Chang et al. 2024)."""

from longsumbench.core import LanguageModel
from longsumbench.models.prompt.readings.reading import PartialSummary, Reading, Rounds
from longsumbench.models.prompt.source_text import LongText, Passage


class Refine(Reading):
    """One part after the other; from the second on, the prompt has the summary of those before.

    Choice: a summary that will be refined has at most half of the room, so that the next part has the other half. The
    end of a longer one is left out, and the last summary counts as incomplete.
    """

    # Of the summary and the next part, each of which has half.
    least_room = 32
    reads_all = True
    answers_parts = True
    answers_once = False
    evidence_row = "request"

    @classmethod
    def entry_for(cls, engine: LanguageModel) -> str:
        """From the second part on."""
        return "refine"

    def rounds(self) -> Rounds:
        """Ask once a part.

        Raises:
            UsageError: there is no room for a summary and a part.
        """
        if self.room.excess(self.passage.text) <= 0:
            return (yield from self.ask(self.text.whole, self.room))
        room = self.builder.room(self.example, "refine")
        if room.tokens < self.least_room:
            raise self.no_room(room)
        half = room.tokens // 2
        part = self.next_part(0, self.room)
        draft = yield from self.ask([part], self.room, half)
        complete = True
        while True:
            written = self._first_tokens(draft.text, half)
            complete = complete and draft.complete and written == draft.text
            room = self.builder.room(self.example, "refine", written)
            part = self.next_part(part[1], room)
            is_last = part[1] == len(self.passage.text)
            draft = yield from self.ask([part], room, None if is_last else half)
            if is_last:
                return PartialSummary(draft.text, complete and draft.complete)

    def _first_tokens(self, written: str, length: int) -> str:
        """Return a summary, or the beginning of one that is longer."""
        text = LongText(Passage.of_summaries([written]), self.builder.engine.tokenizer)
        if len(text.offsets) <= length:
            return written
        return text.passage.text[: text.offsets[length - 1][1]]
