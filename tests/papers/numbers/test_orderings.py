"""Verdicts: an ordering is reproduced, reversed or undecided by the paired test, or not tested for a stated reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.paper_jobs import finished_run, paper_job

from longsumbench.leaderboards.seed_groups import difference
from longsumbench.metrics.statistics import holm
from longsumbench.papers.artifacts import Artifact, ArtifactRow, Ordering
from longsumbench.papers.long_table import long_table
from longsumbench.papers.numbers.orderings import decide_orderings
from longsumbench.papers.numbers.ours import read_ours
from longsumbench.papers.page import NOT_TESTED, REPRODUCED, REVERSED, UNDECIDED, Job, Verdict
from longsumbench.runs.results import Results

EXAMPLES = 40
DRAW = np.random.default_rng(1)
HARD = DRAW.uniform(0.3, 0.5, EXAMPLES)  # scores differ more between examples than between systems


def values(better: float) -> list[float]:
    return [float(value) for value in HARD + better + DRAW.normal(0, 0.02, EXAMPLES)]


def table(*claims: str, **changes: Any) -> Artifact:
    """A table with the rows a, b and c."""
    rows = {label: ArtifactRow() for label in "abc"}
    orderings = tuple(Ordering(claim) for claim in claims)
    settings = {"datasets": {"arXiv": {}}, "rows": rows, "orderings": orderings, **changes}
    return Artifact("scores", "", "probe", {}, **settings)


def decide(job: Job) -> tuple[Verdict, ...]:
    return decide_orderings(job, read_ours(job))


def test_the_sign_of_a_significant_difference_decides(tmp_path: Path) -> None:
    """A clear ordering is reproduced or reversed; one that chance explains is undecided."""
    results = Results(tmp_path)
    same = values(0.0)
    runs = {
        "a": [finished_run(results, "ea", values(0.1))],
        "b": [finished_run(results, "ca", same)],
        "c": [finished_run(results, "trunc", [value + (-1) ** place * 0.01 for place, value in enumerate(same)])],
    }
    verdicts = decide(paper_job(table("a > b", "b > a", "b > c"), tmp_path, runs))
    assert [one.outcome for one in verdicts] == [REPRODUCED, REVERSED, UNDECIDED]
    first, second, _ = verdicts
    assert first.difference == pytest.approx(10, abs=1)
    assert second.difference == pytest.approx(-first.difference)
    assert first.low is not None
    assert first.high is not None
    assert first.low < first.difference < first.high
    assert first.reason == "40 examples, one seed"


def test_p_values_are_corrected_over_the_whole_artifact(tmp_path: Path) -> None:
    """The p-values are those of the test of two rows, corrected for all orderings of the table."""
    results = Results(tmp_path)
    runs = {
        label: [finished_run(results, model, values(better), seed) for seed in (1, 2, 3)]
        for label, model, better in (("a", "ea", 0.02), ("b", "ca", 0.01), ("c", "trunc", 0.0))
    }
    job = paper_job(table("a > b", "b > c", "a > c"), tmp_path, runs)
    ours = read_ours(job)
    groups = {label: ours.groups[label, "arXiv"] for label in "abc"}
    alone = [difference(groups[one], groups[two], "rouge1", ours.scores) for one, two in ("ab", "bc", "ac")]
    expected = holm([one.p for one in alone if one]).tolist()
    verdicts = decide(job)
    assert [one.p for one in verdicts] == expected
    assert [one.difference for one in verdicts] == [one.mean for one in alone if one]
    assert verdicts[0].reason == "40 examples, 3 seeds"


def test_planted_facts_are_tested_too(tmp_path: Path) -> None:
    """If both rows measured planted facts, the claim has a second verdict; two claims of the rows share it."""
    results = Results(tmp_path)
    runs = {
        "a": [finished_run(results, "ea", values(0.0), facts=[1.0] * EXAMPLES)],
        "b": [finished_run(results, "ca", values(0.0), facts=[0.0] * (EXAMPLES - 1) + [1.0])],
    }
    both = (Ordering("a > b"), Ordering("a > b", "rougeL"))
    verdicts = decide(paper_job(table(orderings=both), tmp_path, runs))
    assert [one.measure for one in verdicts] == ["rouge1", "fact_recall", "rougeL"]
    assert verdicts[1].outcome == REPRODUCED
    assert verdicts[1].difference == pytest.approx(100 * (EXAMPLES - 1) / EXAMPLES)


def test_missing_runs_are_named(tmp_path: Path) -> None:
    """An ordering is tested when all runs of both rows are finished; until then the verdict says what is missing."""
    results = Results(tmp_path)
    run = finished_run(results, "ea", values(0.1))
    runs = {"a": [run, None, None], "b": [finished_run(results, "ca", values(0.0))]}
    verdicts = decide(paper_job(table("a > b", "b > c"), tmp_path, runs))
    assert [one.outcome for one in verdicts] == [NOT_TESTED, NOT_TESTED]
    assert [one.reason for one in verdicts] == ["runs of a missing: 2 of 3", "c has no runs at scale=probe"]
    assert verdicts[0].p is None


def test_only_datasets_that_are_read_have_a_verdict(tmp_path: Path) -> None:
    """There is a verdict for each dataset that is read at this scale and on which the paper has both rows."""
    rows = {"a": ArtifactRow(), "b": ArtifactRow(), "c": ArtifactRow(datasets=("PubMed",))}
    artifact = table("a > b", "a > c", rows=rows, datasets={"arXiv": {}, "PubMed": {}})
    verdicts = decide(paper_job(artifact, tmp_path, {}))
    assert [(one.claim, one.dataset) for one in verdicts] == [("a > b", "arXiv")]


def test_runs_on_other_texts_are_not_compared(tmp_path: Path) -> None:
    """Rows whose texts or signatures differ are not tested, and the verdict says in what they differ."""
    results = Results(tmp_path)
    ours = [finished_run(results, "ea", values(0.1), seed) for seed in (1, 2)]
    others = {"fingerprint": "f2", "config": {"dataset": {"name": "arxiv", "path": None, "limit": 10}}}
    runs = {"a": ours, "b": [finished_run(results, "ca", values(0.0), **others)]}
    (verdict,) = decide(paper_job(table("a > b"), tmp_path, runs))
    assert verdict.outcome == NOT_TESTED
    assert verdict.reason == "not comparable: other texts (the default dataset.limit instead of 10)"


def test_runs_without_scores_of_each_example_are_not_compared(tmp_path: Path) -> None:
    """The test needs scores.csv of all runs."""
    results = Results(tmp_path)
    runs = {label: [finished_run(results, model, values(0.1))] for label, model in (("a", "ea"), ("b", "ca"))}
    (results.run_folder(runs["a"][0]) / "scores.csv").unlink()
    (verdict,) = decide(paper_job(table("a > b"), tmp_path, runs))
    assert verdict.reason == "the runs have no R-1 of each example (scores.csv)"


def test_a_verdict_is_a_row_of_the_csv(tmp_path: Path) -> None:
    """The row has the difference with its interval, the p-value, the source of the claim, and the runs of both rows."""
    results = Results(tmp_path)
    runs = {label: [finished_run(results, model, values(0.1))] for label, model in (("a", "ea"), ("b", "ca"))}
    (verdict,) = decide(paper_job(table(orderings=(Ordering("a > b", source="§5"),)), tmp_path, runs))
    _, line = next(long_table([], [verdict]).iterrows())
    assert (line["kind"], line["row"], line["source"], line["n"], line["seeds"]) == ("verdict", "a > b", "§5", 40, 1)
    assert line["runs"] == " ".join(run.run_id for label in "ab" for run in runs[label])
    assert line["value"] == pytest.approx(verdict.difference, abs=1e-4)
