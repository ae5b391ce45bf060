"""When the test of a claim was stated, and whether its runs were made after that.

`stated` of `conf/paper` --describe_statement--> a few words on the page; --find_problems--> what `--check` refuses
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from longsumbench.runs.record import RunRecord
from longsumbench_reproduction.papers.paper_tables import PaperClaim, PaperTable, Statement

# What a statement fixes; titles, notes and reasons may change later
_FIXED = ("kind", "scales", "datasets", "rows", "part", "options")
_FIXED_OF_CLAIM = ("orders", "alike", "on", "datasets", "margin", "scales")


def find_statement(paper_table: PaperTable, claim: PaperClaim, scale: str) -> Statement | None:
    """Return the statement of a claim at a scale: its own, or that of its table; None if there is none."""
    return claim.stated.get(scale) or paper_table.stated.get(scale)


def describe_statement(statement: Statement | None) -> str:
    """Return "stated on 2026-11-29, run after it", or that the test was chosen after looking."""
    if statement is None:
        return "not stated"
    if statement.note:
        return "chosen after looking" if not statement.at else f"stated on {statement.at[:10]}"
    return f"stated on {statement.at[:10]}, run after it"


class Fixed(NamedTuple):
    """A commit that fixed a statement.

    Attributes:
        time: when it was made.
        content: the table at that commit, as in its YAML file.
    """

    time: datetime
    content: Mapping[str, Any]


def find_problems(
    statement: Statement | None,
    runs: Iterable[RunRecord],
    content: Mapping[str, Any],
    fixed: Fixed | None,
) -> list[str]:
    """Return why a verdict does not rest on a statement that was made before its runs; nothing if it does.

    Args:
        statement: of the claim.
        runs: those that are compared.
        content: the table as it is now.
        fixed: the commit that the statement names; None if it is unknown.
    """
    if statement is None:
        return ["it has no statement"]
    problems = []
    if statement.looks > 1 and not statement.note:
        problems.append("it was looked at more than once, and has no note")
    if not statement.at:
        return problems if statement.note else ["its statement has neither a time nor a note"]
    if fixed is None:
        return [*problems, f"its commit {statement.commit or '(none)'} is unknown"]
    if fix_content(fixed.content) != fix_content(content):
        problems.append(f"commit {statement.commit[:8]} states something else")
    # Runs that were there before need a note; the others are younger than the commit
    starts = {run.run_id: start_time(run) for run in runs}
    older = [name for name, start in starts.items() if start < fixed.time]
    if older and not statement.note:
        problems.append(f"its run {older[0]} is older than its statement")
    return problems


def start_time(run: RunRecord) -> datetime:
    """Return when a run began."""
    return datetime.fromisoformat(run.finished) - timedelta(seconds=run.costs.timings.total)


def fix_content(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a statement fixes of a table: texts, systems with settings and seeds, measures and margins."""
    claims = []
    for claim in content.get("claims", ()):
        claims.append({name: claim[name] for name in _FIXED_OF_CLAIM if name in claim})
    return {**{name: content[name] for name in _FIXED if name in content}, "claims": claims}
