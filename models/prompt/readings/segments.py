"""`segments`: for each segment of the summary the best snippets anew, given what is written (SEAL, §3.5)."""

from math import ceil

from longsumbench.core import LanguageModel, count_words
from longsumbench.models.prompt.config import PromptConfig, RequestSizes
from longsumbench.models.prompt.readings.reading import Ask, Reply, Rounds
from longsumbench.models.prompt.readings.select import SELECTING, Select
from longsumbench.sentences import sentence_key, split_sentences

_SERVER_SEGMENT = 50  # tokens of the one to three sentences that a server is asked for, about


class Segments(Select):
    """The snippets with the best scores for each segment of the summary.

    An engine that gives tokens continues the written ones, `model.segment_length` at a time, up to the end token or the
    limit. So one segment is `select`. A server is sent the written text and asked for the next sentences, until there
    are as many words as the prompt asks for, or nothing new.
    """

    settings = SELECTING | {"segment_length", "redundancy"}

    @classmethod
    def request_lengths(cls, config: PromptConfig, sizes: RequestSizes) -> tuple[float, float]:
        """Every segment has a prompt, with half of the summary in the mean."""
        length = _SERVER_SEGMENT if config.engine == "api" else config.segment_length
        num_segments = ceil(sizes.answer / length)
        prompt = sizes.instructions + min(sizes.source, sizes.room) + sizes.answer / 2
        return num_segments * prompt, sizes.answer

    @classmethod
    def entry_for(cls, engine: LanguageModel) -> str:
        """A server is asked for the next sentences."""
        return "user" if engine.gives_tokens else "segment"

    def rounds(self) -> Rounds:
        """Ask once a segment."""
        if self.system.engine.gives_tokens:
            return (yield from self._continue_tokens())
        return (yield from self._continue_text())

    def _continue_tokens(self) -> Rounds:
        length = self.system.config.segment_length
        written: tuple[int, ...] = ()
        text = ""
        while True:
            prompt = self.prompt(self.choose(text, self.room), self.room)
            # The reply's text is the whole summary so far.
            [reply] = yield [Ask((prompt,), written=written, stop_after=length)]
            self.answers.append(reply.text.removeprefix(text))
            text = reply.text
            written += reply.ids
            # Fewer tokens are the last ones, by an end or by force.
            if len(reply.ids) < length or len(written) >= self.limit:
                return Reply(text, reply.complete)

    def _continue_text(self) -> Rounds:
        sentences: list[str] = []
        num_words = self.system.words(self.example)
        while True:
            written = " ".join(sentences)
            room = self.room_of("segment", written)
            spans = self.choose(written, room)
            if sentences and not spans:
                # What is written fills the prompt.
                return Reply(written, complete=False)
            prompt = self.prompt(spans, room, "segment", written)
            [reply] = yield [Ask((prompt,))]
            self.answers.append(reply.text)
            num_before = len(sentences)
            keys = {sentence_key(sentence) for sentence in sentences}
            for sentence in split_sentences(reply.text):
                if sentence_key(sentence) not in keys:
                    sentences.append(sentence)
                    keys.add(sentence_key(sentence))
            if len(sentences) == num_before or count_words(sentences) >= num_words:
                return Reply(" ".join(sentences), reply.complete)
