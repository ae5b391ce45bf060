"""`stages`: parts are summarized, then the summaries (hierarchical merging: BooookScore, Chang et al. 2024)."""

from collections.abc import Sequence

from longsumbench.core import Evidence, Example
from longsumbench.models.prompt.readings.reading import Ask, Prompting, Reading, Reply, Rounds
from longsumbench.models.prompt.source_text import LongText, Passage, Span

# The share of its text that the summaries of a stage may have at most.
_SHORTER = 0.8


class Stages(Reading):
    """Parts that fill a prompt are summarized alone; then their summaries, in further stages if they do not fit."""

    reads_all = True
    keeps_evidence = True

    def __init__(self, system: Prompting, example: Example, limit: int) -> None:
        super().__init__(system, example, limit)
        # About each part, and the last one.
        self.answers: list[str] = []
        self.final = ""

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
            self.final = answers[-1]
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
        """Return which parts were summarized alone; the last request read the summaries of all."""
        requests: list[tuple[Sequence[int], str]] = []
        for index, answer in enumerate(self.answers):
            requests.append(([index], answer))
        if self.answers and len(self.spans) > 1:
            requests.append((range(len(self.spans)), self.final))
        return self.evidence_of_requests(self.spans, requests)
