"""`whole`: everything, or an error before the first request."""

from longsumbench.models.prompt.readings.reading import PromptRound, Reading, Rounds


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
