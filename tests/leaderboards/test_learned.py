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
from longsumbench.leaderboards.significance import ComparableRows, comparable_rows
from longsumbench.metrics.aggregate import MeasureMean
from longsumbench.metrics.output_facts import OutputFacts
from longsumbench.runs.record import ImportedOutputs, RunRecord
from longsumbench.views.columns import choose_columns, columns_of
from longsumbench.views.leaderboard import row_cells
from longsumbench.views.notes import describe_unlearned
from longsumbench.views.tables import Stressed, Tied

EXAMPLES = 100
LEVELLED = FitReport(
    steps=400, first_loss=9.0, validation_losses=((100, 4.0), (200, 3.1), (300, 3.05), (400, 3.0))
)
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
        f"{kind}_{part}": (score + spread(name, 3)) / 100
        for kind in ("rouge1", "rougeL", "rougeLsum")
        for part in "prf"
    }
    columns |= {f"rouge2_{part}": (bigrams + spread(name[::-1], 1)) / 100 for part in "prf"}
    if floor is not None:
        columns["rougeLsum_floor"] = (floor + spread(f"floor of {name}", 3)) / 100
    scores = pd.DataFrame(columns, index=[f"{number:03d}" for number in range(EXAMPLES)])
    floors = {} if floor is None else {"rouge2": 2.0, "rougeLsum": floor}
    run = changed(
        record(name, score, run_id=f"{name}-{changes.get('seed', 1)}", n=EXAMPLES), floor=floors
    )
    return changed(
        run, **{"fit": LEVELLED, "outputs": OutputFacts(EXAMPLES, EXAMPLES, EXAMPLES, 0), **changes}
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


def judged(*runs: Scored) -> ComparableRows:
    """The runs as a block of a table."""
    (block,) = comparable_rows(
        [run for run, _ in runs], {run.run_id: scores for run, scores in runs}
    )
    return block


def gate(*runs: Scored) -> dict[str, Learned]:
    """System → what the gate says."""
    return {row.first.key.model: row.learned for row in judged(*runs).rows}


def words(*runs: Scored) -> dict[str, str]:
    """System → whether it learned, without that of Random, which learns nothing."""
    return {model: learned.word for model, learned in gate(*runs).items() if model != RANDOM}


BEST = trained("best", 40)
RANDOM_RUN = trained(
    RANDOM, 30, bigrams=6.0, fit=FitReport()
)  # gains 4 in R-2, and in nearly all examples


def test_facts_in_natural_texts_may_be_left_out() -> None:
    """On texts with planted facts, R-2 decides: a system that states none learned, one without bigrams did not."""

    def surviving(scored: Scored) -> Scored:
        run, scores = scored
        none = {"fact_survival": 0.0, "fact_survival_floor": 0.0, "fact_survival_chance": 0.06}
        measures = {"fact_survival": MeasureMean(0, 0, 0, EXAMPLES)}
        return changed(run, measures=measures, ranked_by="fact_survival"), scores.assign(**none)

    runs = [RANDOM_RUN, BEST, trained("words", 38, bigrams=2.0)]
    assert words(*map(surviving, runs)) == {"best": LEARNED, "words": NOT_LEARNED}


def test_half_of_randoms_gain_in_bigrams_is_required() -> None:
    """By hand: Random gains 6 − 2 = 4 in R-2, the others 12 − 2 = 10 (250 %), 4.5 − 2 (62 %) and 3 − 2 (25 %)."""
    learned: dict[str, Any] = gate(
        RANDOM_RUN, BEST, trained("near", 26, bigrams=4.5), trained("words", 38, bigrams=3.0)
    )
    assert learned["best"] == (LEARNED, "", pytest.approx(20), pytest.approx(250))
    assert learned["near"] == (LEARNED, "", pytest.approx(20), pytest.approx(62.5))
    assert learned["words"] == (
        NOT_LEARNED,
        "gains 1.0 in R-2, Random 4.0",
        pytest.approx(20),
        pytest.approx(25),
    )
    assert learned[RANDOM] == ("", "", pytest.approx(20), pytest.approx(100))


def few_right(name: str, **changes: Any) -> Scored:
    """A run of which every tenth output is right; the others fit any source."""
    run, scores = trained(name, 30, floor=20.0, bigrams=12.0, **changes)
    gains = np.where(np.arange(EXAMPLES) % 2, -1.0, 1.0)
    gains[::10] = 80
    return run, scores.assign(rougeLsum_f=scores["rougeLsum_floor"] + gains / 100)


def test_a_few_right_outputs_are_not_enough() -> None:
    """Their mean gain is that of a system that knows all sources a little, but most outputs gain nothing."""
    learned = gate(RANDOM_RUN, few_right("mixture"))["mixture"]
    assert learned[:2] == (NOT_LEARNED, "gains in 50 % of the examples, Random in 97 %")
    assert learned.lift == pytest.approx(250)


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


def test_a_copy_of_lead_is_ranked() -> None:
    """Also where Lead gains less than Random, and copies the same sentences for all questions about a source."""
    same = OutputFacts(EXAMPLES, EXAMPLES, EXAMPLES // 8, 0)
    lead = trained("lead", 24, bigrams=4.2, fit=FitReport(), outputs=same)
    copy = imported("copy", 24.0, 20.0, 4.2, outputs=same)
    rows = {
        row.first.key.model: row
        for row in judged(RANDOM_RUN, lead, copy, trained("perfect", 99, 10.0, 98.0)).rows
    }
    assert rows["lead"].ranked
    assert rows["copy"].learned.word == DEPENDS
    constant = changed(without_gain("constant")[0], outputs=same), without_gain("constant")[1]
    assert (
        gate(RANDOM_RUN, constant)["constant"].reason
        == "nearly identical outputs, 12 of 100 distinct"
    )


def without_gain(name: str, **changes: Any) -> Scored:
    """A run that scores as high against other references: its outputs do not depend on their sources."""
    run, scores = trained(name, 35, floor=35.0, bigrams=2.0, **changes)
    return run, scores.assign(rougeLsum_floor=scores["rougeLsum_f"].to_numpy()[::-1])


@pytest.mark.parametrize("examples", [1, 2, 4])
def test_few_examples_show_nothing(examples: int) -> None:
    """Not shown is not the opposite: the row is ranked, and the sentence gives the number of examples."""
    block = judged(first(RANDOM_RUN, examples), first(without_gain("few"), examples))
    row = next(row for row in block.rows if row.first.key.model == "few")
    assert row.learned.word == NOT_SHOWN
    assert row.ranked
    counted = "1 example" if examples == 1 else f"{examples} examples"
    assert (
        f"few ({counted}: not shown that its outputs depend enough on their sources)"
        in describe_unlearned([row])
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"system": {"checkpoint": "facebook/bart-large-cnn"}},
        {"system": {"engine": "vllm"}},
        {"imported": ImportedOutputs("them.txt", "0", "")},
    ],
)
def test_what_was_not_trained_here_never_learned(changes: dict[str, Any]) -> None:
    """A checkpoint, a language model and imported outputs depend on their sources, or are not ranked."""
    elsewhere: dict[str, Any] = {"fit": FitReport(), **changes}
    loops = OutputFacts(EXAMPLES, EXAMPLES, EXAMPLES, EXAMPLES)
    runs = [
        without_gain("none", **elsewhere),
        trained("loops", 38, **elsewhere, outputs=loops),
        trained("good", 38, **elsewhere),
    ]
    expected = {"none": NOT_RANKED, "loops": NOT_RANKED, "good": DEPENDS}
    assert {
        run.key.model: words(RANDOM_RUN, (run, scores))[run.key.model] for run, scores in runs
    } == expected


