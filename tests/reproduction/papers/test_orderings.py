"""Verdicts on claims about rows: the gate, the test on the paper's measure, the margin of alike rows."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.reproduction.paper_jobs import finished_run, judge, paper_job
from support.run_records import TRAINED

from longsumbench.core import FitReport
from longsumbench.leaderboards.seed_groups import (
    LEARNED,
    NOT_LEARNED,
    STILL_LEARNING,
    UNKNOWN,
    Learned,
)
from longsumbench.metrics.aggregate import write_scores
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.claims import long_table
from longsumbench_reproduction.papers.page_model import (
    ALIKE_ROWS,
    NOT_TESTED,
    REPRODUCED,
    UNDECIDED,
    UNDECIDED_LEARNING,
    UNLIKE_ROWS,
    ClaimOutcome,
)
from longsumbench_reproduction.papers.paper_tables import PaperClaim, PaperRow, PaperTable
from longsumbench_reproduction.papers.published_rows import decide_claims, read_row_means

EXAMPLES = 40
DRAW = np.random.default_rng(1)
HARD = DRAW.uniform(0.3, 0.5, EXAMPLES)  # scores differ more between examples than between systems


def values(better: float) -> list[float]:
    return [float(value) for value in HARD + better + DRAW.normal(0, 0.02, EXAMPLES)]


def collect_runs(
    folder: Path,
    model: str,
    better: float = 0.0,
    seeds: Sequence[int | None] = (1, 2, 3),
    **changes: Any,
) -> list[RunRecord]:
    """Runs of a system whose scores are higher by a shift."""
    results = Results(folder)
    return [finished_run(results, model, values(better), seed, **changes) for seed in seeds]


def table(*claims: str, **changes: Any) -> PaperTable:
    """A table with the rows a, b and c."""
    rows = {label: PaperRow() for label in "abc"}
    orders = tuple(PaperClaim(orders=tuple(claim.split("; "))) for claim in claims)
    settings = {"datasets": {"arXiv": {}}, "rows": rows, "claims": orders, **changes}
    return PaperTable("scores", "", "probe", {}, **settings)


def decide(
    folder: Path, paper_table: PaperTable, runs: Mapping[str, Sequence[RunRecord | None]]
) -> tuple[ClaimOutcome, ...]:
    job = paper_job(paper_table, folder, runs)
    return decide_claims(job, read_row_means(job))


def test_planted_facts_are_shown_without_a_test(tmp_path: Path) -> None:
    """A claim has one test, on the measure of its scale; the difference in facts is a number next to it."""
    facts = {"ea": [1.0] * 39 + [0.5], "ca": [0.0] * 39 + [0.5]}
    runs = {
        label: collect_runs(tmp_path, model, facts=facts[model])
        for label, model in (("a", "ea"), ("b", "ca"))
    }
    claim = PaperClaim(orders=("a > b",), on={"paper": "fact_recall", "probe": "rouge1"})
    job = paper_job(table(claims=(claim,)), tmp_path, runs)
    (verdict,) = decide_claims(job, read_row_means(job))
    assert (verdict.measure, verdict.outcome) == ("rouge1", UNDECIDED)
    assert verdict.facts == pytest.approx(97.5)
    (verdict,) = decide_claims(replace(job, scale="paper"), read_row_means(job))
    assert (verdict.measure, verdict.facts) == ("fact_recall", None)


@pytest.mark.parametrize(
    ("words", "outcome", "reason"),
    [
        ({"ea": UNKNOWN, "ca": NOT_LEARNED}, NOT_TESTED, "; a: it is not known"),
        ({"ea": STILL_LEARNING, "ca": NOT_LEARNED}, NOT_LEARNED, "; b: it is not learned"),
        ({"ea": STILL_LEARNING}, UNDECIDED_LEARNING, "; a: it is still learning"),
        ({"ea": ""}, REPRODUCED, ""),  # a system that learns nothing, such as Lead
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
    models = {model: Learned(word, f"it is {word}") for model, word in words.items()}
    judge(monkeypatch, Learned(LEARNED), **models)
    runs = {"a": collect_runs(tmp_path, "ea", 0.1), "b": collect_runs(tmp_path, "ca")}
    (verdict,) = decide(tmp_path, table("a > b"), runs)
    assert (verdict.outcome, verdict.reason) == (outcome, f"40 examples, 3 seeds{reason}")
    assert (verdict.p is None) == (outcome != REPRODUCED)
    assert verdict.difference == pytest.approx(10, abs=1)


def test_the_gate_reads_the_outputs(tmp_path: Path) -> None:
    """Without a stub: a system that scores as other examples' references do, where Random gains, did not learn."""
    results, runs = Results(tmp_path), dict[str, list[RunRecord]]()
    for label, model, gain in (("a", "ea", 0.2), ("b", "ca", 0.0), ("random", "random", 0.1)):
        fit, floor = FitReport() if label == model else TRAINED, {"rouge2": 40 - 100 * gain}
        runs[label] = collect_runs(tmp_path, model, ranked_by="rougeLsum", floor=floor, fit=fit)
        for run in runs[label]:
            run.write(results.run_folder(run))
            path = results.run_folder(run) / "scores.csv"
            scores = pd.read_csv(path, index_col="id")
            noise = 0.01 * (-1.0) ** np.arange(EXAMPLES)
            scores["rougeLsum_floor"] = scores["rougeLsum_f"] - gain - noise
            write_scores(path, scores)
    del runs["random"]  # it is no row of the table
    (verdict,) = decide(tmp_path, table("a > b"), runs)
    assert (verdict.outcome, verdict.learned) == (NOT_LEARNED, NOT_LEARNED)
    assert re.search(r"b: gains -?\d.\d in R-2, Random \d+.\d in 3 of 3 seeds", verdict.reason)


