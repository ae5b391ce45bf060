"""Whether a system learned to summarize: from its outputs against other references, and from its training."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.run_records import changed, record

from longsumbench.core import Cut, FitReport, Truncation
from longsumbench.leaderboards.learned import RANDOM, last_fall
from longsumbench.leaderboards.seed_groups import (
    DEPENDS,
    LEARNED,
    NOT_LEARNED,
    NOT_RANKED,
    NOT_SHOWN,
    STILL_LEARNING,
    UNKNOWN,
    Learned,
)
from longsumbench.leaderboards.significance import LeaderboardBlock, build_blocks
from longsumbench.metrics.aggregate import MeasureMean
from longsumbench.metrics.output_stats import OutputStats
from longsumbench.runs.record import ImportedOutputs, RunRecord
from longsumbench.views.column_list import choose_columns, collect_columns
from longsumbench.views.leaderboard import row_cells
from longsumbench.views.tables import Stressed, Tied

EXAMPLES = 100
LEVELLED = FitReport(
    steps=400, first_loss=9.0, validation_losses=((100, 4.0), (200, 3.1), (300, 3.05), (400, 3.0))
)
NOT_ENOUGH = ": not shown that its outputs depend enough on their sources"
NO_RANDOM = "Random has no run here"
ALIKE = OutputStats(EXAMPLES, EXAMPLES, EXAMPLES // 8, 0)
BART = {"checkpoint": "facebook/bart-large-cnn"}
FALL = "17 % of the fall of the loss in the last quarter of the steps"
FALLING = replace(LEVELLED, validation_losses=((200, 5.0), (400, 3.0)))
Scored = tuple[RunRecord, pd.DataFrame]


def spread(name: str, size: float) -> Any:
    """Deviations of this size around 0, the same for the same name."""
    values = np.random.default_rng(sum(map(ord, name))).normal(0, size, EXAMPLES)
    return values - values.mean()


def trained(
    name: str, score: float, floor: float | None = 20.0, bigrams: float = 12.0, **changes: Any
) -> Scored:
    """A trained run with these means of ROUGE-Lsum and R-2 (0–100), and its scores; the floor of R-2 is 2."""
    columns = {
        f"{kind}_{statistic}": (score + spread(name, 3)) / 100
        for kind in ("rouge1", "rougeL", "rougeLsum")
        for statistic in "prf"
    }
    columns |= {
        f"rouge2_{statistic}": (bigrams + spread(name[::-1], 1)) / 100 for statistic in "prf"
    }
    if floor is not None:
        columns["rougeLsum_floor"] = (floor + spread(f"floor of {name}", 3)) / 100
    scores = pd.DataFrame(columns, index=[f"{number:03d}" for number in range(EXAMPLES)])
    floors = {} if floor is None else {"rouge2": 2.0, "rougeLsum": floor}
    run = changed(
        record(name, score, run_id=f"{name}-{changes.get('seed', 1)}", n=EXAMPLES), floor=floors
    )
    return changed(
        run, **{"fit": LEVELLED, "outputs": OutputStats(EXAMPLES, EXAMPLES, EXAMPLES, 0), **changes}
    ), scores


def imported(name: str, *numbers: float, **changes: Any) -> Scored:
    """As `trained`, but imported."""
    return trained(
        name,
        *numbers,
        **{"fit": FitReport(), "imported": ImportedOutputs("them.txt", "0", ""), **changes},
    )


def first(scored: Scored, number: int) -> Scored:
    """A run on the first examples alone."""
    return changed(scored[0], n=number, examples="few"), scored[1].head(number)


def planted(
    name: str, share: float, chance: float = 0.042, seen: float = 1.0, **changes: Any
) -> Scored:
    """A trained run that states this share of the planted facts right; it read the share `seen` of the sources."""
    run, scores = trained(name, 90, floor=None, **changes)
    scores = scores.assign(fact_recall=share + spread(name, 0.05), fact_recall_chance=chance)
    source = Truncation(1_000, 800, (Cut("input_length", round(1_000 * (1 - seen)), 0),))
    measures = {"fact_recall": MeasureMean(100 * share, 0, 100, EXAMPLES)}
    return changed(run, measures=measures, ranked_by="fact_recall", source=source), scores


def judged(*runs: Scored) -> LeaderboardBlock:
    """The runs as a block of a table."""
    (block,) = build_blocks([run for run, _ in runs], {run.run_id: scores for run, scores in runs})
    return block


def gate(*runs: Scored) -> dict[str, Learned]:
    """System → what the gate says."""
    return {row.representative.key.model: row.learned for row in judged(*runs).rows}


BEST = trained("best", 40)
RANDOM_RUN = trained(
    RANDOM, 30, bigrams=6.0, fit=FitReport()
)  # gains 4 in R-2, and in nearly all examples


def surviving(scored: Scored) -> Scored:
    """The run on texts with planted facts, of which it states none."""
    run, scores = scored
    none = {"fact_survival": 0.0, "fact_survival_floor": 0.0, "fact_survival_chance": 0.06}
    measures = {"fact_survival": MeasureMean(0, 0, 0, EXAMPLES)}
    return changed(run, measures=measures, ranked_by="fact_survival"), scores.assign(**none)


def few_right(name: str) -> Scored:
    """A run of which every tenth output is right; the others fit any source."""
    run, scores = trained(name, 30)
    gains = np.where(np.arange(EXAMPLES) % 2, -1.0, 1.0)
    gains[::10] = 80
    return run, scores.assign(rougeLsum_f=scores["rougeLsum_floor"] + gains / 100)


def without_gain(name: str, **changes: Any) -> Scored:
    """A run that scores as high against other references: its outputs do not depend on their sources."""
    run, scores = trained(name, 35, floor=35.0, bigrams=2.0, **changes)
    return run, scores.assign(rougeLsum_floor=scores["rougeLsum_f"].to_numpy()[::-1])


# Runs next to Random's, which gains 6 − 2 = 4 in R-2
BESIDE_RANDOM = [
    # They gain 12 − 2 = 10, 4.5 − 2 and 3 − 2
    (BEST, LEARNED, ""),
    (trained("near", 26, bigrams=4.5), LEARNED, ""),
    (trained("words", 38, bigrams=3.0), NOT_LEARNED, "gains 1.0 in R-2, Random 4.0"),
    # The mean gain is that of a system that knows all sources a little, but most outputs gain nothing
    (few_right("mixture"), NOT_LEARNED, "gains in 50 % of the examples, Random in 97 %"),
    (trained("slow", 50, fit=FALLING), STILL_LEARNING, FALL),
    # Without a floor it is not known; extracts depend on their sources, and Lead learns nothing
    (trained("old", 40, floor=None), UNKNOWN, "its floor is not known"),
    (trained("extract", 40, floor=None, config={"decode": {"mode": "extract"}}), LEARNED, ""),
    (trained("lead", 30, floor=None, fit=FitReport()), "", ""),
    # What was not trained here depends on its source, or is not ranked; a copy of Lead is, though Random gains more
    (imported("copy", 24.0, 20.0, 4.2, outputs=ALIKE), DEPENDS, ""),
    (
        without_gain("constant", outputs=ALIKE),
        NOT_LEARNED,
        "nearly identical outputs, 12 of 100 distinct",
    ),
    (trained("good", 38, fit=FitReport(), system=BART), DEPENDS, ""),
    (
        without_gain("none", fit=FitReport(), system={"engine": "vllm"}),
        NOT_RANKED,
        "gains 0.0 in R-2, Random 4.0",
    ),
]


@pytest.mark.parametrize(("run", "word", "reason"), BESIDE_RANDOM)
def test_whether_a_system_learned(run: Scored, word: str, reason: str) -> None:
    """Cases by hand."""
    assert gate(RANDOM_RUN, run)[run[0].key.model][:2] == (word, reason)


@pytest.mark.parametrize(
    ("runs", "word", "reason"),
    [
        # On texts with planted facts, R-2 decides
        ((surviving(RANDOM_RUN), surviving(BEST)), LEARNED, ""),
        (
            (surviving(RANDOM_RUN), surviving(trained("words", 38, bigrams=2.0))),
            NOT_LEARNED,
            "gains 0.0 in R-2, Random 4.0",
        ),
        # Of planted facts a system is judged by what it can see: all that it can, too few, nearly a quarter
        ((planted("perfect", 0.25 + 0.75 * 0.042, seen=0.25),), LEARNED, ""),
        ((planted("poor", 0.065, seen=0.25),), NOT_LEARNED, "9.6 % of the possible gain"),
        ((planted("whole", 0.277),), NOT_SHOWN, f"100 examples{NOT_ENOUGH}"),
        # A loss that falls by a sixth in the last quarter has not levelled off; near the top of all facts it may
        ((planted("most", 0.93, fit=FALLING),), LEARNED, ""),
        ((planted("half", 0.5, fit=FALLING),), STILL_LEARNING, FALL),
        # One seed of three that did not learn is enough
        (
            (
                RANDOM_RUN,
                trained("mixed", 40, seed=1),
                trained("mixed", 40, bigrams=11.0, seed=2),
                trained("mixed", 40, bigrams=2.5, seed=3),
            ),
            NOT_LEARNED,
            "gains 0.5 in R-2, Random 4.0 in 1 of 3 seeds",
        ),
        # Without Random it is not known
        ((BEST,), UNKNOWN, NO_RANDOM),
        ((trained(RANDOM, 30, floor=None, fit=FitReport()), BEST), UNKNOWN, NO_RANDOM),
        ((imported(RANDOM, 30.0), BEST), UNKNOWN, NO_RANDOM),
        # Not shown is not the opposite
        (
            (first(RANDOM_RUN, 4), first(without_gain("few"), 4)),
            NOT_SHOWN,
            f"4 examples{NOT_ENOUGH}",
        ),
        (
            (first(RANDOM_RUN, 1), first(without_gain("few"), 1)),
            NOT_SHOWN,
            f"1 example{NOT_ENOUGH}",
        ),
    ],
)
def test_whether_a_system_among_others_learned(
    runs: tuple[Scored, ...], word: str, reason: str
) -> None:
    """Cases by hand; what is asked about is the last run."""
    assert gate(*runs)[runs[-1][0].key.model][:2] == (word, reason)


def test_floor_and_lift_by_hand() -> None:
    """Of facts, 65 of 1,000 are 2.3 points above chance, of 95.8 in the quarter that was read; else, R-2 by Random's."""
    learned = gate(RANDOM_RUN, BEST, trained("near", 26, bigrams=4.5))
    lifts = [learned[name].lift for name in ("best", "near", RANDOM)]
    assert lifts == pytest.approx([250, 62.5, 100])
    assert learned["best"].floor == pytest.approx(20)
    poor = gate(planted("poor", 0.065, seen=0.25))["poor"]
    assert (poor.floor, poor.lift) == pytest.approx((4.2, 100 * (6.5 - 4.2) / (0.25 * 95.8)))


