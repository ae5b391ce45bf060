"""One request: `beginning`, `ending`, `ends` (what fits; Trunc: SEAL, §3.2), and `whole` (everything, or an error)."""

from longsumbench.models.prompt.readings.reading import PromptRound, Reading, Rounds


class Ends(Reading):
    """The beginning of the text, its end, or both with a mark between them, as the reading's name says."""

    def rounds(self) -> Rounds:
        """Ask once, about what fits."""
        spans = self.text.whole
        if self.room.excess(self.passage.text) > 0:
            spans = self.text.shortened(self.builder.config.reading, self.room)
        return (yield from self.ask(spans, self.room))


class Whole(Reading):
    """The whole text; the only reading that works without a tokenizer."""

    least_room = 0
    refuses_long_texts = True
    reads_all = True

    def rounds(self) -> Rounds:
        """Ask once.

        Raises:
            UsageError: the prompt is too long.
        """
        if self.builder.counts_tokens:
            tokens = self.room.count(self.passage.text)
            if tokens > self.room.budget:
                raise self.builder.too_long(tokens, self.example.id)
        [draft] = yield [PromptRound([self.room.messages(self.passage.text)])]
        return draft
