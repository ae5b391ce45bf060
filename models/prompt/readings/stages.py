"""Several rounds over the parts of a text (BooookScore, Chang et al. 2024): `stages` and `refine`.

`stages` summarizes the parts, then the summaries (hierarchical merging). `refine` reads the next part with the summary so
far (incremental updating).
"""

from longsumbench.core import LanguageModel
from longsumbench.models.prompt.readings.reading import PartialSummary, PromptRound, Reading, Rounds
from longsumbench.models.prompt.source_text import LongText, Passage

# The share of its text that the summaries of a stage may have at most.
_SHORTER = 0.8


class Stages(Reading):
    """Parts that fill a prompt are summarized alone; then their summaries, in further stages if they do not fit.

    The evidence has the part of each request; requests about summaries are left out.
    """

    reads_all = True
    answers_parts = True
    answers_once = False
    evidence_row = "request"

    def rounds(self) -> Rounds:
        """Ask once a part, then about the summaries."""
        text = self.text
        complete = True
        while True:
            drafts = yield [PromptRound([prompt]) for prompt in self.prompt_parts(text)]
            complete = complete and all(draft.complete for draft in drafts)
            answers = [draft.text for draft in drafts]
            if text is self.text:
                self.answers = answers
            if len(answers) == 1:
                return PartialSummary(answers[0], complete)
            summaries = LongText(Passage.of_summaries(answers), self.builder.engine.tokenizer)
            if not summaries.offsets:
                return PartialSummary("", complete)
            # Summaries that do not get shorter might be summarized for ever.
            fits = self.room.excess(summaries.passage.text) <= 0
            if not fits and len(summaries.offsets) > _SHORTER * len(text.offsets):
                return PartialSummary("\n".join(answers), complete=False)
            text = summaries


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
