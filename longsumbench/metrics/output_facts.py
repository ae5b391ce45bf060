"""What a system's outputs are like as a whole: how long, how different from each other, how repetitive.

    outputs, references --describe_outputs--> facts, as a record keeps them --output_warnings--> sentences

Words are split at whitespace and lowercased; a sequence is three consecutive words.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

from longsumbench.api.documents import Sentences

NUM_COMPARED = 200  # outputs that are compared with each other, spread evenly over all
FEWEST = 5  # outputs that a warning is given about
_SAME = 0.8  # two outputs that share at least this part of their sequences are nearly identical
_REPEATED = 0.5  # an output is repetitive if at least this part of its sequences occurred earlier in it
_MOST = 0.5  # there is a warning if at least this part of the outputs has the fault
LONGEST_COMPARED = 5_000  # words of an output in which sequences are looked for

Grams = frozenset[tuple[str, ...]]


def describe_outputs(outputs: Sequence[str], references: Sequence[Sequence[Sentences]] = ()) -> dict[str, float]:
    """Return what outputs are like.

    Args:
        outputs: all of them.
        references: of each example, where they are known.

    Returns:
        "count", the outputs; "words", their mean length; "reference_words", that of the references; "compared", the
        outputs that were compared with each other, and "distinct", how many of these are left when all but the first
        of nearly identical ones are taken away; "repetitive", the outputs that repeat themselves. A mean of nothing is
        left out.
    """
    words = [text.lower().split() for text in outputs]
    compared = words[:: max(1, -(-len(words) // NUM_COMPARED))]
    lengths = [sum(len(sentence.split()) for sentence in one) for one in chain.from_iterable(references)]
    means = {"words": list(map(len, words)), "reference_words": lengths}
    return {
        "count": len(words),
        **{name: round(sum(values) / len(values), 2) for name, values in means.items() if values},
        "compared": len(compared),
        "distinct": _count_distinct(compared),
        "repetitive": sum(map(_repeats_itself, words)),
    }


def output_warnings(facts: Mapping[str, float], num_cut: int = 0) -> list[str]:
    """Return a clause for each thing that is wrong with most outputs; nothing of fewer than `FEWEST`.

    Args:
        facts: from `describe_outputs`; empty where they are not known.
        num_cut: the outputs that stopped at the length limit.
    """
    count, compared = facts.get("count", 0), facts.get("compared", 0)
    if count < FEWEST:
        return []
    told = []
    if (distinct := facts.get("distinct", compared)) <= _MOST * compared:
        told.append(f"nearly identical outputs, {distinct:,} of {compared:,} distinct")
    if num_cut >= _MOST * count:
        told.append(f"{num_cut:,} of {count:,} outputs stopped at the length limit")
    if (repetitive := facts.get("repetitive", 0)) >= _MOST * count:
        told.append(f"{repetitive:,} of {count:,} outputs repeat themselves")
    return told


def _grams(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sequences of an output; one of fewer words is a sequence itself."""
    words = words[:LONGEST_COMPARED]
    return list(zip(words, words[1:], words[2:], strict=False)) or [tuple(words)]


def _repeats_itself(words: Sequence[str]) -> bool:
    grams = _grams(words)
    return 1 - len(set(grams)) / len(grams) >= _REPEATED


def _count_distinct(outputs: Sequence[Sequence[str]]) -> int:
    """Count the outputs that are not nearly identical to one that was counted before."""
    counted: list[Grams] = []
    for grams in (frozenset(_grams(words)) for words in outputs):
        if not any(_nearly_identical(grams, other) for other in counted):
            counted.append(grams)
    return len(counted)


def _nearly_identical(one: Grams, other: Grams) -> bool:
    """Compare the Jaccard similarity of two outputs' sequences with `_SAME`."""
    shared = len(one & other)
    return shared >= _SAME * (len(one) + len(other) - shared)
