"""Verdicts on claims about rows: the gate, the test on the paper's measure, the margin of alike rows."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.paper_jobs import finished_run, paper_job
from support.run_records import TRAINED

from longsumbench.core import FitReport
from longsumbench.leaderboards.seed_groups import (
    LEARNED,
    NOT_LEARNED,
    STILL_LEARNING,
    UNKNOWN,
    Learned,
    ScoresOfRuns,
    SeedGroup,
)
from longsumbench.metrics.aggregate import write_scores
from longsumbench.papers.claims import long_table
from longsumbench.papers.page import (
    ALIKE_ROWS,
    NOT_TESTED,
    ONE_SEED,
    REPRODUCED,
    REVERSED,
    TWO_SEEDS,
    UNDECIDED,
    UNDECIDED_LEARNING,
    UNLIKE_ROWS,
    Job,
    Verdict,
)
from longsumbench.papers.paper_tables import PaperClaim, PaperRow, PaperTable
from longsumbench.papers.printed import decide_claims, read_row_means
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

EXAMPLES = 40
DRAW = np.random.default_rng(1)
HARD = DRAW.uniform(0.3, 0.5, EXAMPLES)  # scores differ more between examples than between systems


def values(better: float) -> list[float]:
    return [float(value) for value in HARD + better + DRAW.normal(0, 0.02, EXAMPLES)]


def runs_of(
    results: Results, model: str, better: float = 0.0, seeds: Sequence[int] = (1, 2, 3)
) -> list[RunRecord]:
    """Runs of a system whose scores are higher by a shift."""
    return [finished_run(results, model, values(better), seed) for seed in seeds]


def table(*claims: str, **changes: Any) -> PaperTable:
    """A table with the rows a, b and c."""
    rows = {label: PaperRow() for label in "abc"}
    orders = tuple(PaperClaim(orders=tuple(claim.split("; "))) for claim in claims)
    settings = {"datasets": {"arXiv": {}}, "rows": rows, "claims": orders, **changes}
    return PaperTable("scores", "", "probe", {}, **settings)


def decide(job: Job) -> tuple[Verdict, ...]:
    return decide_claims(job, read_row_means(job))


def judge(monkeypatch: pytest.MonkeyPatch, **words: str) -> None:
    """Let the gate say these words about models; all others learned."""

    def judged(rows: Sequence[SeedGroup], scores: ScoresOfRuns) -> dict[str, Learned]:
        found = {row.key: words.get(row.first.key.model, LEARNED) for row in rows}
        return {
            key: Learned(word, "" if word == LEARNED else f"it is {word}", 40.0, 8.0)
            for key, word in found.items()
        }

    monkeypatch.setattr("longsumbench.papers.printed.judge_learning", judged)


def test_the_sign_of_a_significant_difference_decides(tmp_path: Path) -> None:
    """A clear ordering is reproduced or reversed; one that chance explains is undecided."""
    results = Results(tmp_path)
    runs = {
        label: runs_of(results, model, shift)
        for label, model, shift in (("a", "ea", 0.1), ("b", "ca", 0.0))
    }
    runs["c"] = runs_of(results, "trunc", 0.0)
    verdicts = decide(paper_job(table("a > b", "b > a", "b > c"), tmp_path, runs))
    assert [one.outcome for one in verdicts] == [REPRODUCED, REVERSED, UNDECIDED]
    first, second, _ = verdicts
    assert first.difference is not None
    assert first.difference == pytest.approx(10, abs=1)
    assert second.difference == pytest.approx(-first.difference)
    assert first.low is not None
    assert first.high is not None
    assert first.low < first.difference < first.high
    assert first.reason == "40 examples, 3 seeds"


def test_planted_facts_are_shown_without_a_test(tmp_path: Path) -> None:
    """A claim has one test, on the paper's measure; the difference in facts is a number next to it."""
    results = Results(tmp_path)
    facts = {"ea": [1.0] * EXAMPLES, "ca": [0.0] * (EXAMPLES - 1) + [1.0]}
    runs = {
        label: [
            finished_run(results, model, values(0.0), seed, facts=facts[model])
            for seed in (1, 2, 3)
        ]
        for label, model in (("a", "ea"), ("b", "ca"))
    }
    (verdict,) = decide(paper_job(table("a > b"), tmp_path, runs))
    assert (verdict.measure, verdict.outcome) == ("rouge1", UNDECIDED)
    assert verdict.facts == pytest.approx(100 * (EXAMPLES - 1) / EXAMPLES)
    on_facts = table(claims=(PaperClaim(orders=("a > b",), on="fact_recall"),))
    (verdict,) = decide(paper_job(on_facts, tmp_path, runs))
    assert (verdict.measure, verdict.facts) == ("fact_recall", None)


