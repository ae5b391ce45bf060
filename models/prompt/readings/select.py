"""The best snippets that fit, in the order of the text: `select` (EA: SEAL, §3.4) and `segments` (SEAL, §3.5).

`segments` chooses them anew for each segment of the summary, given what is written.
"""

from functools import cached_property

from longsumbench.core import LanguageModel, Span, count_words
from longsumbench.modeling.ranking import rank
from longsumbench.models.prompt.readings.reading import PartialSummary, PromptRound, Reading, Rounds
from longsumbench.models.prompt.source_text import PromptRoom
from longsumbench.sentences import sentence_key, split_sentences

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
