"""`stages`: parts are summarized, then the summaries (hierarchical merging: BooookScore, Chang et al. 2024)."""

from math import ceil

from longsumbench.core import Evidence, Example
from longsumbench.models.prompt.config import PromptConfig, RequestSizes
from longsumbench.models.prompt.readings.reading import Ask, Prompting, Reading, Reply, Rounds
from longsumbench.models.prompt.source_text import LongText, Passage, Span

# The share of its text that the summaries of a stage may have at most.
_SHORTER = 0.8


class Stages(Reading):
    """Parts that fill a prompt are summarized alone; then their summaries, in further stages if they do not fit."""

    reads_all = True
    keeps_evidence = True

    @classmethod
    def request_lengths(cls, config: PromptConfig, sizes: RequestSizes) -> tuple[float, float]:
        """Every part has a prompt and an answer, and so have the summaries of each stage."""
        prompts = answers = 0.0
        length = sizes.source
        while True:
            num_parts = ceil(length / sizes.room)
            prompts += length + num_parts * sizes.instructions
            answers += num_parts * sizes.answer
            summaries = num_parts * sizes.answer
            if num_parts <= 1 or summaries > max(sizes.room, _SHORTER * length):
                return prompts, answers
            length = summaries

    def __init__(self, system: Prompting, example: Example, limit: int) -> None:
        super().__init__(system, example, limit)
        # About each part.
        self.answers: list[str] = []

    def rounds(self) -> Rounds:
        """Ask once a part, then about the summaries."""
        text = self.text
        self.spans = self._divide(text)
        spans = self.spans
        complete = True
        while True:
            prompts = [self.messages(text.joined([span])) for span in spans]
            replies = yield [Ask((prompt,)) for prompt in prompts]
            complete = complete and all(reply.complete for reply in replies)
            answers = [reply.text for reply in replies]
            self.answers = self.answers or answers
            if len(answers) == 1:
                return Reply(answers[0], complete)
            summaries = LongText(Passage.of_summaries(answers), self.system.engine.tokenizer)
            if not summaries.offsets:
                return Reply("", complete)
            # Summaries that do not get shorter might be summarized for ever.
            fits = self.room.excess(summaries.passage.text) <= 0
            if not fits and len(summaries.offsets) > _SHORTER * len(text.offsets):
                return Reply("\n".join(answers), complete=False)
            text = summaries
            spans = self._divide(text)

    def _divide(self, text: LongText) -> list[Span]:
        spans = text.parts(self.room)
        if not spans:
            raise self.no_room(self.room)
        return spans

    def evidence(self) -> Evidence:
        """Return the part that each request had; requests about summaries are left out."""
        chosen = [[index] for index in range(len(self.spans))]
        return self.selection(self.spans, chosen, self.answers, "request")