# The model and the seeds of both rows; the outcome and its reason
SEEDS = """
ea [1], ca [1] → undecided (one seed): 40 examples, one seed
ea [1, 2], ca [1, 2] → undecided (two seeds): 40 examples, 2 seeds
ea [1, 2], ca [3, 4] → not tested: 40 examples, different seeds
leadea [null], leadca [null] → reproduced: 40 examples
"""


@pytest.mark.parametrize("line", SEEDS.strip().splitlines())
def test_too_few_seeds_decide_nothing(line: str, tmp_path: Path) -> None:
    """One or two common seeds are named; systems without seeds are tested over examples, and need none."""
    pairs, expected = line.split(" → ")
    rows = re.findall(r"(\w+) (\[.*?\])", pairs)
    runs = {
        label: collect_runs(tmp_path, model, better, json.loads(seeds))
        for label, better, (model, seeds) in zip("ab", (0.1, 0.0), rows, strict=True)
    }
    (verdict,) = decide(tmp_path, table("a > b"), runs)
    assert f"{verdict.outcome}: {verdict.reason}" == expected
    assert (verdict.p is None) == (verdict.outcome != REPRODUCED)


ALIKE = PaperClaim(alike=("a", "b"), says="they are similar")


def runs_in_order(folder: Path, **means: float) -> dict[str, list[RunRecord]]:
    """Runs of the rows a, b and c, whose scores differ from each other by these shifts and little by chance."""
    models = {"a": "ca", "b": "ea", "c": "trunc"}
    return {label: collect_runs(folder, models[label], shift) for label, shift in means.items()}


@pytest.mark.parametrize(
    ("shift", "outcome"),
    [(0.02, ALIKE_ROWS), (0.1, UNLIKE_ROWS), (-0.1, UNLIKE_ROWS)],
)
def test_rows_are_alike_within_the_stated_margin(
    shift: float, outcome: str, tmp_path: Path
) -> None:
    """The margin is 5 points at this scale; without one the claim is not tested."""
    runs = runs_in_order(tmp_path, a=shift, b=0.0, c=-0.2)
    margins = {"paper": 0.1, "probe": 5.0}
    stated = PaperClaim(alike=("a", "b"), margin=margins, margin_source="half of a difference")
    (verdict,) = decide(tmp_path, table(claims=(stated,)), runs)
    reason = "40 examples, 3 seeds; margin 5; the margin is half of a difference"
    assert (verdict.claim, verdict.outcome, verdict.reason) == ("a ~ b", outcome, reason)
    (verdict,) = decide(tmp_path, table(claims=(ALIKE,)), runs)
    reason = (
        "40 examples, 3 seeds; the paper names no difference of this table, which gives no margin"
    )
    assert (verdict.outcome, verdict.reason) == (NOT_TESTED, reason)


def test_a_claim_has_one_test_with_all_its_rows(tmp_path: Path) -> None:
    """Two orderings that hold are one reproduced claim; its verdict and its parts are rows of the CSV."""
    runs = runs_in_order(tmp_path, a=0.1, b=0.05, c=0.0)
    claim = PaperClaim(orders=("a > b", "b > c"), source="§5")
    (verdict,) = decide(tmp_path, table(claims=(claim,)), runs)
    csv = long_table([], [verdict])
    assert csv["kind"].tolist() == ["verdict", "part", "part"]
    line = csv.iloc[0]
    assert (line["outcome"], line["source"], line["n"], line["seeds"]) == (REPRODUCED, "§5", 40, 3)
    assert line["value"] == pytest.approx(verdict.difference, abs=1e-4)
    assert len(line["runs"].split()) == 3 * 3


