"""`select`: the best snippets that fit, in the order of the text (EA: SEAL, §3.4)."""

from collections.abc import Sequence
from functools import cached_property

from longsumbench.core import Evidence, Example, Scores
from longsumbench.modeling.ranking import rank
from longsumbench.models.prompt.readings.reading import Ask, Prompting, Reading, Rounds
from longsumbench.models.prompt.source_text import PromptRoom, Span

SELECTING = frozenset({"selector", "rank_checkpoint", "snippet_length"})


class Select(Reading):
    """The snippets with the best scores; if everything fits, the whole text."""

    settings = SELECTING
    unit_setting = "snippet_length"
    selects = True
    keeps_evidence = True

    def __init__(self, system: Prompting, example: Example, limit: int) -> None:
        super().__init__(system, example, limit)
        # Of each request: the indices of its snippets, the scores of all snippets, the answer.
        self.choices: list[Sequence[int]] = []
        self.scores: list[Scores] = []
        self.answers: list[str] = []

    def rounds(self) -> Rounds:
        """Ask once, about the best snippets."""
        spans = self.choose("", self.room)
        [reply] = yield [Ask((self.prompt(spans, self.room),))]
        self.answers.append(reply.text)
        return reply

    @cached_property
    def snippets(self) -> list[Span]:
        """The characters of each snippet; none of an empty text."""
        if not self.passage.text:
            return []
        return self.system.selector.snippets(self.example, self.text)

    def choose(self, written: str, room: PromptRoom) -> list[Span]:
        """Return the spans of the best snippets for what comes after the text that is written."""
        scores = self.system.selector.scores(self.example, self.texts_of(self.snippets), written)
        self.scores.append(scores)
        if room.excess(self.passage.text) <= 0:
            self.choices.append(range(len(self.snippets)))
            return self.text.whole
        chosen = self.text.best(self.snippets, rank(scores), room)
        self.choices.append(chosen)
        return [self.snippets[index] for index in chosen]

    def evidence(self) -> Evidence:
        """Return the scores of the snippets at each request, and which were read."""
        return self.selection(self.snippets, self.choices, self.answers, "segment", self.scores)
