"""Summaries of parts are merged level by level: `model.merge_with` of `model.reading=stages`.

`previous` is hierarchical merging (BooookScore, Chang et al. 2024); `passages` and `passages_only` are context-aware merging
(CAHM, Ou and Lapata 2025). Begin with `MergeLevels.rounds`.

    parts --requests--> summaries, each with its passages --requests, level by level--> one summary
"""

import math
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from longsumbench.core import Message, Span
from longsumbench.modeling.ranking import Ranking, rank
from longsumbench.models.prompt.prompt_builder import WORD_TOKENS
from longsumbench.models.prompt.readings.reading import PartialSummary, PromptRound, Reading, Rounds
from longsumbench.models.prompt.source_text import LongText, Passage, PromptRoom

MOST_TRIES = 6  # further ones, of a request whose answer is too long
_PREVIOUS_SHARE = 0.2  # of the room of a merge, for what was written before
_PASSAGE_LENGTH, _NUM_PASSAGES = 100, 10  # tokens; of each summary
_LEAST_GROUP = 3  # summaries in a merge: passages are dropped for it
_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*\s*$")

# Yields requests, and returns their answers.
Answers: TypeAlias = Generator[list[PromptRound], list[PartialSummary], list[PartialSummary]]
# Makes a prompt that asks for some words.
_MakePrompt: TypeAlias = Callable[[int], list[Message]]


def ends_well(draft: PartialSummary) -> bool:
    """Return whether an answer kept to its limit and ends with a sentence."""
    return draft.complete and bool(_END.search(draft.text))


def first_sentences(text: str, length: int, tokenizer: Any) -> str:
    """Return the first sentences of a text, in `length` tokens; of a first one that is longer, its beginning."""
    long_text = LongText(Passage.of_summaries([text]), tokenizer)
    end = long_text.part_end(0, length, by_paragraph=False) if length > 0 else 0
    return long_text.passage.text[:end].rstrip()


@dataclass(frozen=True)
class PartSummary:
    """A summary of one or several parts.

    Attributes:
        passages: of the text, which support it; the best first.
    """

    text: str
    passages: Sequence[Span] = ()


