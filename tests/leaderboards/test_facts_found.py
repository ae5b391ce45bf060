"""The sentences on planted facts: numbers with intervals, and the ties of the table."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import pytest
from support.run_records import TRAINED, changed, measured, record

from longsumbench.leaderboards.seed_groups import (
    LEARNED,
    NOT_LEARNED,
    STILL_LEARNING,
    UNKNOWN,
    Learned,
    group_by_seed,
)
from longsumbench.leaderboards.significance import ComparableRows, against_best, comparable_rows
from longsumbench.runs.record import RunRecord
from longsumbench.views.after_run import describe_facts_found

EXAMPLES = 40
_System = tuple[RunRecord, pd.DataFrame]


def system(
    model: str,
    single: float,
    seed: int = 1,
    silent_other: float = 90.0,
    silent_same: float = 90.0,
) -> _System:
    """A run that states `single` percent right ±2."""
    means = {"fact_recall": single, "fact_recall_single": single, "fact_recall_chance": 4.2}
    means |= {"fact_recall_silent_same": silent_same, "fact_recall_silent_other": silent_other}
    run = record(
        model,
        single,
        run_id=f"{seed}{model}000000"[:12],
        seed=seed,
        measures=measured(means, 2.0, 2.0),
    )
    stated = [float(number < single / 100 * EXAMPLES) for number in range(EXAMPLES)]
    ids = [f"e{number}" for number in range(EXAMPLES)]
    return run, pd.DataFrame({"fact_recall_single": stated}, index=ids)


def sentences(systems: Sequence[_System]) -> list[str]:
    scores = {run.run_id: table for run, table in systems}
    (block,) = comparable_rows([run for run, _ in systems], scores)
    return describe_facts_found(block)


def test_systems_places_and_distances() -> None:
    """Each number has its interval; the best system comes first."""
    assert sentences([system("trunc", 25), system("pagesum", 98, silent_other=53)]) == [
        "Single facts (in one place), stated right (guesses: right in 4 %): pagesum 98 % (96 to 100), "
        "trunc 25 % (23 to 27).",
        "Silent facts (in two places; which bid won is not stated; a guess of two is right in 50 %), in one section "
        "against several: pagesum 90 % (88 to 92) against 53 % (51 to 55); trunc 90 % (88 to 92) against 90 % (88 to "
        "92).",
    ]


def test_relayed_facts_have_their_own_sentence() -> None:
    """Systems are ordered by relayed facts, not by single ones."""
    runs = [system("ea", 40), system("seal", 60)]
    relayed = {"ea": 88.0, "seal": 5.0}
    more = [
        (
            changed(
                run,
                measures=dict(run.evaluation.measures)
                | measured({"fact_recall_relayed": relayed[run.key.model]}, 2.0, 2.0),
            ),
            table.assign(
                fact_recall_relayed=[
                    float(n < relayed[run.key.model] * EXAMPLES / 100) for n in range(EXAMPLES)
                ]
            ),
        )
        for run, table in runs
    ]
    text = next(sentence for sentence in sentences(more) if sentence.startswith("Relayed facts"))
    assert text.endswith("ea 88 % (86 to 90), seal 5 % (3 to 7).")


def test_ties_are_those_of_the_table() -> None:
    """Systems that the column's test does not distinguish from its best row are named, whatever their intervals."""
    (ahead, first), (behind, second) = systems = [system("ea", 55), system("seal", 53)]
    assert sentences([*systems, system("trunc", 25)])[0].endswith(
        " Not distinguished from the best: seal."
    )
    better = first.assign(fact_recall_single=second["fact_recall_single"] * 0.9 + 0.1)
    worse = second.assign(fact_recall_single=second["fact_recall_single"] * 0.9)
    assert sentences([(ahead, better), (behind, worse)])[0].endswith("seal 53 % (51 to 55).")


@pytest.mark.parametrize(
    ("seeds", "tie"), [((1,), ""), ((1, 2, 3), " Not distinguished from the best: seal.")]
)
def test_one_seed_is_no_verdict(seeds: Sequence[int], tie: str) -> None:
    """Of single runs of trained systems only the numbers are given; the same scores over three seeds name a tie."""
    systems = [
        system(name, share, seed) for name, share in (("ea", 55), ("seal", 53)) for seed in seeds
    ]
    scores = {run.run_id: table for run, table in systems}
    groups = group_by_seed([replace(run, fit=TRAINED) for run, _ in systems], scores)
    rows = [replace(row, learned=Learned(LEARNED)) for row in groups]
    text = describe_facts_found(ComparableRows(tuple(rows), against_best(rows, scores)))[0]
    assert text.endswith(f").{tie}")


@pytest.mark.parametrize("word", [NOT_LEARNED, STILL_LEARNING, UNKNOWN])
def test_systems_that_did_not_learn_are_left_out(word: str) -> None:
    """Their numbers are in no sentence, although their intervals and places differ from the others'."""
    systems = [system("pagesum", 98), system("trunc", 25, silent_other=53)]
    scores = {run.run_id: table for run, table in systems}
    pagesum, trunc = group_by_seed([run for run, _ in systems], scores)
    both = ComparableRows((pagesum, replace(trunc, learned=Learned(word))))
    texts = describe_facts_found(both)
    assert texts == describe_facts_found(ComparableRows((pagesum,)))
    assert len(texts) == 2
    assert "trunc" not in " ".join(texts)


def test_the_best_row_of_each_model_counts() -> None:
    """Further rows of a model are left out; the label then has the settings."""
    runs = [
        replace(system("ea", single, seed)[0], variant=f"x={seed}")
        for seed, single in ((1, 40.0), (2, 60.0))
    ]
    assert describe_facts_found(ComparableRows(group_by_seed(runs, {})))[0].endswith(
        "(guesses: right in 4 %): ea x=2 60 % (58 to 62)."
    )
