"""The screen of the first command: each sentence for numbers for which it says one thing, and another."""

import re

import pytest
from support.run_records import TRAINED, judged, measured, record

from longsumbench.leaderboards.comparability import PLANTED
from longsumbench.leaderboards.seed_groups import NOT_LEARNED, Learned, SeedGroup, average_seeds
from longsumbench.leaderboards.significance import (
    DISTINGUISHED,
    SINGLE_SEED,
    UNDISTINGUISHED,
    AgainstBest,
    ComparableRows,
)
from longsumbench.metrics.output_facts import OutputFacts
from longsumbench.runs.record import RunRecord
from longsumbench.views import first_screen

PAPERS = (("ranker", 39.5), ("ea", 38.9), ("lead", 30.9))


def row(run: RunRecord, learned: Learned | None = None) -> SeedGroup:
    """A row of one run."""
    return average_seeds(SeedGroup((run,), learned=learned or Learned()), {})


def papers(*outcomes: str) -> ComparableRows:
    """Rows of three systems, of which the first is the best; its tests against the others have these outcomes."""
    rows = tuple(row(record(model, f)) for model, f in PAPERS)
    tests = {}
    for entry, outcome in zip(rows[1:], outcomes, strict=True):
        tests[entry.key, "rougeLsum"] = judged(outcome)
    return ComparableRows(rows, AgainstBest(tests))


BY = "1.0 points of R-Lsum (interval -0.5 to 2.0)"
NOTHING = f"Nothing is shown: ranker has the highest score, {BY} from lead, but"


@pytest.mark.parametrize(
    ("of_ea", "of_lead", "verdict"),
    [
        (
            DISTINGUISHED,
            DISTINGUISHED,
            f"ranker is ahead of ea by {BY}, and of lead by at least as much.",
        ),
        (
            UNDISTINGUISHED,
            DISTINGUISHED,
            f"ranker is ahead of lead by {BY}; between it and ea no difference is shown.",
        ),
        (UNDISTINGUISHED, UNDISTINGUISHED, f"{NOTHING} that may be chance."),
        (
            SINGLE_SEED,
            SINGLE_SEED,
            f"{NOTHING} one of the two was trained once, and another training may give another score.",
        ),
    ],
)
def test_the_verdict_is_that_of_the_tests(of_ea: str, of_lead: str, verdict: str) -> None:
    """Who is ahead, with the nearest one behind; who is not shown to be behind; or that nothing is shown."""
    assert first_screen.describe_verdict(papers(of_ea, of_lead)) == verdict


def test_a_verdict_needs_two_systems_and_a_test() -> None:
    """Oracles are no rivals; scores without a test, such as equal ones, decide nothing."""
    block = ComparableRows((row(record("lead", 30)), row(record("oracle", 50, oracle=True))))
    no_rival = "Nothing is shown: there are no two systems to compare."
    assert first_screen.describe_verdict(block) == no_rival
    equal = ComparableRows((row(record("lead", 30)), row(record("random", 30))))
    assert first_screen.describe_verdict(equal).endswith("have equal scores or no test.")


def test_what_is_not_compared_has_its_reason() -> None:
    """Oracles and systems that did not learn are named; without them there is no such line."""
    assert first_screen.describe_reservations(papers(DISTINGUISHED, DISTINGUISHED)) == ""
    unlearned = row(record("ea", 20, fit=TRAINED), Learned(NOT_LEARNED, "gains nothing"))
    rows = (unlearned, row(record("oracle", 50, oracle=True)))
    assert first_screen.describe_reservations(ComparableRows(rows)) == (
        "Not compared, because they know what no summarizer may know: oracle. Not ranked: ea (not learned: gains nothing)."
    )