@pytest.mark.parametrize("seed", range(10))
def test_other_rows_change_nothing(seed: int) -> None:
    """What the gate says of a row is the same alone with Random, and among any other rows."""
    draw = np.random.default_rng(seed)
    rows = []
    for place in range(6):
        score, floor = draw.uniform(20, 40, 2)
        changes: dict[str, Any] = {"fit": FALLING} if place > 3 else {}
        rows.append(trained(f"row{place}", score, floor, draw.uniform(2, 8), **changes))
    rows += [few_right("mixture"), imported("theirs", 35.0, 20.0, draw.uniform(2, 8))]
    whole = gate(
        RANDOM_RUN, trained("perfect", 99, 10.0, 98.0), trained("oracle", 99, oracle=True), *rows
    )
    alone = {run.key.model: gate(RANDOM_RUN, (run, scores))[run.key.model] for run, scores in rows}
    assert {name: whole[name] for name in alone} == alone
    assert len({learned.word for learned in alone.values()}) > 1


def test_a_training_of_no_steps_is_untrained_and_not_ranked() -> None:
    """Random weights without a step have no place, whatever they score; a checkpoint without a step has one."""
    plain, scores = trained("plain", 41, fit=FitReport(parameters=9, ended_by="max_steps"))
    model = {"name": "start", "init": "some/folder"}
    start = changed(plain, model="start", run_id="start-1", config={"model": model})
    rows = judged(RANDOM_RUN, BEST, (plain, scores), (start, scores)).rows
    assert [row.representative.key.model for row in rows if not row.ranked] == ["plain"]


