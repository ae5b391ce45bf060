"""`beginning`, `ending`, `ends`: what fits, from the front, from the back, or from both (Trunc: SEAL, §3.2)."""

from typing import ClassVar

from longsumbench.models.prompt.readings.reading import Reading, Rounds


class Beginning(Reading):
    """The beginning of the text."""

    kept: ClassVar[str] = "beginning"

    def rounds(self) -> Rounds:
        """Ask once, about what fits."""
        spans = self.text.whole
        if self.room.excess(self.passage.text) > 0:
            spans = self.text.shortened(self.kept, self.room)
        return (yield from self.ask(spans, self.room))


class Ending(Beginning):
    """The end of the text."""

    kept = "ending"


class Ends(Beginning):
    """The beginning and the end of the text, with a mark between them."""

    kept = "ends"
