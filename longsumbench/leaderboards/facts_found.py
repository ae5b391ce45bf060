"""What systems found of planted facts, in sentences: which system, at which place, over which distance.

Numbers are the percent of the facts that summaries state right, with 95 % intervals. Two systems are distinguished if
the interval of their paired difference does not contain 0, as in `longsumbench compare`. Places, distances, and systems
without per-example scores are distinguished if their intervals do not overlap. Systems that did not learn are left out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from longsumbench.leaderboards.figures.recall import CHANCE, MOST_SYSTEMS
from longsumbench.leaderboards.seed_groups import ScoresOfRuns, SeedGroup, difference, estimate_share
from longsumbench.metrics.aggregate import Estimate

_SINGLE, _SAME, _OTHER = "fact_recall_single", "fact_recall_silent_same", "fact_recall_silent_other"
_TENTHS = [f"{_SINGLE}_position_{tenth}" for tenth in range(10)]
_MOST_NAMED = 3  # pairs, or systems with their numbers, in a sentence


@dataclass(frozen=True)
class _Contrast:
    """What a system states right of two groups of facts."""

    system: str
    one: Estimate
    other: Estimate

    @property
    def differs(self) -> bool:
        return not _overlap(self.one, self.other)


def describe_facts_found(rows: Sequence[SeedGroup], scores: ScoresOfRuns) -> list[str]:
    """Return sentences on facts by system, by place and by distance; without fact recall, none.

    The best row of each model counts, of at most six models, as in the picture. Rows that did not learn, and rows
    without intervals, are left out.

    Args:
        rows: comparable rows, the best first.
        scores: per-example scores of their runs.
    """
    systems = _best_rows(rows)
    halves = [
        _Contrast(system, first, second)
        for system, row in systems.items()
        if (first := _share_of_places(row, _TENTHS[:5], scores))
        and (second := _share_of_places(row, _TENTHS[5:], scores))
    ]
    distances = [
        _Contrast(system, row.numbers[_SAME], row.numbers[_OTHER])
        for system, row in systems.items()
        if _has_interval(row, _SAME) and _has_interval(row, _OTHER)
    ]
    sentences = [
        _by_system(systems, scores),
        _describe_contrasts("Single facts, in the first half of the source against the second", halves),
        _describe_contrasts("Silent facts (in two places), in one section against several", distances),
    ]
    return [sentence for sentence in sentences if sentence]


def _best_rows(rows: Sequence[SeedGroup]) -> dict[str, SeedGroup]:
    """Return label → the best row of each model; the label has the settings if the model has other rows."""
    known = [row for row in rows if row.learned.comparable and not row.first.oracle and _has_interval(row, _SINGLE)]
    models = [row.first.model for row in known]
    best = [row for place, row in enumerate(known) if row.first.model not in models[:place]]
    return {row.label if models.count(row.first.model) > 1 else row.first.model: row for row in best[:MOST_SYSTEMS]}


def _has_interval(row: SeedGroup, name: str) -> bool:
    return name in row.numbers and not math.isnan(row.numbers[name].low)


def _share_of_places(row: SeedGroup, tenths: Sequence[str], scores: ScoresOfRuns) -> Estimate | None:
    """Return the share of right facts of some tenths of the source, the mean of those an example has.

    None without per-example scores.
    """
    tables = {run.run_id: scores[run.run_id] for run in row.runs if run.run_id in scores}
    shares = {run: table.reindex(columns=list(tenths)).mean(axis=1) for run, table in tables.items()}
    means = {run: table.assign(**{_SINGLE: shares[run]}) for run, table in tables.items()}
    return estimate_share(row.runs, _SINGLE, means)


def _by_system(systems: Mapping[str, SeedGroup], scores: ScoresOfRuns) -> str:
    """Describe which systems state single facts right, the best first."""
    found = sorted(((row.numbers[_SINGLE], name) for name, row in systems.items()), key=lambda one: -one[0].mean)
    if not found:
        return ""
    stated = ", ".join(f"{name} {_percent(number)}" for number, name in found)
    chance = next((row.numbers[CHANCE].mean for row in systems.values() if CHANCE in row.numbers), None)
    guesses = "" if chance is None else f" (guesses: right in {chance:.0f} %)"
    text = f"Single facts (in one place), stated right{guesses}: {stated}."
    if len(found) == 1:
        return text
    names = [name for _, name in found]
    equal = [
        f"{one} and {other}" for one, other in combinations(names, 2) if _alike(systems[one], systems[other], scores)
    ]
    return f"{text} {f'Not distinguished: {_listed(equal)}' if equal else 'All are distinguished'}."


def _describe_contrasts(topic: str, found: Sequence[_Contrast]) -> str:
    """Describe the systems that state more facts right in one of two places; empty without systems."""
    if not found:
        return ""
    stated = [f"{one.system} {_percent(one.one)} against {_percent(one.other)}" for one in found if one.differs]
    equal = _enumerated([one.system for one in found if not one.differs])
    texts = [_listed(stated)] if stated else []
    texts += [f"no difference is found for {equal}"] if equal else []
    return f"{topic}: {'; '.join(texts)}."


def _alike(one: SeedGroup, other: SeedGroup, scores: ScoresOfRuns) -> bool:
    """Return True if two systems are not distinguished in single facts."""
    paired = difference(one, other, _SINGLE, scores, resamples=1_000)
    if paired is None:
        return _overlap(one.numbers[_SINGLE], other.numbers[_SINGLE])
    return not (paired.low > 0 or paired.high < 0)


def _overlap(one: Estimate, other: Estimate) -> bool:
    return one.low <= other.high and other.low <= one.high


def _percent(number: Estimate) -> str:
    return f"{number.mean:.0f} % ({number.low:.0f} to {number.high:.0f})"


def _listed(texts: Sequence[str]) -> str:
    more = [f"{len(texts) - _MOST_NAMED} more"] if len(texts) > _MOST_NAMED else []
    return "; ".join([*texts[:_MOST_NAMED], *more])


def _enumerated(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
