"""Statistics of all outputs of a system: their length, their differences and their repetitions.

    outputs, references --describe_outputs--> stats for the record --output_warnings--> warnings

Words are those that lengths count (`core.count_words`), lowercased; a sequence is three consecutive words, and in loops four.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from longsumbench.core import Sentences, count_words, word_pattern
from longsumbench.core.answer_text import has_marks

NUM_COMPARED = 200  # outputs that are compared with each other, evenly spaced
FEWEST = 5  # minimum number of outputs for a warning
# Two outputs that share at least this part of their sequences are nearly identical
_SHARED_SHARE = 0.8
# An output is repetitive if at least this part of its sequences occurred earlier in it
_REPETITIVE_SHARE = 0.5
_LIMIT = 0.5  # there is a warning if at least this part of the outputs has a problem
LONGEST_COMPARED = 5_000  # words of an output that are compared
# An output has loops if more than this part of its 4-grams occurred earlier in it
_LOOP_WORDS, _LOOP_SHARE = 4, 0.3
_LOOPS_LIMIT = 0.25  # of the outputs; a loop costs more than it shows in a mean
_LEAST_WORDS = 0.1  # of the words of the references, in the mean
_REPEAT = "repeat themselves"

_HEADING = "summary|summarization|abstract|tl;?dr|zusammenfassung|résumé|resumen|riassunto|резюме|摘要|总结|要約"
_HEADED = rf"(?:{_HEADING})\b(?: (?:of|for)\b[^\n:：.!?]{{0,60}})?"
_PREAMBLE = re.compile(
    # "Sure! Here is a summary:"
    r"[^:：]{0,40}?\b(?:here (?:is|are)|here['’]s|below is|the following is)\b[^\n:：.!?]{0,80}[:：]"
    rf"|(?:[^\n:：.!?]{{0,20}}\W)?{_HEADED}[\W_]*?[:：]"  # "Brief summary of the text:"
    rf"|[\W_]*{_HEADED}[\W_]*\n",  # alone on its line
    re.IGNORECASE,
)

_CHANGE = r"no (?:further )?(?:change|update|refinement|revision)s?\b"
_UNCHANGED = re.compile(
    # "The existing summary is sufficient.", as an answer to a request to refine it
    r"[^.\n]{0,60}?\b(?:the|your)\b[^.\n]{0,20}\b(?:existing|original|current|previous|provided|initial) summary\b"
    rf"[^.\n]{{0,60}}\b(?:sufficient|adequate|unchanged|not need|{_CHANGE})"
    rf"|\W*{_CHANGE}[^.\n]{{0,20}}\b(?:needed|necessary|required)\b",
    re.IGNORECASE,
)

Grams = frozenset[tuple[str, ...]]


@dataclass(frozen=True)
class OutputStats:
    """Statistics of the outputs of one system.

    Attributes:
        compared: outputs that were compared with each other.
        distinct: of these, the outputs that are not nearly identical to an earlier one.
        repetitive: outputs of which at least half of the sequences occurred earlier in them.
        words: their mean length; 0 if there is no output.
        reference_words: mean length of the references; None if they are unknown.
        loops: outputs that repeat more than 30 % of their 4-grams. This and what follows is None if it is unknown.
        empty: outputs without words.
        preambles: outputs that begin with words about the summary ("Here is a summary:").
        marked: outputs with thinking or marks of a chat format.
        unchanged: outputs that say that nothing changed ("The existing summary is sufficient.").
    """

    count: int
    compared: int
    distinct: int
    repetitive: int
    words: float = 0.0
    reference_words: float | None = None
    loops: int | None = None
    empty: int | None = None
    preambles: int | None = None
    marked: int | None = None
    unchanged: int | None = None


# Begin to read here: the warnings are made of these stats.
def describe_outputs(
    outputs: Sequence[str], references: Sequence[Sequence[Sentences]] = ()
) -> OutputStats:
    """Compute stats about the outputs of one system; `references` are those of each example, if known."""
    words = [word_pattern(text).findall(text.lower()) for text in outputs]
    compared = words[:: max(1, -(-len(words) // NUM_COMPARED))]
    lengths = list(map(count_words, chain.from_iterable(references)))
    return OutputStats(
        count=len(words),
        compared=len(compared),
        distinct=_count_distinct(compared),
        repetitive=sum(_repeated_share(output, 3) >= _REPETITIVE_SHARE for output in words),
        words=_mean_length(list(map(len, words))) or 0.0,
        reference_words=_mean_length(lengths),
        loops=sum(_repeated_share(output, _LOOP_WORDS) > _LOOP_SHARE for output in words),
        empty=words.count([]),
        preambles=_count_matches(_PREAMBLE, outputs),
        marked=sum(map(has_marks, outputs)),
        unchanged=_count_matches(_UNCHANGED, outputs),
    )


def collapse_reasons(stats: OutputStats | None, fit_sources: bool = False) -> list[str]:
    """Return a clause for each problem of most outputs that shows that a system did not learn to summarize.

    There is none for fewer than `FEWEST` outputs. With `fit_sources`, outputs can be identical, as those of Lead for
    several questions about a source are.
    """
    if stats is None or stats.count < FEWEST:
        return []
    reasons = []
    # empty outputs are short and alike: one reason is enough
    if stats.empty is not None and stats.empty >= _LIMIT * stats.count:
        reasons.append(f"{stats.empty:,} of {stats.count:,} outputs are empty")
    elif stats.words < _LEAST_WORDS * (stats.reference_words or 0):
        reasons.append(
            f"outputs of {stats.words:.0f} words, where references have {stats.reference_words:.0f}"
        )
    elif stats.distinct <= _LIMIT * stats.compared and not fit_sources:
        reasons.append(
            f"nearly identical outputs, {stats.distinct:,} of {stats.compared:,} distinct"
        )
    if stats.repetitive >= _LIMIT * stats.count:
        reasons.append(f"{stats.repetitive:,} of {stats.count:,} outputs {_REPEAT}")
    return reasons


def output_warnings(
    stats: OutputStats | None, num_cut: int = 0, can_block_loops: bool = False
) -> list[str]:
    """Return a clause for each problem of many outputs; none for fewer than `FEWEST` outputs.

    `num_cut` outputs stopped at the length limit. `can_block_loops`: the setting that prevents loops is named.
    """
    if stats is None or stats.count < FEWEST:
        return []
    problems = collapse_reasons(stats)
    if num_cut >= _LIMIT * stats.count:
        problems.append(f"{num_cut:,} of {stats.count:,} outputs stopped at the length limit")
    if stats.loops is not None and stats.loops >= _LOOPS_LIMIT * stats.count:
        remedy = "; decode.no_repeat_ngram=4 prevents that" if can_block_loops else ""
        share = f"{100 * _LOOP_SHARE:.0f} % of their sequences of {_LOOP_WORDS} words"
        # the next clause says more than that of repetitive outputs
        problems = [problem for problem in problems if not problem.endswith(_REPEAT)]
        problems.append(
            f"{stats.loops:,} of {stats.count:,} outputs repeat more than {share}{remedy}"
        )
    if stats.preambles is not None and stats.preambles >= _LIMIT * stats.count:
        example = 'a preamble (as "Summary:" or "Here is …:"), which is scored, too'
        problems.append(f"{stats.preambles:,} of {stats.count:,} outputs begin with {example}")
    if stats.marked:
        problems.append(
            f"{stats.marked:,} of {stats.count:,} outputs have thinking or marks of a chat format (as <think>), which are"
            " scored, too: remove them first"
        )
    if stats.unchanged:
        problems.append(
            f"{stats.unchanged:,} of {stats.count:,} outputs are answers that say that nothing changed, not summaries"
        )
    return problems


def _count_matches(pattern: re.Pattern[str], outputs: Sequence[str]) -> int:
    return sum(pattern.match(text.lstrip()) is not None for text in outputs)


def _mean_length(lengths: Sequence[int]) -> float | None:
    return round(sum(lengths) / len(lengths), 2) if lengths else None


def _grams(words: Sequence[str], n: int = 3) -> list[tuple[str, ...]]:
    """Return the sequences of an output; a shorter output is one sequence."""
    words = words[:LONGEST_COMPARED]
    return list(zip(*(words[start:] for start in range(n)), strict=False)) or [tuple(words)]


def _repeated_share(words: Sequence[str], n: int) -> float:
    grams = _grams(words, n)
    return 1 - len(set(grams)) / len(grams)


def _count_distinct(outputs: Sequence[Sequence[str]]) -> int:
    distinct: list[Grams] = []
    for grams in (frozenset(_grams(words)) for words in outputs):
        if not any(_nearly_identical(grams, output) for output in distinct):
            distinct.append(grams)
    return len(distinct)


def _nearly_identical(first: Grams, second: Grams) -> bool:
    shared = len(first & second)
    return shared >= _SHARED_SHARE * (len(first) + len(second) - shared)