def test_the_last_fall_by_hand() -> None:
    """From 9 to 3 the loss falls by 6; at step 300 of 400 it is 3.05, so 0.05 / 6 of it is in the last quarter."""
    assert last_fall(LEVELLED) == pytest.approx(0.05 / 6)
    assert last_fall(FALLING) == pytest.approx(1 / 6)  # 4 at step 300
    assert last_fall(replace(LEVELLED, validation_losses=((400, 3.0),))) is None


def test_rows_that_did_not_learn_are_not_ranked() -> None:
    """They have no place, are never the best, never tied with it, and are named with the reason."""
    high, scores = without_gain("high")
    high_scores = scores.assign(rougeLsum_f=0.6, rougeLsum_floor=0.6)
    block = judged(RANDOM_RUN, BEST, (high, high_scores), trained("nearly", 39.9))
    columns = choose_columns(["system", "remarks", "rougeLsum"], collect_columns([high]))
    lines = {line[1]: line for line in row_cells(block, columns)}
    assert [lines[name][0] for name in ("high", "best", "nearly", RANDOM)] == ["", "1", "2", "3"]
    kinds = [type(lines[name][3]) for name in ("high", "best", "nearly", RANDOM)]
    assert kinds == [str, Stressed, Tied, str]
    assert lines["high"][2] == NOT_LEARNED
