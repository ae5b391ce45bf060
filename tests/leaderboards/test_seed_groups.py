"""Which runs are one row, the mean and interval of a row, and the difference of two rows."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from support.run_records import changed
from support.swept_runs import baseline, trained

from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.seed_groups import (
    NO_INTERVAL,
    ResultRow,
    compare_groups,
    group_rows_by_seed,
)
from longsumbench.metrics.aggregate import Estimate
from longsumbench.metrics.output_stats import OutputStats
from longsumbench.metrics.statistics import mean_over_seeds
from longsumbench.runs.record import RunRecord
from longsumbench.views.footnotes import describe_equal

EXAMPLES = 30
_Run = tuple[RunRecord, NDArray[np.float64]]
DRAW = np.random.default_rng(1)
HARD = DRAW.uniform(0.2, 0.4, EXAMPLES)


def scores_of(values: NDArray[np.float64]) -> pd.DataFrame:
    ids = pd.Index([f"e{number:02d}" for number in range(len(values))], name="id")
    return pd.DataFrame(dict.fromkeys((f"{kind}_f" for kind in ROUGE_HEADINGS), values), index=ids)


def system(name: str, better: float, seeds: Sequence[int], **changes: Any) -> list[_Run]:
    """Runs of a system, a seed each, with their scores."""
    found = []
    for seed in seeds:
        values = HARD + better + DRAW.normal(0, 0.02, EXAMPLES) + DRAW.normal(0, 0.01)
        found.append(
            (trained(name, 100 * float(values.mean()), seed, n=EXAMPLES, **changes), values)
        )
    return found


def grouped(*systems: list[_Run]) -> tuple[tuple[ResultRow, ...], dict[str, pd.DataFrame]]:
    runs = [run for one in systems for run in one]
    scores = {run.run_id: scores_of(values) for run, values in runs}
    return group_rows_by_seed([run for run, _ in runs], scores), scores


def test_runs_that_differ_in_their_seed_are_a_row() -> None:
    """Best first, oracles last; a run without seeds is a row, and so is another setting of training."""
    records = [
        *(trained("ea", score, seed) for seed, score in ((1, 20), (2, 24))),
        trained("ea", 23, 1, train={"max_steps": 500}),
        baseline("lead", 21),
        baseline("oracle", 40),
    ]
    rows = group_rows_by_seed(records, {})
    assert [(row.representative.key.model, len(row.runs)) for row in rows] == [
        ("ea", 1),
        ("ea", 2),
        ("lead", 1),
        ("oracle", 1),
    ]
    assert rows[1].means["rougeLsum"] == Estimate(22, *NO_INTERVAL)
    assert [row.label for row in rows] == [
        "ea, max_steps 500",
        "ea, max_steps 300",
        "lead",
        "oracle",
    ]
    assert [len(row.runs) for row in group_rows_by_seed(records, {}, by_run=True)] == [1] * 5


def test_an_interval_covers_examples_and_seeds() -> None:
    """It holds the mean of the runs' means, and widens if seeds differ; one run keeps the interval of its record."""
    widths = []
    for apart in (0.0, 0.05):
        runs = [
            trained("ea", 100 * float(np.mean(HARD + apart * seed)), seed, n=EXAMPLES)
            for seed in range(3)
        ]
        scores = {run.run_id: scores_of(HARD + apart * (run.key.seed or 0)) for run in runs}
        (row,) = group_rows_by_seed(runs, scores)
        mean, low, high = row.means["rougeLsum"]
        assert mean == pytest.approx(100 * (HARD.mean() + apart))
        assert low < mean < high
        widths.append(high - low)
        (alone,) = group_rows_by_seed(runs[:1], scores)
        assert alone.means["rougeLsum"] == runs[0].evaluation.scores["rougeLsum"].f1
        (unknown,) = group_rows_by_seed(runs, {run.run_id: scores[run.run_id] for run in runs[:2]})
        assert math.isnan(unknown.means["rougeLsum"].low)
    by_hand = 2 * 2.045 * 100 * HARD.std(ddof=1) / math.sqrt(EXAMPLES)  # Student's t of 29
    assert widths[0] == pytest.approx(by_hand, rel=0.01)
    assert widths[1] > 2 * widths[0]


def test_a_difference_on_the_same_seeds() -> None:
    """It is paired by example and seed, 0–100; the other way it is negated."""
    rows, scores = grouped(
        one := system("ea", 0.05, (1, 2, 3)), other := system("seal", 0, (1, 2, 3))
    )
    found = compare_groups(rows[0], rows[1], "rougeLsum", scores)
    pairs = [(values, its) for (_, values), (_, its) in zip(one, other, strict=True)]
    by_hand = mean_over_seeds(100 * np.stack([values - its for values, its in pairs], axis=1))
    assert found is not None
    assert tuple(found) == (pytest.approx(by_hand), EXAMPLES, EXAMPLES, 3, False, 100)
    back = compare_groups(rows[1], rows[0], "rougeLsum", scores)
    assert back is not None
    assert back.effect == pytest.approx(by_hand._replace(mean=-by_hand.mean))


def test_a_difference_from_a_system_without_seeds() -> None:
    """Each seed of the one is compared with the run of the other."""
    runs, lead = system("ea", 0.05, (1, 2, 3)), baseline("lead", 30, n=EXAMPLES)
    rows, scores = grouped(runs, [(lead, HARD)])
    values = np.stack([values for _, values in runs], axis=1)
    by_hand = mean_over_seeds(100 * (HARD[:, None] - values))
    pair = compare_groups(rows[1], rows[0], "rouge1", scores)
    assert pair == (pytest.approx(by_hand), EXAMPLES, EXAMPLES, 3, False, 100)


def test_a_difference_of_different_seeds() -> None:
    """The means over all seeds are compared; without scores there is none."""
    rows, scores = grouped(
        one := system("ea", 0.1, (1, 2, 3)), other := system("seal", 0, (3, 4, 5))
    )
    found = compare_groups(rows[0], rows[1], "rougeL", scores)
    assert found is not None
    means = [np.mean([values for _, values in runs]) for runs in (one, other)]
    assert found.effect.mean == pytest.approx(100 * (means[0] - means[1]))
    assert (found.seeds, found.one_seed, found.effect.p_value() < 0.05) == (0, False, True)
    assert compare_groups(rows[0], rows[1], "rougeL", {}) is None


def test_equal_outputs_of_several_seeds_count_once() -> None:
    """The first of them is in the row, and a line names them; extracts, and outputs that are one text, may be equal."""
    runs = [
        replace(trained("ea", 20, seed), outputs_digest="same" if seed < 3 else "other")
        for seed in (1, 2, 3)
    ]
    (row,) = group_rows_by_seed(runs, {})
    assert [run.key.seed for run in row.runs] == [1, 3]
    assert row.repeated == (runs[1],)
    assert describe_equal([row]) == "Equal outputs: seeds 1, 2 of ea, counted once."
    one_text = [changed(run, outputs=OutputStats(20, 20, 1, 0)) for run in runs]
    extracts = [changed(run, config={"decode": {"mode": "extract"}}) for run in runs]
    draws = [
        replace(baseline("random", 20, seed=seed, run_id=f"r{seed}"), outputs_digest="same")
        for seed in (1, 2)
    ]
    for honest in (one_text, extracts, draws):
        (row,) = group_rows_by_seed(honest, {})
        assert (len(row.runs), describe_equal([row])) == (len(honest), "")
