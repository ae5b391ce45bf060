"""The sentences on who is ahead: inputs for which each is true, next to inputs for which it would be false."""

import re
from dataclasses import replace

import pytest
from support.run_records import TRAINED, judged, record

from longsumbench.leaderboards.seed_groups import (
    NOT_LEARNED,
    NOT_SHOWN,
    Learned,
    ResultRow,
    average_seeds,
)
from longsumbench.leaderboards.significance import CorrectedDifference, LeaderboardBlock, Outcome
from longsumbench.views.outcomes import (
    describe_differences,
    describe_leader,
    describe_pair,
    describe_place,
    describe_undecided,
    describe_unlearned,
    shorten_list,
)

NONE = Learned()
FAILED = Learned(NOT_LEARNED, "gains nothing")
BY = "{} points of R-Lsum above {}{}"
INTERVAL = " (95 % interval -0.50 to 2.00)"
FAR = f"Nothing is shown: ranker is {BY.format('1.00', 'lead', INTERVAL)}, but "
NO_RIVAL = "Nothing is shown: there are no two ranked systems to compare."
AHEAD = f"ranker is above {{}} by 1.00 points of R-Lsum{INTERVAL}"


def block(
    *outcomes: str | None, learned: Learned = NONE, lead: float = 30.9, **changes: object
) -> LeaderboardBlock:
    """Rows of ranker, ea and lead; tests of the last two against the first with these outcomes."""
    runs = [record("ranker", 39.5), record("ea", 38.9, **changes), record("lead", lead)]
    rows = [average_seeds(ResultRow((run,), learned=NONE), {}) for run in runs]
    rows[1] = average_seeds(ResultRow((runs[1],), learned=learned), {})
    tests = {}
    for row, outcome in zip(rows[1:], outcomes, strict=False):
        if outcome is not None:
            tests[row.key, "rougeLsum"] = judged(Outcome[outcome])
    return LeaderboardBlock(tuple(rows), tests)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (block("AHEAD", "AHEAD"), "{ea}, and above lead by at least as much."),
        (
            block("NOT_SHOWN", "AHEAD"),
            "{lead}; between it and ea no difference is shown.",
        ),
        (
            block("SINGLE_SEED", "AHEAD", fit=TRAINED, seed=1),
            "{lead}; between it and ea no difference is shown.",
        ),
        (block(None, "AHEAD", learned=FAILED), "{lead}."),
        (block("NOT_SHOWN", "NOT_SHOWN"), f"{FAR}that may be chance."),
        (
            block("SINGLE_SEED", "SINGLE_SEED"),
            f"{FAR}one of the two was trained once, and another training may give another score.",
        ),
        (
            block("FEW_EXAMPLES", "FEW_EXAMPLES"),
            f"{FAR}there are too few examples for a test.",
        ),
        (
            block(),
            f"Nothing is shown: ranker is {BY.format('8.60', 'lead', '')}, but there is no test, because a scores.csv is"
            " missing.",
        ),
        (
            block("NOT_SHOWN", lead=39.5),
            f"Nothing is shown: ranker is {BY.format('0.00', 'lead', '')}, but that may be chance.",
        ),
        (LeaderboardBlock(block().rows[:1]), NO_RIVAL),
        (LeaderboardBlock((block(oracle=True).rows[1], block().rows[2])), NO_RIVAL),
        (LeaderboardBlock(block(learned=FAILED).rows[:2]), NO_RIVAL),
    ],
)
def test_who_is_ahead(rows: LeaderboardBlock, sentence: str) -> None:
    """Only a test that tells two rows apart puts one above the other; the reason for any other outcome is named."""
    names = {name: AHEAD.format(name) for name in ("ea", "lead")}
    assert describe_leader(rows) == sentence.format(**names)


@pytest.mark.parametrize(
    ("mean", "outcome", "sentence"),
    [
        (
            2.0,
            Outcome.AHEAD,
            "a is above b by 2.00 words of density (97.5 % interval 1.00 to 3.00)",
        ),
        (
            -2.0,
            Outcome.AHEAD,
            "b is above a by 2.00 words of density (97.5 % interval 1.00 to 3.00)",
        ),
        (
            -2.0,
            Outcome.NOT_LEARNED,
            "Nothing is shown: b is 2.00 words of density above a (97.5 % interval 1.00 to 3.00), but one of the two did not"
            " learn to summarize",
        ),
    ],
)
def test_a_pair(mean: float, outcome: Outcome, sentence: str) -> None:
    """The sign of the difference decides who is named first, and the outcome alone whether it is above."""
    difference = CorrectedDifference(mean, mean - 1, mean + 1, outcome, confidence=97.5)
    assert describe_pair("a", "b", difference, "density", "words") == sentence


