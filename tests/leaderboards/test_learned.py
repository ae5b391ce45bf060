"""Whether a system learned to summarize: from its outputs against other references, and from its training."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.run_records import record

from longsumbench.core import FitReport
from longsumbench.leaderboards.columns import choose_columns, columns_of
from longsumbench.leaderboards.learned import LEAST_LIFT, last_fall
from longsumbench.leaderboards.notes import describe_unlearned
from longsumbench.leaderboards.seed_groups import (
    LEARNED,
    NOT_LEARNED,
    NOT_RANKED,
    NOT_SHOWN,
    STILL_LEARNING,
    UNKNOWN,
    UNTRAINED,
)
from longsumbench.leaderboards.significance import ComparableRows, comparable_rows
from longsumbench.leaderboards.table import row_cells
from longsumbench.metrics.aggregate import MeasureMean
from longsumbench.metrics.output_facts import OutputFacts
from longsumbench.render.tables import Stressed, Tied
from longsumbench.runs.record import ImportedOutputs, RunRecord, is_untrained

EXAMPLES = 100
LEVELLED = FitReport(steps=400, first_loss=9.0, validation_losses=((100, 4.0), (200, 3.1), (300, 3.05), (400, 3.0)))


def trained(name: str, score: float, floor: float | None = 20.0, **changes: Any) -> tuple[RunRecord, pd.DataFrame]:
    """A trained run with these means of ROUGE-Lsum (0–100), and its scores, which spread by five points."""
    spread = np.random.default_rng(len(name)).normal(0, 5, EXAMPLES)
    spread -= spread.mean()
    columns = {
        f"{kind}_{part}": (score + spread) / 100
        for kind in ("rouge1", "rouge2", "rougeL", "rougeLsum")
        for part in "prf"
    }
    if floor is not None:
        columns["rougeLsum_floor"] = (floor + spread[::-1]) / 100
    scores = pd.DataFrame(columns, index=[f"{number:03d}" for number in range(EXAMPLES)])
    run = record(name, score, run_id=f"{name}-{changes.get('seed', 1)}", n=EXAMPLES)
    return replace(run, **{"fit": LEVELLED, "outputs": OutputFacts(EXAMPLES, EXAMPLES, EXAMPLES, 0), **changes}), scores


def judged(*runs: tuple[RunRecord, pd.DataFrame]) -> ComparableRows:
    """The runs as a block of a table."""
    (block,) = comparable_rows([run for run, _ in runs], {run.run_id: scores for run, scores in runs})
    return block


def blocks(*runs: tuple[RunRecord, pd.DataFrame]) -> tuple[ComparableRows, ...]:
    """The runs as blocks of a table: checkpoints that were not trained here have their own."""
    return comparable_rows([run for run, _ in runs], {run.run_id: scores for run, scores in runs})


def words(*runs: tuple[RunRecord, pd.DataFrame]) -> dict[str, str]:
    """System → whether it learned."""
    return {row.first.model: row.learned.word for row in judged(*runs).rows}


BEST = trained("best", 40)


def test_the_lift_is_the_share_of_the_best_gain() -> None:
    """By hand: the best gains 40 − 20 = 20 points, another 26 − 20 = 6, which is 30 %; a third 24 − 20 = 4, 20 %."""
    found = judged(BEST, trained("other", 26), trained("third", 24)).rows
    rows: dict[str, Any] = {row.first.model: row.learned for row in found}
    assert rows["best"] == (LEARNED, "", pytest.approx(20), pytest.approx(100))
    assert rows["other"] == (LEARNED, "", pytest.approx(20), pytest.approx(30))
    assert rows["third"] == (NOT_LEARNED, "20.0 % of the possible gain", pytest.approx(20), pytest.approx(20))
    assert LEAST_LIFT == 25


def without_gain(name: str, number: int = EXAMPLES, **changes: Any) -> tuple[RunRecord, pd.DataFrame]:
    """A run that scores as high against other references: its outputs do not depend on their sources."""
    run, scores = trained(name, 35, floor=35.0, **changes)
    scores = scores.head(number)
    return replace(run, n=number), scores.assign(rougeLsum_floor=scores["rougeLsum_f"].to_numpy()[::-1])


def test_outputs_that_fit_any_source_are_not_learned() -> None:
    """Many examples show that there is less than a quarter of the possible gain, where that is known."""
    assert words(BEST, without_gain("constant")) == {"best": LEARNED, "constant": NOT_LEARNED}
    assert words(without_gain("constant")) == {"constant": NOT_SHOWN}  # nothing else is in the table


@pytest.mark.parametrize("examples", [1, 2, 5, 8])
def test_few_examples_show_nothing(examples: int) -> None:
    """Not shown is not the opposite: the row is ranked, and the sentence gives the number of examples."""
    run, scores = BEST
    best = replace(run, n=examples, examples="few"), scores.head(examples)
    few = without_gain("few", examples, examples="few")
    row = next(row for row in judged(best, few).rows if row.first.model == "few")
    assert row.learned.word == NOT_SHOWN
    assert row.ranked
    counted = "1 example" if examples == 1 else f"{examples} examples"
    assert f"few ({counted}: not shown that its outputs depend on their sources)" in describe_unlearned([row])


@pytest.mark.parametrize(
    "changes",
    [
        {"system": {"checkpoint": "facebook/bart-large-cnn"}},
        {"system": {"engine": "vllm"}},
        {"imported": ImportedOutputs("them.txt", "0", "")},
    ],
)
def test_what_was_not_trained_here_is_never_not_learned(changes: dict[str, Any]) -> None:
    """A checkpoint, a language model and imported outputs may be not ranked, for what their outputs are."""
    others: dict[str, Any] = {"fit": FitReport(), **changes}
    repeated: dict[str, Any] = {"outputs": OutputFacts(EXAMPLES, EXAMPLES, 1, 0)}
    cases = {"none": without_gain("none", **others), "same": trained("same", 38, **others, **repeated)}
    for name, case in cases.items():
        row = next(row for block in blocks(BEST, case) for row in block.rows if row.first.model == name)
        assert row.learned.word in (NOT_RANKED, NOT_SHOWN)
        assert "learned" not in describe_unlearned([row])


def test_a_training_of_no_steps_is_untrained_and_not_ranked() -> None:
    """Random weights without a step have no place, whatever they score; a checkpoint without a step has one."""
    no_steps = FitReport(parameters=9, ended_by="max_steps")
    plain, scores = trained("plain", 41, fit=no_steps)
    start = replace(plain, model="start", run_id="start-1")
    start = replace(start, config={**plain.config, "model": {"name": "start", "init": "some/folder"}})
    rows = {row.first.model: row for row in judged(BEST, (plain, scores), (start, scores)).rows}
    assert {name: row.ranked for name, row in rows.items()} == {"best": True, "plain": False, "start": True}
    assert rows["plain"].learned.word == UNTRAINED
    assert describe_unlearned([*rows.values()]) == (
        "Not ranked: plain (untrained: its random weights had no step of training)."
    )
    assert not plain.zero_shot
    assert not is_untrained(start)


def test_planted_facts_have_a_known_top() -> None:
    """12 % of the facts, where guesses reach 4 %, are 8 of 96 possible points, also for the best row of the table."""
    run, scores = trained("guess", 90, floor=None)
    facts = np.zeros(EXAMPLES)
    facts[:12] = 1
    scores = scores.assign(fact_recall=facts, fact_recall_chance=0.04)
    known = run, scores
    run = replace(run, measures={"fact_recall": MeasureMean(12, 6, 19, EXAMPLES)}, ranked_by="fact_recall")
    (row,) = judged((run, scores)).rows
    expected: Any = (NOT_LEARNED, "8.3 % of the possible gain", pytest.approx(4), pytest.approx(100 * 8 / 96))
    assert row.learned == expected
    assert known[0].fit.steps


def test_the_last_fall_by_hand() -> None:
    """From 9 to 3 the loss falls by 6; at step 300 of 400 it is 3.05, so 0.05 / 6 of it is in the last quarter."""
    assert last_fall(LEVELLED) == pytest.approx(0.05 / 6)
    between = replace(LEVELLED, validation_losses=((200, 5.0), (400, 3.0)))  # 4 at step 300
    assert last_fall(between) == pytest.approx(1 / 6)
    assert last_fall(replace(LEVELLED, validation_losses=((400, 3.0),))) is None


def test_training_that_goes_on_falling_is_named() -> None:
    """A loss that falls by a sixth of the whole in the last quarter has not levelled off; near the top it may."""
    falling = replace(LEVELLED, validation_losses=((200, 5.0), (400, 3.0)))
    assert words(BEST, trained("slow", 30, fit=falling)) == {"best": LEARNED, "slow": STILL_LEARNING}
    assert words(trained("best", 40, fit=falling)) == {"best": LEARNED}


def test_one_seed_that_did_not_learn_is_enough() -> None:
    """A row of three seeds learned if all did; the reason counts those that did not."""
    runs = [trained("mixed", score, seed=seed) for seed, score in ((1, 40), (2, 39), (3, 20.5))]
    row = next(row for row in judged(BEST, *runs).rows if row.first.model == "mixed")
    assert row.learned.word == NOT_LEARNED
    assert row.learned.reason.endswith("in 1 of 3 seeds")


def test_without_a_floor_it_is_not_known() -> None:
    """Of a trained system; extracts depend on their sources by construction, and Lead learns nothing."""
    run, scores = trained("extract", 40, floor=None)
    extract = replace(run, config={**run.config, "decode": {**run.config["decode"], "mode": "extract"}}), scores
    lead = trained("lead", 30, floor=None, fit=FitReport())
    assert words(trained("old", 40, floor=None), extract, lead) == {"old": UNKNOWN, "extract": LEARNED, "lead": ""}


def test_rows_that_did_not_learn_are_not_ranked() -> None:
    """They have no place, are never the best, never tied with it, and are named with the reason."""
    high, near = trained("high", 60, floor=60.0), trained("nearly", 39.9)
    block = judged(BEST, high, near)
    cells = row_cells(
        block, choose_columns(["system", "settings", "rougeLsum", "lift"], columns_of([BEST[0], high[0]]))
    )
    assert [(line[0], line[1]) for line in cells] == [("", "high"), ("1", "best"), ("2", "nearly")]
    assert [type(line[3]) for line in cells] == [str, Stressed, Tied]
    assert cells[0][2] == NOT_LEARNED
    assert [line[4] for line in cells][1:] == ["100 %", "99 %"]
    assert all(row != high[0].run_id for row, _ in block.tests.differences)
    assert describe_unlearned(block.rows).startswith("Not ranked: high (not learned: 0.0 % of the possible gain")