def test_the_gain_in_one_measure_is_compared_with_that_in_another(tmp_path: Path) -> None:
    """On "rouge1 - rouge2" an equal gain in both is undecided, and a larger one in ROUGE-1 reproduced."""
    runs = {"a": collect_runs(tmp_path, "ea", 0.1), "b": collect_runs(tmp_path, "ca")}
    claims = (PaperClaim(orders=("a > b",), on="rouge1 - rouge2"),)
    (verdict,) = decide(tmp_path, table(claims=claims), runs)
    assert (verdict.outcome, verdict.difference) == (UNDECIDED, pytest.approx(0))
    for run in runs["b"]:
        path = Results(tmp_path).run_folder(run) / "scores.csv"
        scores = pd.read_csv(path, index_col="id")
        scores["rouge2_f"] += 0.06 + DRAW.normal(0, 0.01, EXAMPLES)
        write_scores(path, scores)
    (verdict,) = decide(tmp_path, table(claims=claims), runs)
    assert (verdict.outcome, verdict.difference) == (REPRODUCED, pytest.approx(6, abs=1))


def test_an_untested_claim_says_why(tmp_path: Path) -> None:
    """A reason of this scale, or of all, replaces the test; a reason of another scale does not."""
    reasons = ({"probe": "by construction"}, "nobody was asked", {"paper": "no texts"})
    claims = [PaperClaim(orders=("a > b",), untested=reason) for reason in reasons]
    claims.append(PaperClaim(untested="the paper prints no numbers"))
    runs = runs_in_order(tmp_path, a=0.1, b=0.0)
    verdicts = decide(tmp_path, table(claims=tuple(claims)), runs)
    assert [(verdict.claim, verdict.outcome, verdict.reason) for verdict in verdicts] == [
        ("a > b", NOT_TESTED, "by construction"),
        ("a > b", NOT_TESTED, "nobody was asked"),
        ("a > b", REPRODUCED, "40 examples, 3 seeds"),
        ("no rows", NOT_TESTED, "the paper prints no numbers"),
    ]


def test_missing_runs_are_named(tmp_path: Path) -> None:
    """An ordering is tested when all runs of both rows are finished; until then the verdict says what is missing."""
    runs: dict[str, Sequence[RunRecord | None]] = {"b": collect_runs(tmp_path, "ca")}
    runs["a"] = [*collect_runs(tmp_path, "ea", seeds=[1]), None, None]
    verdicts = decide(tmp_path, table("a > b", "b > c"), runs)
    assert [(verdict.outcome, verdict.reason) for verdict in verdicts] == [
        (NOT_TESTED, "runs of a missing: 2 of 3"),
        (NOT_TESTED, "c has no runs at scale=probe"),
    ]


def test_a_claim_is_tested_on_the_datasets_that_are_read(tmp_path: Path) -> None:
    """Its parts are on the datasets that are read and have both rows; on none of them, it is not tested."""
    rows = {"a": PaperRow(), "b": PaperRow(), "c": PaperRow(datasets=("PubMed",))}
    claims = (
        PaperClaim(orders=("a > b",)),
        PaperClaim(orders=("a > c",)),
        PaperClaim(datasets=("PubMed",)),
    )
    paper_table = table(rows=rows, datasets={"arXiv": {}, "PubMed": {}}, claims=claims)
    verdicts = decide(tmp_path, paper_table, runs_in_order(tmp_path, a=0.1, b=0.0))
    assert [(verdict.outcome, verdict.datasets, verdict.reason) for verdict in verdicts] == [
        (REPRODUCED, ("arXiv",), "40 examples, 3 seeds"),
        (NOT_TESTED, ("arXiv",), "no texts at scale=probe have its rows"),
        (NOT_TESTED, ("PubMed",), "none of its texts is read at scale=probe"),
    ]


def test_runs_on_other_texts_are_not_compared(tmp_path: Path) -> None:
    """Rows whose texts differ, or without scores of each example, are not tested, and the verdict says why."""
    limited = {"dataset": {"name": "arxiv", "path": None, "limit": 10}}
    runs = {
        "a": collect_runs(tmp_path, "ea", 0.1),
        "b": collect_runs(tmp_path, "ca", fingerprint="f2", config=limited),
        "c": collect_runs(tmp_path, "trunc"),
    }
    (Results(tmp_path).run_folder(runs["c"][0]) / "scores.csv").unlink()
    other_texts, no_scores = decide(tmp_path, table("a > b", "a > c"), runs)
    reason = "not comparable: other texts (the default dataset.limit instead of 10)"
    assert (other_texts.outcome, other_texts.reason) == (NOT_TESTED, reason)
    assert no_scores.reason == "the runs have no R-1 of each example"
