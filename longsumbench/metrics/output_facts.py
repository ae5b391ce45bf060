"""Facts about all outputs of a system: their length, their differences and their repetitions.

    outputs, references --describe_outputs--> facts for the record --output_warnings--> warnings

Words are split at whitespace and lowercased; a sequence is three consecutive words.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

from longsumbench.api.documents import Sentences

NUM_COMPARED = 200  # outputs that are compared with each other, evenly spaced
FEWEST = 5  # minimum number of outputs for a warning
_SAME = 0.8  # two outputs that share at least this part of their sequences are nearly identical
_REPEATED = 0.5  # an output is repetitive if at least this part of its sequences occurred earlier in it
_MOST = 0.5  # there is a warning if at least this part of the outputs has a problem
LONGEST_COMPARED = 5_000  # words of an output that are compared

Grams = frozenset[tuple[str, ...]]


def describe_outputs(outputs: Sequence[str], references: Sequence[Sequence[Sentences]] = ()) -> dict[str, float]:
    """Compute facts about outputs.

    Args:
        outputs: of one system.
        references: of each example, if known.

    Returns:
        "count": outputs; "words": their mean length; "reference_words": mean length of the references; "compared":
        outputs that were compared with each other; "distinct": those that are not nearly identical to an earlier one;
        "repetitive": outputs that repeat themselves. A mean of nothing is left out.
    """
    words = [text.lower().split() for text in outputs]
    compared = words[:: max(1, -(-len(words) // NUM_COMPARED))]
    lengths = [sum(len(sentence.split()) for sentence in reference) for reference in chain.from_iterable(references)]
    means = {"words": list(map(len, words)), "reference_words": lengths}
    return {
        "count": len(words),
        **{name: round(sum(values) / len(values), 2) for name, values in means.items() if values},
        "compared": len(compared),
        "distinct": _count_distinct(compared),
        "repetitive": sum(map(_repeats_itself, words)),
    }


def output_warnings(facts: Mapping[str, float], num_cut: int = 0) -> list[str]:
    """Return a clause for each problem of most outputs; none for fewer than `FEWEST` outputs.

    `facts` are from `describe_outputs`, or empty. `num_cut` outputs stopped at the length limit.
    """
    count, compared = facts.get("count", 0), facts.get("compared", 0)
    if count < FEWEST:
        return []
    warnings = []
    if (distinct := facts.get("distinct", compared)) <= _MOST * compared:
        warnings.append(f"nearly identical outputs, {distinct:,} of {compared:,} distinct")
    if num_cut >= _MOST * count:
        warnings.append(f"{num_cut:,} of {count:,} outputs stopped at the length limit")
    if (repetitive := facts.get("repetitive", 0)) >= _MOST * count:
        warnings.append(f"{repetitive:,} of {count:,} outputs repeat themselves")
    return warnings


def _grams(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sequences of an output; a shorter output is one sequence."""
    words = words[:LONGEST_COMPARED]
    return list(zip(words, words[1:], words[2:], strict=False)) or [tuple(words)]


def _repeats_itself(words: Sequence[str]) -> bool:
    grams = _grams(words)
    return 1 - len(set(grams)) / len(grams) >= _REPEATED


def _count_distinct(outputs: Sequence[Sequence[str]]) -> int:
    counted: list[Grams] = []
    for grams in (frozenset(_grams(words)) for words in outputs):
        if not any(_nearly_identical(grams, other) for other in counted):
            counted.append(grams)
    return len(counted)


def _nearly_identical(one: Grams, other: Grams) -> bool:
    shared = len(one & other)
    return shared >= _SAME * (len(one) + len(other) - shared)
