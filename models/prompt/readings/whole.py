"""`whole`: everything, or an error before the first request."""

from longsumbench.models.prompt.readings.reading import Ask, Reading, Rounds


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
        prompt = self.messages(self.passage.text)
        if self.system.counts_tokens:
            excess = self.room.excess(self.passage.text)
            if excess > 0:
                tokens = self.room.budget + excess
                raise self.system.too_long(tokens, self.example.id, with_text=True)
        [reply] = yield [Ask((prompt,))]
        return reply