def test_a_training_of_no_steps_is_untrained_and_not_ranked() -> None:
    """Random weights without a step have no place, whatever they score; a checkpoint without a step has one."""
    plain, scores = trained("plain", 41, fit=FitReport(parameters=9, ended_by="max_steps"))
    model = {"name": "start", "init": "some/folder"}
    start = changed(plain, model="start", run_id="start-1", config={"model": model})
    rows = judged(RANDOM_RUN, BEST, (plain, scores), (start, scores)).rows
    assert [row.first.key.model for row in rows if not row.ranked] == ["plain"]
    assert describe_unlearned(rows) == (
        "Not ranked: plain (untrained: its random weights had no step of training)."
    )


def test_a_system_is_judged_by_the_facts_that_it_can_see() -> None:
    """A perfect system that reads a quarter states 25 % and 4.2 % of the rest, all that it can."""
    perfect, poor = (
        planted("perfect", 0.25 + 0.75 * 0.042, seen=0.25),
        planted("poor", 0.065, seen=0.25),
    )
    learned: dict[str, Any] = gate(perfect, poor)
    assert learned["perfect"] == (LEARNED, "", pytest.approx(4.2), pytest.approx(100))
    lift = 100 * (6.5 - 4.2) / (0.25 * (100 - 4.2))
    assert learned["poor"] == (
        NOT_LEARNED,
        "9.6 % of the possible gain",
        pytest.approx(4.2),
        pytest.approx(lift),
    )
    assert words(planted("whole", 0.277)) == {"whole": NOT_SHOWN}  # nearly a quarter of all facts


