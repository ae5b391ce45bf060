"""What is carried from part to part: `model.final` and `model.compress` of `model.reading=refine`.

`carry_notes` is a chain of agents (Zhang et al. 2024, algorithm 1); `compress` is that of incremental updating (BooookScore,
Chang et al. 2024).
"""

import math
from collections.abc import Generator

from longsumbench.core import count_words
from longsumbench.models.prompt.readings.merging import MOST_TRIES, first_sentences
from longsumbench.models.prompt.readings.reading import PartialSummary, PromptRound, Reading, Rounds
from longsumbench.models.prompt.source_text import MARK_TOKENS, LongText, Passage


def half_room(reading: Reading, entry: str, written: str = "") -> int:
    """Return the most tokens of what is carried: half of a prompt's room; the next part has the other half.

    Raises:
        UsageError: there is no room for both.
    """
    room = reading.builder.room(reading.example, entry, written)
    if room.tokens < reading.least_room:
        raise reading.no_room(room)
    return room.tokens // 2


def carry_notes(reading: Reading) -> Rounds:
    """Ask once a part for notes, which have those before in them; then for the summary, of the last notes alone.

    Notes that are too long lose their middle; those, and notes that stopped at their limit, are counted.
    """
    final = reading.builder.room(reading.example, "final")
    # With notes, the prompt has a paragraph more.
    longest = min(half_room(reading, "carry", " "), reading.limit, final.tokens)
    notes, end = "", 0
    while end < len(reading.passage.text):
        room = reading.builder.room(reading.example, "carry", notes)
        part = reading.next_part(end, room)
        draft = yield from reading.ask([part], room, longest)
        notes, end = _without_middle(reading, draft.text, longest), part[1]
        reading.counts["cut_notes"] += not draft.complete or notes != draft.text
    [draft] = yield [PromptRound([final.messages(notes)])]
    return draft


def _without_middle(reading: Reading, notes: str, length: int) -> str:
    text = LongText(Passage.of_summaries([notes]), reading.builder.engine.tokenizer)
    if len(text.offsets) <= length:
        return notes
    return text.joined(text.outer_spans("ends", max(1, length - MARK_TOKENS)))


def compress(
    reading: Reading, written: str, share: float
) -> Generator[list[PromptRound], list[PartialSummary], str]:
    """Return a summary of the text so far with about this share of the words of the whole one; the closest of six tries."""
    words = max(1, round(share * reading.builder.words))
    best, distance = written, math.inf
    for attempt in range(MOST_TRIES):
        num_words = max(1, round(words * (1 - 0.05 * attempt)))
        room = reading.builder.room(reading.example, "compress", words=num_words)
        text = first_sentences(written, room.tokens, reading.builder.engine.tokenizer)
        [draft] = yield [PromptRound([room.messages(text)])]
        reading.counts["tries"] += 1
        beyond = abs(count_words([draft.text]) - words)
        if beyond < distance:
            best, distance = draft.text, beyond
        if distance <= 0.2 * words:
            break
    return best
