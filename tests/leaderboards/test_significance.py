"""Which numbers of a table are not distinguishable from the best of their column."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from support.run_records import record

from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.significance import LeaderboardBlock, build_blocks
from longsumbench.metrics.aggregate import aggregate, aggregate_measures, write_scores
from longsumbench.metrics.statistics import holm
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.leaderboard import TableView, update_table

EXAMPLES = 80
BASE = np.random.default_rng(1).beta(4, 8, EXAMPLES)  # how well the examples go, whoever summarizes


def per_example(better: float, seed: int, **measures: object) -> pd.DataFrame:
    """Scores that lie around `BASE` and `better`; ROUGE-2 and ROUGE-L follow ROUGE-Lsum."""
    drawn = (BASE + better + np.random.default_rng(seed).normal(0, 0.05, EXAMPLES)).clip(
        0.0, 0.8
    )  # 1.2 × 0.8 < 1
    factors = dict(zip(ROUGE_HEADINGS, (1.2, 0.5, 0.8, 1), strict=True))
    columns = {
        f"{kind}_{statistic}": factor * drawn
        for kind, factor in factors.items()
        for statistic in "prf"
    }
    ids = [f"example {number:02d}" for number in range(EXAMPLES)]
    return pd.DataFrame({**columns, **measures}, index=pd.Index(ids, name="id"))


SCORES = {"best": per_example(0, 1), "near": per_example(-0.012, 2), "far": per_example(-0.1, 3)}


def finished(name: str, scores: pd.DataFrame, **changes: object) -> RunRecord:
    """A run of that name with these scores."""
    return record(
        name,
        0,
        run_id=name,
        n=len(scores),
        scores=aggregate(scores[[*SCORES["best"].columns]]),
        **changes,
    )


RUNS = [finished(name, scores) for name, scores in SCORES.items()]


def against_best_of(runs: list[RunRecord], scores: dict[str, pd.DataFrame]) -> LeaderboardBlock:
    """The tests of the runs' rows."""
    return build_blocks(runs, scores)[0]


def updated(root: Path, runs: list[RunRecord], scores: dict[str, pd.DataFrame]) -> TableView:
    """Write runs, and the scores of those that have any; return the table."""
    for one in runs:
        folder = Results(root).run_folder(one)
        one.write(folder)
        if one.run_id in scores:
            write_scores(folder / "scores.csv", scores[one.run_id])
    return TableView(update_table(Results(root), "arxiv"))


def test_p_values_are_of_paired_tests() -> None:
    """Each is what its pair's differences give to scipy, corrected over the rows of its column."""
    tests = against_best_of(RUNS, SCORES).differences
    assert list(tests) == [(run, kind) for kind in ROUGE_HEADINGS for run in ("near", "far")]
    single = [
        scipy.stats.ttest_rel(SCORES[run][f"{kind}_f"], SCORES["best"][f"{kind}_f"]).pvalue
        for run, kind in tests
    ]
    corrected = [
        p for column in zip(single[::2], single[1::2], strict=True) for p in holm(column).tolist()
    ]
    assert [judged.p for judged in tests.values()] == pytest.approx(corrected)


@pytest.mark.parametrize(
    ("examples", "rivals", "tested"), [(5, 1, False), (6, 1, True), (6, 2, False), (7, 2, True)]
)
def test_too_few_examples_are_no_tie(
    tmp_path: Path, examples: int, rivals: int, tested: bool
) -> None:
    """Of n examples and m tests, p is at least m · 2¹⁻ⁿ: above 0.05 a line says so, and no row is marked."""
    scores = {
        "best": SCORES["best"],
        **{f"rival{number}": per_example(-0.001, number) for number in range(rivals)},
    }
    scores = {name: table[:examples] for name, table in scores.items()}
    table = updated(
        tmp_path, [finished(name, part, examples="few") for name, part in scores.items()], scores
    )
    assert ("≈" in table.markdown()) == tested
    assert ("(too few examples for a test)" in table.markdown()) == (not tested)


def test_without_scores(tmp_path: Path) -> None:
    """Rows without scores.csv are named and bear no mark; without the best one's, or any, nothing is tested."""
    for number, (names, untested) in enumerate(
        ((("best", "far"), "near"), ((), "near, far"), (("near", "far"), "near, far"))
    ):
        some = {name: SCORES[name] for name in names}
        text = updated(tmp_path / str(number), RUNS, some).markdown()
        assert f"Without a verdict: {untested} (not tested: scores.csv is missing)." in text
        assert "≈" not in text


def test_measures_that_do_not_apply_everywhere() -> None:
    """Of a measure, the examples are paired to which it applies on both sides."""
    half = np.where(np.arange(EXAMPLES) % 2, np.nan, BASE)
    low = np.where(np.arange(EXAMPLES) % 4, np.nan, BASE - np.linspace(-0.05, 0.1, EXAMPLES))
    scores = {"best": per_example(0, 1, found=half), "far": per_example(-0.1, 3, found=low)}
    runs = [
        finished(name, table, measures=aggregate_measures(table[["found"]]), ranked_by="found")
        for name, table in scores.items()
    ]
    tests = against_best_of(runs, scores)
    single = scipy.stats.ttest_1samp((half - low)[::4], 0).pvalue
    assert 0.01 < single < 0.2
    assert tests.differences["far", "found"].p == pytest.approx(single)
    assert list(tests.differences) == [("far", "found"), ("far", "rougeLsum")]


def set_line(view: TableView) -> str:
    """The sentence on the set of best systems below a table."""
    return "".join(re.findall(r"Set of best systems [^.]*\.", " ".join(view.blocks()[0].footnotes)))


def test_the_set_of_best_systems_is_named_where_marks_say_less(tmp_path: Path) -> None:
    """The marks ≈ and the set agree on three systems; of twenty equal ones, the set has one that the marks miss."""
    assert against_best_of(RUNS, SCORES).best_set == ("best", "near")
    assert set_line(updated(tmp_path / "three", RUNS, SCORES)) == ""
    for seed in range(100, 2_000, 20):
        scores = {f"s{number}": per_example(0, seed + number) for number in range(20)}
        runs = [finished(name, table) for name, table in scores.items()]
        tests = against_best_of(runs, scores)
        tied = {key for key, name in tests.tied() if name == "rougeLsum"}
        if len(tied) < 19 and len(tests.best_set) == 20:
            break
    else:
        pytest.fail("the marks missed no equal system")
    line = set_line(updated(tmp_path / "twenty", runs, scores))
    assert line.startswith("Set of best systems (95 %, model confidence set): s")
    assert line.endswith(" and 16 more.")
