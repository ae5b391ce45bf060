"""`select`: the best snippets that fit, in the order of the text (EA: SEAL, §3.4)."""

from functools import cached_property

from longsumbench.core import Span
from longsumbench.modeling.ranking import rank
from longsumbench.models.prompt.readings.reading import Reading, Rounds
from longsumbench.models.prompt.source_text import PromptRoom

SELECTING = frozenset({"selector", "rank_checkpoint", "snippet_length"})


class Select(Reading):
    """The snippets with the best scores; if everything fits, the whole text."""

    settings = SELECTING
    unit_setting = "snippet_length"
    selects = True
    evidence_row = "segment"

    def rounds(self) -> Rounds:
        """Ask once, about the best snippets."""
        return (yield from self.ask(self.choose("", self.room), self.room))

    @cached_property
    def units(self) -> list[Span]:
        """The characters of each snippet; none of an empty text."""
        if not self.passage.text:
            return []
        return self.builder.selector.snippets(self.example, self.text)

    def choose(self, written: str, room: PromptRoom) -> list[Span]:
        """Return the spans of the best snippets for what comes after the text that is written.

        Raises:
            UsageError: there is no room for any.
        """
        snippets = self.units
        scores = self.builder.selector.scores(self.example, self.quote_spans(snippets), written)
        self.scores.append(scores)
        if room.excess(self.passage.text) <= 0:
            return self.text.whole
        order = rank(scores)
        spans = [snippets[index] for index in self.text.best(snippets, order, room)]
        if spans:
            return spans
        # Of the best one, which does not fit: a run decides the length of its snippets, and tokens merge at borders.
        begin, end = snippets[order[0]]
        return [(begin, min(end, self.next_part(begin, room)[1]))]