def test_one_system_and_several_others() -> None:
    """Only a shown difference is above or below; of others, the reason is named with the amount."""
    differences = {
        "a": CorrectedDifference(2.0, 1.0, 3.0, Outcome.AHEAD),
        "b": CorrectedDifference(-1.5, -2.0, -1.0, Outcome.AHEAD),
        "c": CorrectedDifference(9.0, -1.0, 19.0, Outcome.NOT_SHOWN),
        "d": CorrectedDifference(4.0, 3.0, 5.0, Outcome.AHEAD),
    }
    assert describe_differences("x", differences, "rougeLsum") == (
        "x, in points of R-Lsum: above a (+2.00), d (+4.00); below b (-1.50); not shown to differ: c (+9.00)"
    )


@pytest.mark.parametrize(
    ("rows", "index", "text"),
    [
        (
            block("NOT_SHOWN", "AHEAD"),
            0,
            "place 1 of 3, 1.00 above lead (shown to differ)",
        ),
        (
            block("NOT_SHOWN", "AHEAD"),
            1,
            "place 2 of 3, 1.00 below ranker (not shown to differ)",
        ),
        (block(), 2, "place 3 of 3, 8.60 below ranker (not tested: scores.csv is missing)"),
        (block(learned=FAILED), 1, "not learned"),
        (block(oracle=True), 1, "oracle"),
        (LeaderboardBlock(block().rows[:1]), 0, "place 1 of 1"),
    ],
)
def test_the_place_of_a_row(rows: LeaderboardBlock, index: int, text: str) -> None:
    """It has the difference from the best row, or of the best one from its rival, with its outcome."""
    assert describe_place(rows, rows.rows[index]) == text


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (block("NOT_SHOWN", "AHEAD"), ""),
        (
            block("FEW_EXAMPLES"),
            "Without a verdict: ea (too few examples for a test); lead (not tested: scores.csv is missing).",
        ),
        (
            block("SINGLE_SEED", "AHEAD", fit=TRAINED, seed=1),
            "Without a verdict: ea (one seed: another may differ).",
        ),
        (LeaderboardBlock(block(fit=TRAINED, seed=1).rows[1:2]), ""),
    ],
)
def test_rows_without_a_verdict(rows: LeaderboardBlock, sentence: str) -> None:
    """Rows of one seed are named, and rows without a test; a row that is alone needs none."""
    assert describe_undecided(rows) == sentence


@pytest.mark.parametrize(
    ("learned", "sentence"),
    [
        (NONE, ""),
        (FAILED, "Not ranked: ea (not learned: gains nothing)."),
        (
            Learned(NOT_SHOWN, "4 examples"),
            "Ranked, although it is not known whether outputs depend on their sources: ea (4 examples).",
        ),
    ],
)
def test_what_did_not_learn_has_its_reason(learned: Learned, sentence: str) -> None:
    """Rows without a place are named, and those that may have learned."""
    assert describe_unlearned(block(learned=learned).rows) == sentence


@pytest.mark.parametrize(
    ("outcomes", "best_set", "top"),
    [
        ("", "", ""),
        ("NOT_SHOWN AHEAD", "", "ranker ea"),
        ("AHEAD AHEAD", "", "ranker"),
        ("SINGLE_SEED AHEAD", "", ""),
        ("", "ranker lead", "ranker lead"),
    ],
)
def test_no_system_is_called_the_best_without_its_tests(
    outcomes: str, best_set: str, top: str
) -> None:
    """Of three rows, both others need a test that decides; a confidence set says it by itself."""
    rows = block(*outcomes.split())
    keys = {row.representative.key.model: row.key for row in rows.rows}
    members = tuple(keys[name] for name in best_set.split())
    assert replace(rows, best_set=members).top_rows() == {keys[name] for name in top.split()}


def test_names_with_commas_are_told_apart() -> None:
    """Names of rows that have commas are joined by semicolons, also after three of them; others by commas."""
    assert shorten_list(["ea", "seal", "ea"]) == "ea, seal"
    assert shorten_list(["prompt, ends", "prompt, select"]) == "prompt, ends; prompt, select"
    many = shorten_list(["lead", "prompt, ends", "seal", "trunc", "ca"])
    assert many.startswith("lead; prompt, ends; ")
    assert re.search(r" and \d more$", many)
