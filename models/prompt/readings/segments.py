"""`segments`: for each segment of the summary the best snippets anew, given what is written (SEAL, §3.5)."""

from longsumbench.core import LanguageModel, count_words
from longsumbench.models.prompt.readings.reading import PartialSummary, PromptRound, Rounds
from longsumbench.models.prompt.readings.select import SELECTING, Select
from longsumbench.sentences import sentence_key, split_sentences


class Segments(Select):
    """The snippets with the best scores for each segment of the summary.

    An engine that gives tokens continues the written ones, `model.segment_length` at a time, up to the end token or the
    limit. So one segment is `select`. A server is sent the written text and asked for the next sentences, until there
    are as many words as the prompt asks for, or nothing new.
    """

    answers_once = False
    settings = SELECTING | {"segment_length", "redundancy"}

    @classmethod
    def entry_for(cls, engine: LanguageModel) -> str:
        """A server is asked for the next sentences."""
        return "user" if engine.gives_tokens else "segment"

    def rounds(self) -> Rounds:
        """Ask once a segment."""
        if self.builder.engine.gives_tokens:
            return (yield from self._continue_tokens())
        return (yield from self._continue_text())

    def _continue_tokens(self) -> Rounds:
        length = self.builder.config.segment_length
        text = ""
        ids: tuple[int, ...] = ()
        while True:
            prompt = self.prompt(self.choose(text, self.room), self.room)
            # The draft's text is the whole summary so far.
            [draft] = yield [PromptRound([prompt], written=ids, stop_after=length)]
            self.answers.append(draft.text.removeprefix(text))
            text = draft.text
            ids += draft.ids
            # Fewer tokens are the last ones, by an end or by force.
            if len(draft.ids) < length or len(ids) >= self.limit:
                return PartialSummary(text, draft.complete)

    def _continue_text(self) -> Rounds:
        # By what makes two sentences the same.
        sentences: dict[str, str] = {}
        least_room = min(self.builder.config.snippet_length, len(self.text.offsets))
        while True:
            written = " ".join(sentences.values())
            room = self.builder.room(self.example, "segment", written)
            if sentences and room.tokens < least_room:
                # What is written fills the prompt.
                return PartialSummary(written, complete=False)
            draft = yield from self.ask(self.choose(written, room), room)
            num_before = len(sentences)
            for sentence in split_sentences(draft.text):
                sentences.setdefault(sentence_key(sentence), sentence)
            is_enough = count_words(sentences.values()) >= self.builder.words
            if is_enough or len(sentences) == num_before:
                return PartialSummary(" ".join(sentences.values()), draft.complete)