@pytest.mark.parametrize(
    ("words", "outcome", "reason"),
    [
        (
            {"ea": UNKNOWN, "ca": NOT_LEARNED},
            NOT_TESTED,
            "40 examples, 3 seeds; a: it is not known",
        ),
        (
            {"ea": STILL_LEARNING, "ca": NOT_LEARNED},
            NOT_LEARNED,
            "40 examples, 3 seeds; b: it is not learned",
        ),
        (
            {"ea": STILL_LEARNING},
            UNDECIDED_LEARNING,
            "40 examples, 3 seeds; a: it is still learning",
        ),
        (
            {"ea": NOT_LEARNED, "ca": NOT_LEARNED},
            NOT_LEARNED,
            "; a: it is not learned; b: it is not learned",
        ),
        ({}, REPRODUCED, "40 examples, 3 seeds"),
        (
            {"ea": ""},
            REPRODUCED,
            "40 examples, 3 seeds",
        ),  # a system that learns nothing, such as Lead
    ],
)
def test_nothing_is_concluded_from_systems_that_did_not_learn(
    words: dict[str, str],
    outcome: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worst word of the rows decides, whatever their difference is; the verdict names the rows and why."""
    judge(monkeypatch, **words)
    runs = {
        label: runs_of(Results(tmp_path), model, 0.1 * (label == "a"))
        for label, model in (("a", "ea"), ("b", "ca"))
    }
    (verdict,) = decide(paper_job(table("a > b"), tmp_path, runs))
    assert verdict.outcome == outcome
    assert verdict.reason.endswith(reason)
    assert (verdict.p is None) == (outcome != REPRODUCED)
    assert verdict.difference == pytest.approx(10, abs=1)


def test_the_gate_reads_the_outputs(tmp_path: Path) -> None:
    """Without a stub: a system that scores as other examples' references do, where Random gains, did not learn."""
    results, runs = Results(tmp_path), dict[str, list[RunRecord]]()
    for label, model, gain in (("a", "ea", 0.2), ("b", "ca", 0.0), ("", "random", 0.1)):
        runs[label] = []
        for seed in (1, 2, 3):
            facts = {"fit": TRAINED if label else FitReport(), "floor": {"rouge2": 40 - 100 * gain}}
            run = finished_run(results, model, values(0.0), seed, ranked_by="rougeLsum", **facts)
            run.write(results.run_folder(run))
            path = results.run_folder(run) / "scores.csv"
            lines = path.read_text(encoding="utf-8").splitlines()
            column = lines[0].split(",").index("rougeLsum_f")
            floors = [
                float(line.split(",")[column]) - gain - 0.01 * (-1) ** place
                for place, line in enumerate(lines[1:])
            ]
            added = [f"{line},{floor}" for line, floor in zip(lines[1:], floors, strict=True)]
            path.write_text(
                "\n".join([f"{lines[0]},rougeLsum_floor", *added, ""]), encoding="utf-8"
            )
            runs[label].append(run)
    del runs[""]  # it is no row of the table
    (verdict,) = decide(paper_job(table("a > b"), tmp_path, runs))
    assert (verdict.outcome, verdict.learned) == (NOT_LEARNED, NOT_LEARNED)
    assert re.search(r"b: gains -?\d.\d in R-2, Random \d+.\d in 3 of 3 seeds", verdict.reason)


def test_too_few_seeds_decide_nothing(tmp_path: Path) -> None:
    """One or two common seeds are named; systems without seeds are tested over examples, and need none."""
    results = Results(tmp_path)
    lead, lexrank = (
        [finished_run(results, model, values(shift), None)]
        for model, shift in (("lead", 0.1), ("lexrank", 0))
    )
    rows: dict[str, dict[str, Sequence[RunRecord | None]]] = {
        ONE_SEED: {"a": runs_of(results, "ea", 0.1, [1]), "b": runs_of(results, "ca", 0.0, [1])},
        TWO_SEEDS: {
            "a": runs_of(results, "pagesum", 0.1, [1, 2]),
            "b": runs_of(results, "seal", 0.0, [1, 2]),
        },
        NOT_TESTED: {
            "a": runs_of(results, "etads", 0.1, [1, 2]),
            "b": runs_of(results, "tdmca", 0.0, [3, 4]),
        },
        REPRODUCED: {"a": lead, "b": lexrank},
    }
    found = {
        outcome: decide(paper_job(table("a > b"), tmp_path, runs))[0]
        for outcome, runs in rows.items()
    }
    assert {outcome: verdict.outcome for outcome, verdict in found.items()} == {
        outcome: outcome for outcome in rows
    }
    assert found[NOT_TESTED].reason == "40 examples, different seeds"
    assert found[REPRODUCED].reason == "40 examples"
    assert (found[ONE_SEED].p, found[ONE_SEED].low) == (None, None)
    against_lead = decide(
        paper_job(table("a > b"), tmp_path, {"a": lead, "b": rows[ONE_SEED]["b"]})
    )
    assert against_lead[0].outcome == ONE_SEED


ALIKE = PaperClaim(alike=("a", "b"), says="they are similar")


def runs_in_order(results: Results, **means: float) -> dict[str, list[RunRecord]]:
    """Runs of the rows a, b and c, whose scores differ from each other by these shifts and hardly by chance."""
    noise, models = (
        np.random.default_rng(2).normal(0, 0.002, (3, 3, EXAMPLES)),
        {"a": "ca", "b": "ea", "c": "trunc"},
    )
    return {
        label: [
            finished_run(
                results,
                models[label],
                (HARD + shift + noise["abc".index(label), seed]).tolist(),
                seed + 1,
            )
            for seed in range(3)
        ]
        for label, shift in means.items()
    }


@pytest.mark.parametrize(
    ("shift", "outcome"),
    [(0.0, ALIKE_ROWS), (0.02, ALIKE_ROWS), (0.1, UNLIKE_ROWS), (-0.1, UNLIKE_ROWS)],
)
def test_the_margin_is_a_share_of_the_spread_of_the_table(
    shift: float, outcome: str, tmp_path: Path
) -> None:
    """The third row is 20 points below the second, so that two rows are alike within 5 points or a little more."""
    runs = runs_in_order(Results(tmp_path), a=shift, b=0.0, c=-0.2)
    (verdict,) = decide(paper_job(table(claims=(ALIKE,)), tmp_path, runs))
    assert (verdict.claim, verdict.outcome, verdict.says) == ("a ~ b", outcome, "they are similar")
    margin = verdict.reason.split("; ")[1]
    assert float(margin.removeprefix("margin ")) == pytest.approx(
        25 * (0.2 + max(shift, 0)), abs=0.1 + 25 * max(-shift, 0)
    )
    assert verdict.reason.endswith(
        "the margin is a quarter of the largest difference between rows that learned"
    )


def test_only_rows_that_learned_give_a_margin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row far below that did not learn does not widen the margin: without it no other row is left."""
    judge(monkeypatch, trunc=NOT_LEARNED)
    runs = runs_in_order(Results(tmp_path), a=0.0, b=0.0, c=-0.2)
    (verdict,) = decide(paper_job(table(claims=(ALIKE,)), tmp_path, runs))
    assert (verdict.outcome, verdict.reason) == (
        NOT_TESTED,
        "40 examples, 3 seeds; no other rows differ, which gives no margin",
    )


def test_a_claim_about_all_rows_needs_a_stated_margin(tmp_path: Path) -> None:
    """Their own difference is no margin for them; a stated one can depend on the scale, and has a source."""
    runs = runs_in_order(Results(tmp_path), a=0.0, b=0.0)
    (verdict,) = decide(paper_job(table(claims=(ALIKE,)), tmp_path, runs))
    assert (verdict.outcome, verdict.reason.endswith("which gives no margin")) == (NOT_TESTED, True)
    stated = PaperClaim(
        alike=("a", "b"), margin={"paper": 0.1, "probe": 30.0}, margin_source="a quarter of Table 2"
    )
    (verdict,) = decide(paper_job(table(claims=(stated,)), tmp_path, runs))
    assert (verdict.outcome, verdict.reason) == (
        ALIKE_ROWS,
        "40 examples, 3 seeds; margin 30; the margin is a quarter of Table 2",
    )


def test_several_alike_rows(tmp_path: Path) -> None:
    """All pairs are compared; the facts are those of the least alike pair."""
    results, alike = (
        Results(tmp_path),
        PaperClaim(alike=("a", "b", "c"), margin=5.0, margin_source="it is stated"),
    )
    runs = {
        label: [
            finished_run(results, model, values(0.0), seed, facts=[share] * EXAMPLES)
            for seed in (1, 2, 3)
        ]
        for label, model, share in (("a", "ea", 0.2), ("b", "ca", 0.9), ("c", "trunc", 0.5))
    }
    (verdict,) = decide(paper_job(table(claims=(alike,)), tmp_path, runs))
    shares = {"a ~ b": -70, "a ~ c": -30, "b ~ c": 40}
    assert (verdict.outcome, [part.claim for part in verdict.parts]) == (ALIKE_ROWS, [*shares])
    assert verdict.facts == pytest.approx(shares[verdict.claim.partition(" (")[0]])
    runs["c"] = [replace(run) for run in runs_of(results, "etads", 0.1)]
    (verdict,) = decide(paper_job(table(claims=(alike,)), tmp_path, runs))
    assert (verdict.outcome, verdict.facts) == (UNLIKE_ROWS, None)
    assert verdict.difference == pytest.approx(-10, abs=1)


def test_a_claim_has_one_test_with_all_its_rows(tmp_path: Path) -> None:
    """Two orderings that hold are one reproduced claim; with one that is reversed the claim is reversed."""
    runs = runs_in_order(Results(tmp_path), a=0.1, b=0.05, c=0.0)
    both, mixed = decide(paper_job(table("a > b; b > c", "a > b; c > b"), tmp_path, runs))
    assert (both.outcome, mixed.outcome) == (REPRODUCED, REVERSED)
    assert mixed.claim == "c > b (the most reversed of 2 parts)"
    assert [round(part.difference) for part in mixed.parts] == [5, -5]
    assert both.runs.split() == [run.run_id for label in "abc" for run in runs[label]]
    csv = long_table([], [both, mixed])
    assert csv["kind"].tolist() == ["verdict", "part", "part"] * 2


def test_one_system_that_did_not_learn_is_an_obstacle_for_the_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the other parts of a claim say, nothing is concluded."""
    judge(monkeypatch, trunc=NOT_LEARNED)
    runs = runs_in_order(Results(tmp_path), a=0.1, b=0.05, c=0.0)
    (verdict,) = decide(paper_job(table("a > b; b > c"), tmp_path, runs))
    assert (verdict.outcome, verdict.p) == (NOT_LEARNED, None)


def test_the_gain_in_one_measure_is_compared_with_that_in_another(tmp_path: Path) -> None:
    """On "rouge1 - rouge2" an equal gain in both is undecided, and a larger one in ROUGE-1 reproduced."""
    results = Results(tmp_path)
    runs = {
        label: runs_of(results, model, shift)
        for label, model, shift in (("a", "ea", 0.1), ("b", "ca", 0.0))
    }
    claim = PaperClaim(orders=("a > b",), on="rouge1 - rouge2")
    (verdict,) = decide(paper_job(table(claims=(claim,)), tmp_path, runs))
    assert (verdict.outcome, verdict.difference) == (UNDECIDED, pytest.approx(0))
    for run in runs["b"]:
        path = results.run_folder(run) / "scores.csv"
        scores = pd.read_csv(path, index_col="id")
        scores["rouge2_f"] += 0.06 + DRAW.normal(0, 0.01, EXAMPLES)
        write_scores(path, scores)
    (verdict,) = decide(paper_job(table(claims=(claim,)), tmp_path, runs))
    assert (verdict.outcome, verdict.difference) == (REPRODUCED, pytest.approx(6, abs=1))


def test_a_claim_can_be_on_another_measure_at_each_scale(tmp_path: Path) -> None:
    """At scale=probe it is tested on planted facts, at scale=paper on ROUGE-1."""
    results = Results(tmp_path)
    runs = {
        label: [
            finished_run(results, model, values(0.0), seed, facts=[share] * 39 + [0.5])
            for seed in (1, 2, 3)
        ]
        for label, model, share in (("a", "ea", 1.0), ("b", "ca", 0.0))
    }
    claim = PaperClaim(orders=("a > b",), on={"paper": "rouge1", "probe": "fact_recall"})
    job = paper_job(table(claims=(claim,)), tmp_path, runs)
    assert [one.measure for one in decide(job)] == ["fact_recall"]
    assert [one.measure for one in decide(replace(job, scale="paper"))] == ["rouge1"]


def test_an_untested_claim_says_why(tmp_path: Path) -> None:
    """A reason of this scale, or of all, replaces the test; a reason of another scale does not."""
    runs = runs_in_order(Results(tmp_path), a=0.1, b=0.0)
    claims = tuple(
        PaperClaim(orders=("a > b",), untested=reason)
        for reason in ({"probe": "by construction"}, "nobody was asked", {"paper": "no texts"})
    )
    claims = (*claims, PaperClaim(untested="the paper prints no numbers"))
    verdicts = decide(paper_job(table(claims=claims), tmp_path, runs))
    assert [one.outcome for one in verdicts] == [NOT_TESTED, NOT_TESTED, REPRODUCED, NOT_TESTED]
    assert [one.reason for one in verdicts[:2]] == ["by construction", "nobody was asked"]
    assert (verdicts[3].claim, verdicts[3].reason) == ("no rows", "the paper prints no numbers")


def test_missing_runs_are_named(tmp_path: Path) -> None:
    """An ordering is tested when all runs of both rows are finished; until then the verdict says what is missing."""
    results = Results(tmp_path)
    run = finished_run(results, "ea", values(0.1))
    runs: dict[str, Any] = {"a": [run, None, None], "b": [finished_run(results, "ca", values(0.0))]}
    verdicts = decide(paper_job(table("a > b", "b > c"), tmp_path, runs))
    assert [one.outcome for one in verdicts] == [NOT_TESTED, NOT_TESTED]
    assert [one.reason for one in verdicts] == [
        "runs of a missing: 2 of 3",
        "c has no runs at scale=probe",
    ]
    assert verdicts[0].p is None


def test_a_claim_is_tested_on_the_datasets_that_are_read(tmp_path: Path) -> None:
    """Its parts are on the datasets that are read and have both rows; on none of them, it is not tested."""
    rows = {"a": PaperRow(), "b": PaperRow(), "c": PaperRow(datasets=("PubMed",))}
    claims = (
        PaperClaim(orders=("a > b",)),
        PaperClaim(orders=("a > c",)),
        PaperClaim(datasets=("PubMed",)),
    )
    paper_table = table(rows=rows, datasets={"arXiv": {}, "PubMed": {}}, claims=claims)
    verdicts = decide(
        paper_job(paper_table, tmp_path, runs_in_order(Results(tmp_path), a=0.1, b=0.0))
    )
    assert [(one.outcome, one.datasets) for one in verdicts] == [
        (REPRODUCED, ("arXiv",)),
        (NOT_TESTED, ("arXiv",)),
        (NOT_TESTED, ("PubMed",)),
    ]
    assert [one.reason for one in verdicts[1:]] == [
        "no texts at scale=probe have its rows",
        "none of its texts is read at scale=probe",
    ]


def test_runs_on_other_texts_are_not_compared(tmp_path: Path) -> None:
    """Rows whose texts or signatures differ are not tested, and the verdict says in what they differ."""
    results = Results(tmp_path)
    ours = [finished_run(results, "ea", values(0.1), seed) for seed in (1, 2)]
    others: dict[str, Any] = {
        "fingerprint": "f2",
        "config": {"dataset": {"name": "arxiv", "path": None, "limit": 10}},
    }
    runs = {"a": ours, "b": [finished_run(results, "ca", values(0.0), **others)]}
    (verdict,) = decide(paper_job(table("a > b"), tmp_path, runs))
    assert verdict.outcome == NOT_TESTED
    assert verdict.reason == "not comparable: other texts (the default dataset.limit instead of 10)"


def test_runs_without_scores_of_each_example_are_not_compared(tmp_path: Path) -> None:
    """The test needs scores.csv of all runs."""
    results = Results(tmp_path)
    runs = {
        label: [finished_run(results, model, values(0.1))]
        for label, model in (("a", "ea"), ("b", "ca"))
    }
    (results.run_folder(runs["a"][0]) / "scores.csv").unlink()
    (verdict,) = decide(paper_job(table("a > b"), tmp_path, runs))
    assert verdict.reason == "the runs have no R-1 of each example"


def test_a_verdict_is_a_row_of_the_csv(tmp_path: Path) -> None:
    """The row has the difference with its interval, the p-value, the source of the claim, and the runs of both rows."""
    results = Results(tmp_path)
    runs = {
        label: [finished_run(results, model, values(0.1))]
        for label, model in (("a", "ea"), ("b", "ca"))
    }
    (verdict,) = decide(
        paper_job(table(claims=(PaperClaim(orders=("a > b",), source="§5"),)), tmp_path, runs)
    )
    _, line = next(long_table([], [verdict]).iterrows())
    assert (line["kind"], line["row"], line["source"], line["n"], line["seeds"]) == (
        "verdict",
        "a > b",
        "§5",
        40,
        1,
    )
    assert line["runs"] == " ".join(run.run_id for label in "ab" for run in runs[label])
    assert line["value"] == pytest.approx(verdict.difference, abs=1e-4)