@pytest.mark.parametrize("columns", [60, 80, 130])
def test_the_table_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each system has its name, what it writes, its score and its words, in a narrow terminal, too."""
    monkeypatch.setenv("COLUMNS", str(columns))
    facts = OutputFacts(20, 20, 20, 0, words=129.0)
    trained = record("ea", 39, fit=TRAINED, outputs=facts)
    prompted = record(
        "prompt",
        41,
        config={"model": {"reading": "select"}},
        system={"checkpoint": "/models/tiny.gguf"},
    )
    text = first_screen.describe_papers(ComparableRows((row(prompted), row(trained))))
    assert max(map(len, text.splitlines())) <= columns
    words = " ".join(text.split())
    assert "39.0 ±0.8 129" in words
    if columns == 130:
        assert "prompt:select" in words
        assert "written by tiny.gguf, which reads selected passages" in words
        assert "trained here on 60 other papers" in words


def test_any_reading_of_a_language_model_has_a_name() -> None:
    """Also one that the comparison does not choose itself."""
    stages = {"model": {"reading": "stages"}}
    of_model = row(record("prompt", 41, config=stages, system={"checkpoint": "tiny.gguf"}))
    text = first_screen.describe_summary(of_model)
    assert text == "written by tiny.gguf, with model.reading=stages"


def test_texts_stand_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two columns in a terminal of 43: long texts are cut, an odd one stands alone, control characters are shown."""
    monkeypatch.setenv("COLUMNS", "43")
    text = first_screen.set_side_by_side(
        [
            ("ABSTRACT", "We parse trees."),
            ("LEAD: the first words", "word " * 60),
            ("EA", "A\x1b[2J tree."),
        ]
    )
    lines = text.splitlines()
    assert lines[0] == "ABSTRACT             │ LEAD: the first …"
    assert lines[1] == "We parse trees.      │ word word word word"
    assert lines[7].endswith("│ word word word …")
    assert lines[9:] == ["EA                   │", "A\\x1b[2J tree.       │"]


def reports(learned: Learned | None = None, **shares: float) -> SeedGroup:
    """A row with facts stated right, by where the report has them."""
    means = {f"{PLANTED}_chance": 4.2, PLANTED: 80.0}
    means |= {f"{PLANTED}_{kind}": share for kind, share in shares.items()}
    return row(record("seal", 80, measures=measured(means), fit=TRAINED, seed=1), learned)


@pytest.mark.parametrize(
    ("share", "amount"),
    [
        (90, "nearly all facts"),
        (89.4, "most facts"),
        (59, "about half of the facts"),
        (39, "some facts"),
        (9.4, "hardly any fact"),
    ],
)
def test_amounts_are_words_for_numbers(share: float, amount: str) -> None:
    """A number has the word of the highest bound that it reaches, as it is printed."""
    sentence = first_screen.describe_facts(reports(single=share, relayed=70, silent=50))
    assert sentence == (
        f"seal states right: {amount} in one place; most facts in two places with the link said; about half of the facts in"
        " two places with the link unsaid."
    )


def test_facts_of_a_system_that_did_not_learn_say_nothing() -> None:
    """Whatever its numbers are."""
    sentence = first_screen.describe_facts(reports(Learned(NOT_LEARNED, "3 %"), single=90))
    assert sentence == (
        "seal is not shown to have learned in this short training: its numbers say nothing about its way of reading."
    )


@pytest.mark.parametrize("columns", [60, 1000])
def test_reports_are_explained_with_their_numbers(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many reports, what a guess gives, the facts by place, and that each system was trained once, if it was."""
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = first_screen.describe_fact_rows([reports(single=90, relayed=70, silent=50)])
    assert max(map(len, lines.splitlines())) <= columns
    text = " ".join(lines.split())
    assert text.startswith("20 made-up reports of")
    assert "A guess among all firms is right in 4 of 100; for facts in two places" in text
    assert "in 50. Each was trained once" in text
    assert re.search(r"90 ±\d 70 ±\d 50 ±\d", text)
    again = row(record("seal", 80, measures=measured({PLANTED: 80.0})))
    assert "trained once" not in first_screen.describe_fact_rows([again])


def test_a_paper_that_everybody_may_use_is_shown() -> None:
    """Ids that begin with a year are of papers since 2020; otherwise the first id."""
    assert (
        first_screen.choose_paper(["P16-1", "2021.acl-long.3", "2020.acl-main.9"])
        == "2020.acl-main.9"
    )
    assert first_screen.choose_paper(["P16-1", "D07-1"]) == "D07-1"