class PassageFinder:
    """The passages of a text that support a summary: those that BM25 finds with it.

    Choices: passages are whole sentences, where CAHM's are tokens. Where there is no room for two summaries, their ends are
    cut, and counted.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        config = reading.builder.config
        self.shows_summaries = config.merge_with != "passages_only"
        self.ranking: Ranking | None = None
        if config.merge_with != "previous":
            self.ranking = Ranking("bm25", config.ranker_settings, "model.merge_with")

    def find(self, summary: str, passages: Sequence[Span]) -> PartSummary:
        """Return a summary with its best passages."""
        if self.ranking is None or not (passages and summary.strip()):
            return PartSummary(summary)
        example = replace(self.reading.example, query=summary, title=None)
        scores = self.ranking.scores(example, self.reading.quote_spans(passages))
        return PartSummary(summary, [passages[index] for index in rank(scores)[:_NUM_PASSAGES]])

    def describe(self, summaries: Sequence[PartSummary], num_passages: int = _NUM_PASSAGES) -> str:
        """Return numbered summaries, each before its best passages in the order of the text."""
        blocks = []
        for number, summary in enumerate(summaries, start=1):
            passages = sorted(summary.passages[:num_passages])
            if self.shows_summaries or not passages:
                blocks.append(f"Summary {number}: {summary.text}")
            if passages:
                quotes = [f"- {quote}" for quote in self.reading.quote_spans(passages)]
                blocks.append("\n".join([f"Passages of part {number}:", *quotes]))
        return "\n\n".join(blocks)

    def fill(self, summaries: Sequence[PartSummary], room: PromptRoom) -> tuple[int, str]:
        """Return how many summaries fit into a prompt, two at least, and their text."""
        least = min(len(summaries), _LEAST_GROUP if self.ranking else 2)
        for num_passages in range(_NUM_PASSAGES, -1, -1):
            number, text = 0, ""
            for size in range(least, len(summaries) + 1):
                described = self.describe(summaries[:size], num_passages)
                if room.excess(described) > 0:
                    break
                number, text = size, described
            if number:
                return number, text
        return 2, self._cut(summaries[:2], room)

    def _cut(self, summaries: Sequence[PartSummary], room: PromptRoom) -> str:
        """Return summaries without their ends, so that they fit."""
        self.reading.counts["cut_summaries"] += len(summaries)
        tokenizer = self.reading.builder.engine.tokenizer
        for length in range(room.tokens // 2, 0, -8):
            cut = [
                PartSummary(first_sentences(summary.text, length, tokenizer))
                for summary in summaries
            ]
            if room.excess(text := self.describe(cut)) <= 0:
                return text
        raise self.reading.no_room(room)


class MergeLevels:
    """The merges of one example.

    Choice: a summary that is alone at the end of a level goes to the next one as it is.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading, self.builder = reading, reading.builder
        self.finder = PassageFinder(reading)
        self.complete = True

    def rounds(self, parts: Sequence[Span]) -> Rounds:
        """Summarize parts, then merge their summaries; a level has the words of the next one times `model.shrink`."""
        text, shrink = self.reading.text, self.builder.config.shrink
        levels_left = self._count_levels(len(parts))
        prompts = [self._prompt_maker("part", "", text.joined([part])) for part in parts]
        drafts = yield from self._ask(prompts, shrink**levels_left)
        self.reading.answers = [draft.text for draft in drafts]
        passages = text.divided(_PASSAGE_LENGTH, [start for start, _ in parts], by_paragraph=False)
        summaries = []
        for draft, (start, end) in zip(drafts, parts, strict=True):
            of_part = [passage for passage in passages if start <= passage[0] < end]
            summaries.append(self.finder.find(draft.text, of_part))
        while len(summaries) > 1:
            levels_left = max(0, levels_left - 1)
            summaries = yield from self._merge_level(summaries, shrink**levels_left)
        return PartialSummary(summaries[0].text, self.complete)

    def _merge_level(
        self, summaries: Sequence[PartSummary], share: float
    ) -> Generator[list[PromptRound], list[PartialSummary], list[PartSummary]]:
        remaining, merged = list(summaries), list[PartSummary]()
        while len(remaining) > 1 or not merged:
            previous = merged[-1] if merged else PartSummary("")
            longest = int(_PREVIOUS_SHARE * self._room("").tokens)
            previous_text = first_sentences(previous.text, longest, self.builder.engine.tokenizer)
            if self._room(previous_text).tokens < self.reading.least_step_room:
                previous_text = ""
            number, text = self.finder.fill(remaining, self._room(previous_text))
            group, remaining = remaining[:number], remaining[number:]
            if number == len(summaries):  # the last merge
                share = 1.0
            [draft] = yield from self._ask(
                [self._prompt_maker("merge", previous_text, text)], share
            )
            passages = {passage for summary in (previous, *group) for passage in summary.passages}
            merged.append(self.finder.find(draft.text, sorted(passages)))
        return [*merged, *remaining]

    def _ask(self, prompts: Sequence[_MakePrompt], share: float) -> Answers:
        """Ask for a share of the words; with `previous`, for fewer again as long as an answer does not end well."""
        words, limit = share * self.builder.words, math.ceil(share * self.reading.limit)
        tries = MOST_TRIES if self.finder.ranking is None else 0
        answers: dict[int, PartialSummary] = {}
        for attempt in range(tries + 1):
            bad = [i for i in range(len(prompts)) if i not in answers or not ends_well(answers[i])]
            if not bad:
                break
            self.reading.counts["tries"] += len(bad) if attempt else 0
            fewer = max(1, round(words * (1 - 0.1 * attempt)))
            drafts = yield [PromptRound([prompts[i](fewer)], limit) for i in bad]
            answers |= zip(bad, drafts, strict=True)
        self.complete = self.complete and all(draft.complete for draft in answers.values())
        return [answers[i] for i in range(len(prompts))]

    def _prompt_maker(self, entry: str, written: str, text: str) -> _MakePrompt:
        """Return what makes a prompt with a text that fits if it asks for the words of the summary."""

        def make(words: int) -> list[Message]:
            room = self.builder.room(self.reading.example, entry, written, words)
            # A smaller number may have more tokens.
            return (room if room.excess(text) <= 0 else self._room(written, entry)).messages(text)

        return make

    def _room(self, written: str, entry: str = "merge") -> PromptRoom:
        return self.builder.room(self.reading.example, entry, written)

    def _count_levels(self, number: int) -> int:
        """Return how many levels so many summaries take, about."""
        length = WORD_TOKENS * self.builder.words
        if self.finder.ranking:
            length += _PASSAGE_LENGTH * _NUM_PASSAGES
        group = max(2, int(self._room("").tokens / length))
        levels = 0
        while number > 1:
            number = math.ceil(number / group)
            levels += 1
        return levels
