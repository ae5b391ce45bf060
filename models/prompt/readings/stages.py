"""`stages`: parts are summarized, then the summaries (hierarchical merging: BooookScore, Chang et al. 2024)."""

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
