"""`beginning`, `ending`, `ends`: what fits, from the front, from the back, or from both (Trunc: SEAL, §3.2)."""

from longsumbench.models.prompt.readings.reading import Reading, Rounds


class Ends(Reading):
    """The beginning of the text, its end, or both with a mark between them, as the reading's name says."""

    def rounds(self) -> Rounds:
        """Ask once, about what fits."""
        spans = self.text.whole
        if self.room.excess(self.passage.text) > 0:
            spans = self.text.shortened(self.builder.config.reading, self.room)
        return (yield from self.ask(spans, self.room))