def test_the_last_fall_by_hand() -> None:
    """From 9 to 3 the loss falls by 6; at step 300 of 400 it is 3.05, so 0.05 / 6 of it is in the last quarter."""
    assert last_fall(LEVELLED) == pytest.approx(0.05 / 6)
    assert last_fall(FALLING) == pytest.approx(1 / 6)  # 4 at step 300
    assert last_fall(replace(LEVELLED, validation_losses=((400, 3.0),))) is None


def test_training_that_goes_on_falling_is_named() -> None:
    """A loss that falls by a sixth in the last quarter has not levelled off; near the top of all facts it may."""
    assert words(RANDOM_RUN, BEST, trained("slow", 50, fit=FALLING)) == {
        "best": LEARNED,
        "slow": STILL_LEARNING,
    }
    facts = planted("most", 0.93, fit=FALLING), planted("half", 0.5, fit=FALLING)
    assert words(*facts) == {"most": LEARNED, "half": STILL_LEARNING}


def test_one_seed_that_did_not_learn_is_enough() -> None:
    """A row of three seeds learned if all did; the reason counts those that did not."""
    runs = [
        trained("mixed", 40, bigrams=bigrams, seed=seed)
        for seed, bigrams in ((1, 12.0), (2, 11.0), (3, 2.5))
    ]
    learned = gate(RANDOM_RUN, *runs)["mixed"]
    assert learned.word == NOT_LEARNED
    assert learned.reason.endswith("in 1 of 3 seeds")


def test_without_a_floor_it_is_not_known() -> None:
    """Of a trained system; extracts depend on their sources by construction, and Lead learns nothing."""
    run, scores = trained("extract", 40, floor=None)
    extract = (
        changed(run, config={"decode": {"mode": "extract"}}),
        scores,
    )
    lead = trained("lead", 30, floor=None, fit=FitReport())
    learned = gate(RANDOM_RUN, trained("old", 40, floor=None), extract, lead)
    assert {name: learned[name].word for name in ("old", "extract", "lead")} == {
        "old": UNKNOWN,
        "extract": LEARNED,
        "lead": "",
    }
    assert learned["old"].reason == "its floor is not known"


def test_without_random_it_is_not_known() -> None:
    """The reason says what is missing: its run, or the floor of an older one. An imported run of that name is none."""
    old = trained(RANDOM, 30, floor=None, fit=FitReport())
    for others in ([], [old], [imported(RANDOM, 30.0)]):
        learned = gate(BEST, *others)["best"]
        assert learned[:2] == (UNKNOWN, "Random has no run here")


def test_rows_that_did_not_learn_are_not_ranked() -> None:
    """They have no place, are never the best, never tied with it, and are named with the reason."""
    high, scores = without_gain("high")
    high_scores = scores.assign(rougeLsum_f=0.6, rougeLsum_floor=0.6)
    block = judged(RANDOM_RUN, BEST, (high, high_scores), trained("nearly", 39.9))
    columns = choose_columns(["system", "remarks", "rougeLsum"], columns_of([high]))
    lines = {line[1]: line for line in row_cells(block, columns)}
    assert [lines[name][0] for name in ("high", "best", "nearly", RANDOM)] == ["", "1", "2", "3"]
    kinds = [type(lines[name][3]) for name in ("high", "best", "nearly", RANDOM)]
    assert kinds == [str, Stressed, Tied, str]
    assert lines["high"][2] == NOT_LEARNED
    assert describe_unlearned(block.rows).startswith(
        "Not ranked: high (not learned: gains 0.0 in R-2, Random 4.0"
    )
