"""The sentences on who is ahead: every screen, table and page has them from here.

`leaderboards.significance` decides; a block has `describe_leader`, a pair of systems `describe_pair`, one system and
several others `describe_differences`, a row `describe_place`. What is not ranked, or not decided, is named by
`describe_unlearned` and `describe_undecided`.
"""

import math
from collections.abc import Collection, Mapping, Sequence

from longsumbench.formatting import describe_interval
from longsumbench.leaderboards.comparability import find_heading
from longsumbench.leaderboards.seed_groups import NEVER_RANKED, NOT_RANKED, ResultRow
from longsumbench.leaderboards.significance import CorrectedDifference, LeaderboardBlock, Outcome

_MOST_NAMES = 4  # in a list
_SHORT = {
    Outcome.AHEAD: "shown to differ",
    Outcome.NOT_SHOWN: "not shown to differ",
    Outcome.FEW_EXAMPLES: "too few examples for a test",
    Outcome.SINGLE_SEED: "one seed: another may differ",
    Outcome.NOT_LEARNED: "not shown to have learned",
    Outcome.NOT_COMPARABLE: "not tested: scores.csv is missing",
}
_REASONS = {  # why nothing is shown
    Outcome.NOT_SHOWN: "that may be chance",
    Outcome.FEW_EXAMPLES: "there are too few examples for a test",
    Outcome.SINGLE_SEED: "one of the two was trained once, and another training may give another score",
    Outcome.NOT_LEARNED: "one of the two did not learn to summarize",
    Outcome.NOT_COMPARABLE: "there is no test, because a scores.csv is missing",
}


def shorten_list(names: Sequence[str], between: str = ", ") -> str:
    """Join different names; after the first ones only their number follows."""
    different = list(dict.fromkeys(names))
    more = f" and {len(different) - _MOST_NAMES} more" if different[_MOST_NAMES:] else ""
    return join_names(different[:_MOST_NAMES], between) + more


def join_names(names: Sequence[str], between: str = ", ") -> str:
    """Join names; by semicolons if one has a comma, as the names of rows do."""
    return ("; " if any("," in name for name in names) else between).join(names)


def describe_pair(
    first: str, second: str, difference: CorrectedDifference, measure: str, unit: str = "points"
) -> str:
    """Say whether one of two systems is ahead, without a period; `difference` is the first minus the second."""
    if difference.mean < 0:
        first, second, difference = second, first, difference.reversed()
    interval = describe_interval(difference.low, difference.high, difference.confidence, ".2f")
    amount = f"{difference.mean:z.2f} {unit} of {find_heading(measure)}"
    if difference.outcome == Outcome.AHEAD:
        return f"{first} is above {second} by {amount}{interval}"
    reason = _REASONS[difference.outcome]
    return f"Nothing is shown: {first} is {amount} above {second}{interval}, but {reason}"


def describe_differences(
    first: str, differences: Mapping[str, CorrectedDifference], measure: str
) -> str:
    """Say which systems one is above and below, without a period; `differences` are the first minus each, in points."""
    groups: dict[str, list[str]] = {}
    for name, difference in differences.items():
        relation = f"{_SHORT[difference.outcome]}:"
        if difference.outcome == Outcome.AHEAD:
            relation = "above" if difference.mean > 0 else "below"
        groups.setdefault(relation, []).append(f"{name} ({difference.mean:+.2f})")
    parts = [f"{relation} {join_names(names)}" for relation, names in groups.items()]
    return f"{first}, in points of {find_heading(measure)}: {'; '.join(parts)}"


def describe_leader(block: LeaderboardBlock) -> str:
    """Say in one sentence which row is ahead of which others, or why nothing is shown."""
    decided = block.decide()
    if decided is None:
        return "Nothing is shown: there are no two ranked systems to compare."
    evaluation = decided.best.representative.evaluation
    unit = evaluation.units.get(block.ranked_by, "points")
    labels = decided.best.label, decided.rival.label
    text = describe_pair(*labels, decided.difference, block.ranked_by, unit)
    if decided.below[1:]:
        others = [row.label for row in decided.below[1:]]
        text += f", and above {shorten_list(others)} by at least as much"
    if decided.below and decided.undecided:
        others = [row.label for row in decided.undecided]
        text += f"; between it and {shorten_list(others)} no difference is shown"
    return f"{text}."


def describe_needed(block: LeaderboardBlock) -> str:
    """Say how many texts would tell the best row from the farthest one, if nothing is shown; empty if that is unknown."""
    decided = block.decide()
    if decided is None or decided.difference.outcome not in (
        Outcome.NOT_SHOWN,
        Outcome.FEW_EXAMPLES,
    ):
        return ""
    share = decided.difference.detectable / abs(decided.difference.mean or math.nan)
    if not math.isfinite(share):
        return ""
    evaluation = decided.best.representative.evaluation
    number = math.ceil((evaluation.groups or evaluation.n) * share**2)
    return f"About {number:,} texts would tell these two apart, if they differ as much."


def describe_place(block: LeaderboardBlock, row: ResultRow) -> str:
    """Return the short form for a row: "place 2 of 7, 1.20 below ranker (not shown to differ)"."""
    if row not in block.ranked:
        return "oracle" if row.representative.oracle else row.learned.word
    place = f"place {block.ranked.index(row) + 1} of {len(block.ranked)}"
    decided = block.decide()
    if decided is None:
        return place
    if row is decided.best:
        difference, relation = decided.difference, f"above {decided.rival.label}"
    else:
        difference, relation = block.compare_with_best(row), f"below {decided.best.label}"
    return f"{place}, {abs(difference.mean):.2f} {relation} ({_SHORT[difference.outcome]})"


def describe_single_seeds(labels: Collection[str]) -> str:
    """Name the lines of a picture that were trained once; empty if there are none."""
    return f"One seed, another may differ: {', '.join(labels)}." if labels else ""


def describe_undecided(block: LeaderboardBlock) -> str:
    """Name the rows about which no test can decide, with the reason."""
    reasons: dict[str, list[str]] = {}
    for row in block.ranked if block.ranked[1:] else ():
        outcome = block.compare_with_best(row).outcome
        if row.one_seed:
            reasons.setdefault(_SHORT[Outcome.SINGLE_SEED], []).append(row.label)
        elif outcome in (Outcome.FEW_EXAMPLES, Outcome.NOT_COMPARABLE):
            reasons.setdefault(_SHORT[outcome], []).append(row.label)
    return _list_by_reason("Without a verdict", reasons)


def describe_unlearned(rows: Sequence[ResultRow]) -> str:
    """Name the rows that are not ranked because they did not learn, and those of which that is not known or shown."""
    unranked: dict[str, list[str]] = {}
    doubtful: dict[str, list[str]] = {}
    for row in rows:
        learned = row.learned
        if row.ranked and not learned.comparable:
            doubtful.setdefault(learned.reason, []).append(row.label)
        elif learned.word in NEVER_RANKED:
            why = "" if learned.word == NOT_RANKED else f"{learned.word}: "
            unranked.setdefault(f"{why}{learned.reason}", []).append(row.label)
    if not rows[0].has_place:
        unranked["no system scores above 0"] = ["all rows"]
    start = "Ranked, although it is not known whether outputs depend on their sources"
    sentences = _list_by_reason("Not ranked", unranked), _list_by_reason(start, doubtful)
    return " ".join(filter(None, sentences))


def _list_by_reason(start: str, rows: Mapping[str, Sequence[str]]) -> str:
    groups = [f"{shorten_list(names)} ({reason})" for reason, names in rows.items()]
    return f"{start}: {shorten_list(groups, '; ')}." if groups else ""
