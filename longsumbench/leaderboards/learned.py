"""Whether the systems of a table learned to summarize: no conclusion is drawn about those that did not.

rows of comparable runs, per-example scores --gate_rows--> a `Learned` for each row

A run learned if (a) its outputs depend on their sources: they fit their own references better than those of other
examples; (b) they have words, differ from each other and do not repeat themselves; (c) training had levelled off. Of
generated facts, (a) asks for a quarter of what the run could see. Of other texts, it asks for half of what Random, which
copies any sentences of the source, gains in R-2, and for half of its excess of examples with a gain. A summary may leave
out facts that `dataset.plant` put into a natural text, so there both are in R-2. Other rows change nothing. If examples
are too few to show (a) or its opposite, that is "not shown", and the row is ranked. A system that was not trained here is
never "learned" or "not learned", but "depends on its source" or "not ranked".
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longsumbench.core import FitReport
from longsumbench.leaderboards.comparability import SURVIVAL
from longsumbench.leaderboards.seed_groups import (
    DEPENDS,
    LEARNED,
    NEVER_RANKED,
    NOT_LEARNED,
    NOT_RANKED,
    NOT_SHOWN,
    STILL_LEARNING,
    UNKNOWN,
    UNTRAINED,
    Learned,
    ResultRow,
    ScoresOfRuns,
    collect_runs,
    unit_factor,
)
from longsumbench.metrics.aggregate import PERCENT, read_groups
from longsumbench.metrics.evaluate import floor_column, score_column
from longsumbench.metrics.output_stats import collapse_reasons
from longsumbench.metrics.statistics import paired_effect
from longsumbench.runs.record import RunRecord, is_untrained, source_seen

RANDOM = "random"  # the baseline whose gain is the measure of other texts
_SHARE_OF_FACTS, _SHARE_OF_RANDOM = 0.25, 0.5  # that is required
_BIGRAMS = "rouge2"  # words of the source in any order gain nothing in it
_NEAR_THE_TOP = (
    90.0  # percent of the possible gain, after which the slope of the loss does not matter
)
_LAST_PART, _LARGEST_FALL = 0.25, 0.04  # of the steps, and of the whole fall of the validation loss
_LEVEL = 0.05  # of each one-sided test
_FEWEST_LOSSES = 2  # validations, with which the fall in the last part is known
_WORST_FIRST = (*NEVER_RANKED, UNKNOWN, NOT_SHOWN, LEARNED, DEPENDS, "")


class _Gains(NamedTuple):
    """What a run scores more with its sources than without, of each example.

    Attributes:
        ranking_gain: the ranking score minus its floor; of facts in natural texts, `bigram_gain`.
        floor: mean score against other examples, or by chance; in the unit of the ranking score.
        bigram_gain: R-2 minus its mean floor, 0–100; None if that is unknown.
        possible_gain: of generated facts, the gain that is possible with what was read; None for other texts.
        groups: number of each example's group; None if each is a group of its own.
    """

    ranking_gain: NDArray[np.float64]
    floor: float
    bigram_gain: NDArray[np.float64] | None
    possible_gain: NDArray[np.float64] | None
    groups: NDArray[np.int64] | None


def gate_rows(rows: Sequence[ResultRow], scores: ScoresOfRuns) -> dict[str, Learned]:
    """Return key of a row → whether its system learned.

    Of the rows, only Random's affects others: its run with the fewest settings. All runs are on the same examples.
    """
    runs = collect_runs(rows)
    gains = {run.run_id: _measure_gains(run, scores) for run in runs}
    random_runs = [
        run for run in runs if run.key.model == RANDOM and run.evaluation.floor and not run.imported
    ]
    random_run = min(
        random_runs, key=lambda run: (run.variant, run.key.seed or 0, run.run_id), default=None
    )
    # Random copies any sentences: what it gains is what a system gains without choosing
    anchor = gains[random_run.run_id] if random_run else None
    judged = {}
    for row in rows:
        of_runs = [_judge_run(run, gains[run.run_id], anchor) for run in row.runs]
        judged[row.key] = _judge_row(of_runs)
    return judged


def _measure_gains(run: RunRecord, scores: ScoresOfRuns) -> _Gains | None:
    name, table = run.evaluation.ranked_by, scores.get(run.run_id)
    chance, measured = f"{name}_chance", floor_column(name)
    if table is None or not (measured in table or chance in table):
        return None
    factor, seen = unit_factor(run, name), source_seen(run)
    # Against other references, or by guesses
    floor = factor * np.asarray(table[measured if measured in table else chance])
    ranking_gain = factor * np.asarray(table[score_column(name)]) - floor
    if not np.isfinite(ranking_gain).any():
        return None
    bigram_gain = possible_gain = None
    if run.evaluation.floor:
        bigrams = PERCENT * np.asarray(table[score_column(_BIGRAMS)])
        bigram_gain = bigrams - run.evaluation.floor[_BIGRAMS]
    if name == SURVIVAL:
        if bigram_gain is None:
            return None
        ranking_gain = bigram_gain
    elif chance in table:
        visible = 1.0 if seen is None else seen / PERCENT
        possible_gain = visible * (factor - floor)
    return _Gains(
        ranking_gain, float(np.nanmean(floor)), bigram_gain, possible_gain, read_groups(table)
    )


def _judge_row(judged: Sequence[Learned]) -> Learned:
    """Judge a row by its runs: the worst word counts."""
    floors = [run.floor for run in judged if run.floor is not None]
    lifts = [run.lift for run in judged if run.lift is not None]
    # One seed that did not learn decides, whatever the others did
    worst = min(judged, key=lambda run: _WORST_FIRST.index(run.word))
    alike = sum(run.word == worst.word for run in judged)
    seeds = f" in {alike} of {len(judged)} seeds" if worst.reason and judged[1:] else ""
    floor = sum(floors) / len(floors) if floors else None
    lift = sum(lifts) / len(lifts) if lifts else None
    return worst._replace(reason=f"{worst.reason}{seeds}", floor=floor, lift=lift)


def _judge_run(run: RunRecord, gains: _Gains | None, anchor: _Gains | None) -> Learned:
    learned, has_gain, has_facts, groups = Learned(), False, False, None
    surplus: dict[str, NDArray[np.float64]] = {}
    if gains is not None:
        lift, surplus = _compare(gains, anchor)
        learned = Learned(floor=gains.floor, lift=lift)
        groups = gains.groups
        has_gain = _sign(gains.ranking_gain, groups) > 0
        # Of other texts, nobody knows the highest score
        has_facts = gains.possible_gain is not None
    if is_untrained(run):
        return learned._replace(word=UNTRAINED, reason="its random weights had no step of training")
    # Baselines learn nothing, so nothing is said of them
    if not (run.trained or run.zero_shot or run.imported is not None or run.system.engine):
        return learned
    failed, passed = NOT_LEARNED, LEARNED
    if not run.trained:
        failed, passed = NOT_RANKED, DEPENDS
    too_little = [reason for reason, values in surplus.items() if _sign(values, groups) < 0]
    # First what is surely bad, then what the examples do not show, then a loss that still falls
    if reasons := [*collapse_reasons(run.evaluation.outputs, has_gain), *too_little]:
        return learned._replace(word=failed, reason=reasons[0])
    if surplus:
        if not has_gain or min(map(np.nanmean, surplus.values())) < 0:
            examples = run.evaluation.describe_examples()
            reason = f"{examples}: not shown that its outputs depend enough on their sources"
            return learned._replace(word=NOT_SHOWN, reason=reason)
    elif run.config.decode.mode != "extract":  # what is copied from a source depends on it
        reason = "Random has no run here" if gains else "its floor is not known"
        return learned._replace(word=UNKNOWN, reason=reason)
    fall = last_fall(run.fit)
    is_near_the_top = has_facts and (learned.lift or 0.0) >= _NEAR_THE_TOP
    if fall is not None and fall > _LARGEST_FALL and not is_near_the_top:
        reason = f"{PERCENT * fall:.0f} % of the fall of the loss in the last quarter of the steps"
        return learned._replace(word=STILL_LEARNING, reason=reason)
    return learned._replace(word=passed)


def _compare(
    gains: _Gains, anchor: _Gains | None
) -> tuple[float | None, dict[str, NDArray[np.float64]]]:
    """Return the lift, and what a run can have too little of → by how much it has more than is required, by example.

    The latter is empty if it is unknown. Bigrams find words without order, which R-1 and R-L hardly tell from
    sentences. Signs find a few right outputs among others: they count as few examples, whatever they score.
    """
    if gains.possible_gain is not None:
        possible = float(np.nanmean(gains.possible_gain))
        lift = PERCENT * float(np.nanmean(gains.ranking_gain)) / possible if possible > 0 else 0.0
        surplus = gains.ranking_gain - _SHARE_OF_FACTS * gains.possible_gain
        return lift, {f"{lift:z.1f} % of the possible gain": surplus}
    if anchor is None or gains.bigram_gain is None or anchor.bigram_gain is None:
        return None, {}
    mean, mean_of_random = float(gains.bigram_gain.mean()), float(anchor.bigram_gain.mean())
    share = PERCENT * (gains.ranking_gain > 0).mean()
    share_of_random = PERCENT * (anchor.ranking_gain > 0).mean()
    too_small = f"gains {mean:z.1f} in R-2, Random {mean_of_random:.1f}"
    too_few = f"gains in {share:.0f} % of the examples, Random in {share_of_random:.0f} %"
    return PERCENT * mean / mean_of_random if mean_of_random > 0 else None, {
        too_small: gains.bigram_gain - _SHARE_OF_RANDOM * anchor.bigram_gain,
        too_few: np.sign(gains.ranking_gain) - _SHARE_OF_RANDOM * np.sign(anchor.ranking_gain),
    }


def _sign(values: NDArray[np.float64], groups: NDArray[np.int64] | None) -> float:
    """Return the sign of the mean; 0 if it may be by chance."""
    applies = np.isfinite(values)
    groups = None if groups is None else groups[applies]
    effect = paired_effect(values[applies, np.newaxis], groups=groups)
    return float(np.sign(effect.mean)) if effect.p_value() < 2 * _LEVEL else 0.0


def last_fall(report: FitReport) -> float | None:
    """Return the share of the fall of the loss that was in the last quarter of the steps.

    Between validations the loss is interpolated. It begins with the first training loss. The share is 0–1, negative if
    the loss rose; None with fewer than two validations.
    """
    if len(report.validation_losses) < _FEWEST_LOSSES:
        return None
    losses = [*report.validation_losses]
    if report.first_loss:
        losses.insert(0, (0, report.first_loss))
    steps, values = np.array(losses, dtype=float).T
    fall = values[0] - values[-1]
    late_loss = np.interp((1 - _LAST_PART) * report.steps, steps, values)
    return float((late_loss - values[-1]) / fall) if fall > 0 else None
