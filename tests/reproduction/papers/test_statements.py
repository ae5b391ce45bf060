"""Whether a verdict rests on a statement that was made before its runs."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.paper_tables import toy_paper_table
from support.run_records import record

from longsumbench_reproduction.papers.paper_tables import PaperClaim, Statement
from longsumbench_reproduction.papers.statements import (
    Fixed,
    describe_statement,
    find_problems,
    start_time,
)

RUN = record("ea", 30, seed=1)
TABLE: dict[str, Any] = json.loads("""
{"kind": "scores", "title": "Toys", "scales": {"probe": "seed=1,2,3"}, "rows": {"a": {"run": "model=ea"}},
 "claims": [{"says": "a is better", "orders": ["a > b"], "on": "rouge1"}]}
""")
STATED = Statement(at="2026-11-29T06:00:00+00:00", commit="0123456789")


def fixed(minutes: float, table: dict[str, Any] | None = None) -> Fixed:
    """Return a commit made so many minutes before the run began."""
    return Fixed(start_time(RUN) - timedelta(minutes=minutes), table or TABLE)


@pytest.mark.parametrize(
    ("statement", "commit", "problem"),
    [
        (STATED, fixed(1), ""),
        (STATED, fixed(-1), f"its run {RUN.run_id} is older than its statement"),
        (STATED, None, "its commit 0123456789 is unknown"),
        (
            STATED,
            fixed(1, {**TABLE, "scales": {"probe": "seed=4,5,6"}}),
            "commit 01234567 states something else",
        ),
        (
            STATED,
            fixed(1, {**TABLE, "rows": {"a": {"run": "model=ca"}}}),
            "commit 01234567 states something else",
        ),
        (STATED, fixed(1, {**TABLE, "title": "Other", "notes": ["More."]}), ""),
        (None, None, "it has no statement"),
        (Statement(), None, "its statement has neither a time nor a note"),
        (Statement(note="Seen before."), None, ""),
        (Statement(note="Some seen.", at=STATED.at, commit="0123456789"), fixed(-1), ""),
        (
            Statement(at=STATED.at, commit="0123456789", looks=2),
            fixed(1),
            "it was looked at more than once, and has no note",
        ),
    ],
)
def test_what_is_refused(statement: Statement | None, commit: Fixed | None, problem: str) -> None:
    """Runs before the statement, another content at the commit, an unknown commit; not what has a note."""
    assert find_problems(statement, [RUN], TABLE, commit) == [problem] * bool(problem)


def test_a_claim_changed_after_the_commit_is_another_statement() -> None:
    """Measures and margins count; what the paper says, and that a claim was withdrawn, may change."""
    (claim,) = TABLE["claims"]
    changes = {
        '{"on": "rouge2"}': True,
        '{"margin": 1.0}': True,
        '{"says": "b"}': False,
        '{"withdrawn": "late"}': False,
    }
    for change, is_other in changes.items():
        table = {**TABLE, "claims": [{**claim, **json.loads(change)}]}
        assert bool(find_problems(STATED, [RUN], table, fixed(1))) == is_other


def test_a_run_that_was_going_on_is_older() -> None:
    """What counts is when a run began, not when it ended."""
    ended = datetime.fromisoformat(RUN.finished)
    assert ended - start_time(RUN) == timedelta(seconds=RUN.costs.timings.total)


def test_the_words_of_a_page() -> None:
    """A test that was stated before its runs, one that was chosen after looking, and one of both."""
    assert describe_statement(STATED) == "stated on 2026-11-29, run after it"
    assert describe_statement(Statement(note="Seen.")) == "chosen after looking"
    assert describe_statement(Statement(note="Some seen.", at=STATED.at)) == "stated on 2026-11-29"
    assert describe_statement(None) == "not stated"
    assert toy_paper_table().claims_at("probe") == toy_paper_table().claims
    assert not PaperClaim(stated={"probe": STATED}).stated.get("paper")
