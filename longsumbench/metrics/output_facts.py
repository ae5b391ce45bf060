"""Facts about all outputs of a system: their length, their differences and their repetitions.

    outputs, references --describe_outputs--> facts for the record --output_warnings--> warnings

Words are those that lengths count (`core.words`), lowercased; a sequence is three consecutive words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from longsumbench.core import Sentences, count_words, word_pattern

NUM_COMPARED = 200  # outputs that are compared with each other, evenly spaced
FEWEST = 5  # minimum number of outputs for a warning
_SHARED_SHARE = 0.8  # two outputs that share at least this part of their sequences are nearly identical
_REPETITIVE_SHARE = 0.5  # an output is repetitive if at least this part of its sequences occurred earlier in it
_LIMIT = 0.5  # there is a warning if at least this part of the outputs has a problem
LONGEST_COMPARED = 5_000  # words of an output that are compared

Grams = frozenset[tuple[str, ...]]


@dataclass(frozen=True)
class OutputFacts:
    """Facts about the outputs of one system.

    Attributes:
        compared: outputs that were compared with each other.
        distinct: of these, the outputs that are not nearly identical to an earlier one.
        words: their mean length; 0 if there is no output.
        reference_words: mean length of the references; None if they are unknown.
    """

    count: int
    compared: int
    distinct: int
    repetitive: int
    words: float = 0.0
    reference_words: float | None = None


def describe_outputs(outputs: Sequence[str], references: Sequence[Sequence[Sentences]] = ()) -> OutputFacts:
    """Compute facts about the outputs of one system; `references` are those of each example, if known."""
    words = [word_pattern(text).findall(text.lower()) for text in outputs]
    compared = words[:: max(1, -(-len(words) // NUM_COMPARED))]
    lengths = list(map(count_words, chain.from_iterable(references)))
    return OutputFacts(
        count=len(words),
        compared=len(compared),
        distinct=_count_distinct(compared),
        repetitive=sum(map(_repeats_itself, words)),
        words=_mean_length(list(map(len, words))) or 0.0,
        reference_words=_mean_length(lengths),
    )


def output_warnings(facts: OutputFacts | None, num_cut: int = 0) -> list[str]:
    """Return a clause for each problem of most outputs; none for fewer than `FEWEST` outputs.

    `num_cut` outputs stopped at the length limit.
    """
    if facts is None or facts.count < FEWEST:
        return []
    problems = {
        f"nearly identical outputs, {facts.distinct:,} of {facts.compared:,} distinct": (
            facts.distinct <= _LIMIT * facts.compared
        ),
        f"{num_cut:,} of {facts.count:,} outputs stopped at the length limit": num_cut >= _LIMIT * facts.count,
        f"{facts.repetitive:,} of {facts.count:,} outputs repeat themselves": facts.repetitive >= _LIMIT * facts.count,
    }
    return [problem for problem, holds in problems.items() if holds]


def _mean_length(lengths: Sequence[int]) -> float | None:
    return round(sum(lengths) / len(lengths), 2) if lengths else None


def _grams(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sequences of an output; a shorter output is one sequence."""
    words = words[:LONGEST_COMPARED]
    return list(zip(words, words[1:], words[2:], strict=False)) or [tuple(words)]


def _repeats_itself(words: Sequence[str]) -> bool:
    grams = _grams(words)
    return 1 - len(set(grams)) / len(grams) >= _REPETITIVE_SHARE


def _count_distinct(outputs: Sequence[Sequence[str]]) -> int:
    distinct: list[Grams] = []
    for grams in (frozenset(_grams(words)) for words in outputs):
        if not any(_nearly_identical(grams, output) for output in distinct):
            distinct.append(grams)
    return len(distinct)


def _nearly_identical(first: Grams, second: Grams) -> bool:
    shared = len(first & second)
    return shared >= _SHARED_SHARE * (len(first) + len(second) - shared)
