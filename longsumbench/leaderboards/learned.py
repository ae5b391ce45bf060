"""Whether the systems of a table learned to summarize: no conclusion is drawn about those that did not.

rows of comparable runs, per-example scores --judge_learning--> a `Learned` for each row

A run learned if (a) its outputs depend on their sources: they score higher than against the references of other
examples, by a quarter of what is possible; (b) they have words, differ from each other and do not repeat themselves;
(c) training had levelled off. A row learned if all its runs did. If examples are too few to show (a) or its opposite,
that is "not shown", and the row is ranked. A system that was not trained here is never "not learned", but "not ranked".
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from longsumbench.core import FitReport
from longsumbench.formatting import format_count
from longsumbench.leaderboards import seed_groups
from longsumbench.metrics.aggregate import PERCENT
from longsumbench.metrics.evaluate import floor_column, score_column
from longsumbench.metrics.output_facts import collapse_reasons
from longsumbench.metrics.statistics import paired_effect
from longsumbench.runs.record import RunRecord, is_untrained

LEAST_LIFT = 25.0  # percent of the possible gain
_NEAR_THE_TOP = 90.0  # percent of the possible gain, after which the slope of the loss does not matter
_LAST_PART, _LARGEST_FALL = 0.25, 0.04  # of the steps, and of the whole fall of the validation loss
_LEVEL = 0.05  # of the test
_FEWEST_LOSSES = 2  # validations, with which the fall in the last part is known
_WORST_FIRST = (
    seed_groups.NOT_LEARNED,
    seed_groups.NOT_RANKED,
    seed_groups.UNKNOWN,
    seed_groups.NOT_SHOWN,
    seed_groups.STILL_LEARNING,
)


class _Gain(NamedTuple):
    """What the outputs of a run gain by their sources, in the unit of the ranking score.

    Attributes:
        mean: the score minus the floor.
        floor: the score against other examples, or by chance.
        p: of the test that the mean is 0.
        high: upper end of the 95 % interval of the mean.
        top: the highest score that there is; None if it is unknown.
        examples: number of examples.
    """

    mean: float
    floor: float
    p: float
    high: float
    top: float | None
    examples: int


def judge_learning(
    rows: Sequence[seed_groups.SeedGroup], scores: seed_groups.ScoresOfRuns
) -> dict[str, seed_groups.Learned]:
    """Return key of a row → whether its system learned.

    The possible gain is that of the best row that saw no references. If guesses have a known score (planted facts), it
    is the way from there to 100.
    """
    gains = {run.run_id: _measure_gain(run, scores) for row in rows for run in row.runs}
    possible = max((_possible_gain(row, gains) for row in rows if not row.first.oracle), default=0.0)
    return {row.key: _judge_row(row, gains, possible) for row in rows}


def _measure_gain(run: RunRecord, scores: seed_groups.ScoresOfRuns) -> _Gain | None:
    name, table = run.ranked_by, scores.get(run.run_id)
    if table is None:
        return None
    chance, measured = f"{name}_chance", floor_column(name)
    base = next((column for column in (measured, chance) if column in table), None)
    column = score_column(name)
    if base is None or column not in table:
        return None
    factor = seed_groups.unit_factor(run, name)
    values = factor * np.stack([table[column], table[base]], axis=1)
    values = values[np.isfinite(values).all(axis=1)]
    if not len(values):
        return None
    gain = paired_effect(values[:, :1] - values[:, 1:])
    half = 0.0 if gain.error == 0 else gain.half_width()
    return _Gain(
        mean=gain.mean,
        floor=float(values[:, 1].mean()),
        p=gain.p_value(),
        high=math.inf if math.isnan(half) else gain.mean + half,
        top=factor if chance in table else None,
        examples=len(values),
    )


def _possible_gain(row: seed_groups.SeedGroup, gains: Mapping[str, _Gain | None]) -> float:
    run_gains = [gain for run in row.runs if (gain := gains[run.run_id])]
    possible_gains = [gain.mean if gain.top is None else gain.top - gain.floor for gain in run_gains]
    return sum(possible_gains) / len(possible_gains) if possible_gains else 0.0


def _judge_row(row: seed_groups.SeedGroup, gains: Mapping[str, _Gain | None], possible: float) -> seed_groups.Learned:
    run_gains = [gain for run in row.runs if (gain := gains[run.run_id])]
    floor = sum(gain.floor for gain in run_gains) / len(run_gains) if run_gains else None
    lifts = [PERCENT * gain.mean / possible for gain in run_gains if possible > 0]
    lift = sum(lifts) / len(lifts) if lifts else None
    if any(map(is_untrained, row.runs)):
        return seed_groups.Learned(seed_groups.UNTRAINED, "its random weights had no step of training", floor, lift)
    trained_runs = (  # here or elsewhere
        run for run in row.runs if run.trained or run.zero_shot or run.imported is not None or run.facts.engine
    )
    judged = [_judge_run(run, gains[run.run_id], possible) for run in trained_runs]
    for word in _WORST_FIRST:
        if reasons := [reason for verdict, reason in judged if verdict == word]:
            part = f" in {len(reasons)} of {len(judged)} seeds" if judged[1:] else ""
            return seed_groups.Learned(word, f"{reasons[0]}{part}", floor, lift)
    return seed_groups.Learned(seed_groups.LEARNED if judged else "", "", floor, lift)


def _judge_run(run: RunRecord, gain: _Gain | None, possible: float) -> tuple[str, str]:
    failed = seed_groups.NOT_LEARNED if run.trained else seed_groups.NOT_RANKED
    if problems := collapse_reasons(run.outputs):
        return failed, problems[0]
    lift = None
    if gain is not None:
        lift = PERCENT * gain.mean / possible if possible > 0 else 0.0
        is_shown = gain.mean > 0 and gain.p < _LEVEL
        if not is_shown and PERCENT * gain.high >= LEAST_LIFT * possible:
            examples = format_count(gain.examples, "example")
            return seed_groups.NOT_SHOWN, f"{examples}: not shown that its outputs depend on their sources"
        if not is_shown or lift < LEAST_LIFT:
            return failed, f"{lift:z.1f} % of the possible gain"
    elif run.settings.decode.mode != "extract":  # what is copied from a source depends on it
        return seed_groups.UNKNOWN, "its floor is not known"
    fall = last_fall(run.fit)
    if fall is not None and fall > _LARGEST_FALL and (lift is None or lift < _NEAR_THE_TOP):
        return (
            seed_groups.STILL_LEARNING,
            f"{PERCENT * fall:.0f} % of the fall of the loss in the last quarter of the steps",
        )
    return seed_groups.LEARNED, ""


def last_fall(report: FitReport) -> float | None:
    """Return the share of the fall of the loss that was in the last quarter of the steps.

    Between validations the loss is interpolated. It begins with the first training loss. The share is 0–1, negative if
    the loss rose; None with fewer than two validations.
    """
    losses = [*([(0, report.first_loss)] if report.first_loss else []), *report.validation_losses]
    if len(report.validation_losses) < _FEWEST_LOSSES:
        return None
    steps, values = np.array(losses, dtype=float).T
    fall = values[0] - values[-1]
    late_loss = np.interp((1 - _LAST_PART) * report.steps, steps, values)
    return float((late_loss - values[-1]) / fall) if fall > 0 else None
