"""Several rounds over the parts of a text: `stages` and `refine`.

`stages` summarizes the parts, then the summaries (TreeSummarize of LlamaIndex; map-reduce of LangChain if the prompt has a
text `merge`). `refine` reads the next part with the summary so far (LangChain's refine chain).
"""

import sys

from longsumbench.core import LanguageModel
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.readings.carrying import carry_notes, compress, half_room
from longsumbench.models.prompt.readings.merging import MergeLevels, ends_well
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
    settings = frozenset({"merge_with", "shrink", "page_length"})
    own_steps = frozenset({"part", "merge"})
    evidence_row = "request"

    @classmethod
    def settings_for(cls, config: PromptConfig) -> frozenset[str]:
        """Without `model.merge_with`, the others have no effect; parts of passages have their own length."""
        if not config.merge_with:
            return frozenset({"merge_with"})
        return cls.settings - ({"page_length"} if config.merge_with == "previous" else set())

    @classmethod
    def steps_for(cls, config: PromptConfig) -> frozenset[str]:
        """Merges of `model.merge_with` have their own."""
        return cls.own_steps if config.merge_with else frozenset()

    def rounds(self) -> Rounds:
        """Ask once a part, then about the summaries."""
        if self.builder.config.merge_with:
            return (yield from self._merge_levels())
        text = self.text
        complete = True
        while True:
            entry = "merge"
            if text is self.text:
                entry = "part" if self.room.excess(self.passage.text) > 0 else "user"
            drafts = yield [
                PromptRound([prompt]) for prompt in self.prompt_parts(text, entry=entry)
            ]
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
            room = self.builder.room(self.example, "merge")
            fits = room.excess(summaries.passage.text) <= 0
            if not fits and len(summaries.offsets) > _SHORTER * len(text.offsets):
                return PartialSummary("\n".join(answers), complete=False)
            text = summaries

    def _merge_levels(self) -> Rounds:
        config, text = self.builder.config, self.text
        longest = config.page_length if config.merge_with != "previous" else None
        if self.room.excess(self.passage.text) <= 0 and len(text.offsets) <= (
            longest or sys.maxsize
        ):
            return (yield from self.ask(text.whole, self.room))
        room = self.builder.room(self.example, "part")
        parts = text.parts(room, longest=longest)
        if not parts:
            raise self.no_room(room)
        self.sent = [[part] for part in parts]
        return (yield from MergeLevels(self).rounds(parts))


class Refine(Reading):
    """One part after the other; from the second on, the prompt has the summary of those before.

    Choice: a summary that will be refined has at most half of the room, so that the next part has the other half. The
    end of a longer one is left out, and the last summary counts as incomplete.

    `model.compress` is incremental updating (BooookScore): before a part is asked about again, the summary so far is
    shortened. `model.final` is a chain of agents (Zhang et al. 2024): notes are carried, and the last request has them alone.
    """

    # Of the summary and the next part, each of which has half.
    least_room = 32
    reads_all = True
    answers_parts = True
    answers_once = False
    settings = frozenset({"compress", "final"})
    evidence_row = "request"

    @classmethod
    def entry_for(cls, engine: LanguageModel) -> str:
        """From the second part on."""
        return "refine"

    @classmethod
    def steps_for(cls, config: PromptConfig) -> frozenset[str]:
        """Carried notes and shorter summaries have their own."""
        steps = {"carry", "final"} if config.final else set()
        return frozenset(steps | ({"compress"} if config.compress else set()))

    def rounds(self) -> Rounds:
        """Ask once a part.

        Raises:
            UsageError: there is no room for a summary and a part.
        """
        config = self.builder.config
        if self.room.excess(self.passage.text) <= 0:
            return (yield from self.ask(self.text.whole, self.room))
        if config.final:
            return (yield from carry_notes(self))
        half = half_room(self, "refine")
        part = self.next_part(0, self.room)
        draft = yield from self.ask([part], self.room, half)
        complete = True
        while True:
            written = self._first_tokens(draft.text, half)
            complete = complete and draft.complete and written == draft.text
            room = self.builder.room(self.example, "refine", written)
            part = self.next_part(part[1], room)
            is_last = part[1] == len(self.passage.text)
            longest = None if is_last else half
            draft = yield from self.ask([part], room, longest)
            if config.compress and not ends_well(draft):
                shorter = yield from compress(self, written, part[1] / len(self.passage.text))
                room = self.builder.room(self.example, "refine", shorter)
                if room.excess(self.text.joined([part])) <= 0:
                    draft = yield from self.ask([part], room, longest)
            if is_last:
                return PartialSummary(draft.text, complete and draft.complete)

    def _first_tokens(self, written: str, length: int) -> str:
        """Return a summary, or the beginning of one that is longer."""
        text = LongText(Passage.of_summaries([written]), self.builder.engine.tokenizer)
        if len(text.offsets) <= length:
            return written
        return text.passage.text[: text.offsets[length - 1][1]]
