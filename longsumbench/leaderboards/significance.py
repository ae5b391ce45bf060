"""Who is ahead: an `Outcome` for a pair of systems and for a block of a table. No other module compares numbers for it.

PairDifferences that are tested together --correct_differences--> CorrectedDifference: interval, p-value and outcome
LeaderboardBlock --decide--> BlockOutcome: the best row, the rows that it is ahead of, and those that nothing is shown of

`views.outcomes` says them in sentences.

The test is a paired t test over examples and, of several runs, seeds (`paired_effect`). P-values and intervals are
corrected (Holm). A table tests every number against the best of its column, corrected over the rows of that column in
a block of comparable rows. The correction does not account for choosing the best row by the same scores. In simulations
with 20 equal systems, a quarter of the columns (2 % of the rows) have a significant difference at the 5 % level. The
set of best systems, for the score that ranks, accounts for it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from longsumbench.errors import DataError
from longsumbench.leaderboards import comparability, seed_groups
from longsumbench.leaderboards.learned import gate_rows
from longsumbench.metrics import statistics
from longsumbench.metrics.aggregate import ScoreTable, read_score_table
from longsumbench.runs.record import RunRecord, measured_mean
from longsumbench.runs.results import Results

LEVEL, POWER = 0.05, 0.8
METHOD = f"paired t test, Holm-corrected in each column, p ≥ {LEVEL}"  # of the mark for ties
_ROUGE_COLUMNS = [
    f"{kind}_{statistic}" for kind, statistic in product(comparability.ROUGE_HEADINGS, "prf")
]
_LEAST_CASES = 30  # sources, for a set of best systems; with fewer, bootstrap errors are too small


class Outcome(StrEnum):
    """What is decided about two systems; the values are words of CSV files."""

    AHEAD = "distinguished"  # the one with the higher mean
    NOT_SHOWN = "not distinguished"
    FEW_EXAMPLES = "too few examples"
    SINGLE_SEED = "one seed"  # of a trained system: another may differ
    NOT_LEARNED = "not learned"
    NOT_COMPARABLE = "not comparable"  # an oracle, or scores of examples are missing


_Key = TypeVar("_Key")


class Correction(NamedTuple):
    """A p-value of several tests after Holm's correction.

    Attributes:
        p: the corrected p-value.
        level: the level of this test; an interval of confidence 1 − level contains 0 unless the test is significant.
        significant: True if the hypothesis is rejected.
    """

    p: float
    level: float
    significant: bool


def correct_together(p_values: Sequence[float]) -> list[Correction]:
    """Correct p-values for each other: the probability of any false rejection is 5 %."""
    corrected = statistics.holm(p_values).tolist()
    levels = statistics.holm_levels(p_values, LEVEL).tolist()
    return [Correction(p, level, p < LEVEL) for p, level in zip(corrected, levels, strict=True)]


class CorrectedDifference(NamedTuple):
    """A difference and what its test decides.

    Attributes:
        mean: in the unit of the number.
        low, high: its interval, at the level at which Holm's method tests it. It contains 0 unless the two are
            distinguished; for a single seed it is over the examples of that seed. NaN without a test.
        p: corrected p-value; None for a single seed.
        detectable: smallest difference that the corrected test detects with 80 % power; infinite if it detects none.
        p_alone: p-value without the correction; None for a single seed.
        confidence: of the interval, in percent; 95 for a difference that is tested alone.
    """

    mean: float
    low: float
    high: float
    outcome: Outcome
    p: float | None = None
    detectable: float = math.inf
    p_alone: float | None = None
    confidence: float = 95.0

    def reversed(self) -> "CorrectedDifference":
        """Return the difference of the same two in the other direction."""
        return self._replace(mean=-self.mean, low=-self.high, high=-self.low)


def correct_differences(
    pairs: Mapping[_Key, seed_groups.PairDifference],
) -> dict[_Key, CorrectedDifference]:
    """Test differences together; their p-values and levels are corrected for their number."""
    corrections = correct_together([pair.effect.p_value() for pair in pairs.values()])
    judged = zip(pairs.items(), corrections, strict=True)
    return {
        key: _correct_difference(pair, correction, len(pairs)) for (key, pair), correction in judged
    }


def _correct_difference(
    pair: seed_groups.PairDifference, correction: Correction, num_tests: int
) -> CorrectedDifference:
    effect = pair.effect
    strictest = LEVEL / num_tests  # the first level of Holm's method
    equal = effect.mean == 0 and effect.error == 0
    half = 0.0 if equal else effect.half_width(1 - correction.level)
    outcome = Outcome.AHEAD if correction.significant else Outcome.NOT_SHOWN
    p: float | None = correction.p
    p_alone: float | None = effect.p_value()
    # The least p-value of `paired_effect`
    if not correction.significant and 2.0 ** (1 - pair.groups) >= strictest:
        outcome = Outcome.FEW_EXAMPLES
        half = math.nan  # so the bounds are NaN, with their limits, too
    if pair.one_seed:
        outcome, p, p_alone = Outcome.SINGLE_SEED, None, None
    return CorrectedDifference(
        mean=effect.mean,
        low=max(effect.mean - half, -pair.limit),
        high=min(effect.mean + half, pair.limit),
        p=p,
        detectable=effect.detectable(strictest, POWER),
        outcome=outcome,
        p_alone=p_alone,
        confidence=100 * (1 - correction.level),
    )


def read_all_scores(
    results: Results, records: Iterable[RunRecord], rouge_statistics: str = "f"
) -> dict[str, ScoreTable]:
    """Return run id → its per-example scores, 0–1; runs without them are left out, and damaged ones reported.

    Only these statistics of ROUGE are kept (of "f", "p", "r"), and runs on the same examples share an index: memory.
    """
    scores: dict[str, ScoreTable] = {}
    index: Sequence[str] = ()
    unused = {name for name in _ROUGE_COLUMNS if name[-1] not in rouge_statistics}
    for record in records:
        folder = results.run_folder(record)
        if (folder / "scores.csv").exists():
            try:
                table = read_run_scores(folder, record)
            except DataError as error:
                results.leave_out(error)
                continue
            # One index for all runs on the same examples: a table of 500 runs then fits in memory
            index = index if index == table.index else table.index
            columns = {name: values for name, values in table.columns.items() if name not in unused}
            scores[record.run_id] = ScoreTable(index, columns)
    return scores


def read_run_scores(folder: Path, record: RunRecord) -> ScoreTable:
    """Read a run's per-example scores, 0–1, sorted by id.

    Raises:
        DataError: the file is missing, is not a table of scores, or does not belong to the record.
    """
    path, advice = folder / "scores.csv", "run it again with overwrite=true"
    scores = read_score_table(path)
    if len(scores) != record.evaluation.n:
        raise DataError(
            f"scores of {len(scores):,} examples, not of {record.evaluation.n:,}; {advice}", path
        )
    for name in _ROUGE_COLUMNS:
        if name not in scores or not ((scores[name] >= 0) & (scores[name] <= 1)).all():
            raise DataError(f"column {name} is missing or not between 0 and 1; {advice}", path)
    return scores.sort()


def best_rows(
    ranked: Sequence[seed_groups.ResultRow], names: Iterable[str]
) -> dict[str, seed_groups.ResultRow]:
    """Return the first row with the highest mean of each measured number."""
    best: dict[str, seed_groups.ResultRow] = {}
    for name in names:
        for row in ranked:
            measured = row.means.get(name)
            if measured and (name not in best or measured.mean > best[name].means[name].mean):
                best[name] = row
    return best


def compare_to_best(
    rows: Sequence[seed_groups.ResultRow],
    scores: seed_groups.ScoresOfRuns,
    names: Iterable[str] | None = None,
) -> "LeaderboardBlock":
    """Test the numbers of the ranked rows against the best row of each column.

    A number that equals the best one needs no test.
    Oracles and systems that did not learn are skipped; rows without scores are not tested. `names` are the numbers;
    default: those that tables show.
    """
    ranked = [row for row in rows if row.ranked]
    if names is None:
        names = comparability.shown_measures([row.representative for row in rows])
    differences: dict[tuple[str, str], CorrectedDifference] = {}
    for name, best in best_rows(ranked, names).items():
        pairs = {}
        for row in ranked:
            if name not in row.means or row.means[name].mean == best.means[name].mean:
                continue
            if pair := seed_groups.compare_groups(row, best, name, scores):
                pairs[row.key, name] = pair
        # Corrected over the rows of this column alone
        differences |= correct_differences(pairs)
    return LeaderboardBlock(tuple(rows), differences, _best_set(ranked, scores))


def _best_set(
    ranked: Sequence[seed_groups.ResultRow], scores: seed_groups.ScoresOfRuns
) -> tuple[str, ...]:
    """Return the rows in the model confidence set.

    There is none for two rows (their test decides), without scores, or if a row has one seed.
    """
    if len(ranked) <= 2 or any(row.one_seed for row in ranked):
        return ()
    runs = seed_groups.collect_runs(ranked)
    aligned = seed_groups.aligned_scores(runs, runs[0].evaluation.ranked_by, scores)
    if aligned is None or statistics.count_groups(*aligned) < _LEAST_CASES:
        return ()
    ends = np.cumsum([len(row.runs) for row in ranked])
    split_scores = np.split(aligned.values, ends[:-1], axis=1)
    p_values = statistics.model_confidence_set(split_scores, groups=aligned.groups)
    return tuple(row.key for row, p in zip(ranked, p_values, strict=True) if p >= LEVEL)


class BlockOutcome(NamedTuple):
    """Who is ahead in a block, by the score that ranks.

    Attributes:
        best: the row with the highest score.
        rival: the nearest of the rows that it is ahead of; if there are none, the farthest row.
        difference: of `best` from `rival`, with what is decided about them.
        below: the rows that it is ahead of, the nearest first.
        undecided: the other ranked rows: none of them is shown to be below it.
    """

    best: seed_groups.ResultRow
    rival: seed_groups.ResultRow
    difference: CorrectedDifference
    below: tuple[seed_groups.ResultRow, ...]
    undecided: tuple[seed_groups.ResultRow, ...]


@dataclass(frozen=True)
class LeaderboardBlock:
    """Rows of a table that are comparable. Trained systems and checkpoints that were not trained are never together.

    Attributes:
        rows: a row for each system and its settings, best first, oracles last.
        differences: (key of the row, number) → its difference from the best row of that number, if it was tested.
        best_set: keys of the rows in the 95 % model confidence set of the score that ranks; empty if it is unknown.
    """

    rows: tuple[seed_groups.ResultRow, ...]
    differences: Mapping[tuple[str, str], CorrectedDifference] = field(default_factory=dict)
    best_set: tuple[str, ...] = ()

    @property
    def zero_shot(self) -> bool:
        """True if rows are checkpoints that were not trained here."""
        return any(row.representative.zero_shot for row in self.rows)

    @property
    def ranked_by(self) -> str:
        """The score that ranks."""
        return self.rows[0].representative.evaluation.ranked_by

    @cached_property
    def ranked(self) -> tuple[seed_groups.ResultRow, ...]:
        """The rows that have a place, best first."""
        return tuple(row for row in self.rows if row.ranked and self.ranked_by in row.means)

    def compare_with_best(self, row: seed_groups.ResultRow) -> CorrectedDifference:
        """Return the difference of a row from the best one; its bounds are NaN without a test."""
        if tested := self.differences.get((row.key, self.ranked_by)):
            return tested
        if row not in self.ranked:
            is_gated = row.learned.word in seed_groups.NEVER_RANKED
            outcome = Outcome.NOT_LEARNED if is_gated else Outcome.NOT_COMPARABLE
            return CorrectedDifference(math.nan, math.nan, math.nan, outcome)
        best = self.ranked[0]
        mean = row.means[self.ranked_by].mean - best.means[self.ranked_by].mean
        outcome = Outcome.NOT_COMPARABLE
        if mean == 0:  # needs no test
            is_single = row.one_seed or best.one_seed
            outcome = Outcome.SINGLE_SEED if is_single else Outcome.NOT_SHOWN
        return CorrectedDifference(mean, math.nan, math.nan, outcome)

    def tied(self) -> frozenset[tuple[str, str]]:
        """Return the (key, number) pairs that are not distinguishable from the best."""
        return frozenset(
            key for key, judged in self.differences.items() if judged.outcome == Outcome.NOT_SHOWN
        )

    def decide(self) -> BlockOutcome | None:
        """Decide who is ahead; None with fewer than two ranked rows."""
        if not self.ranked[1:]:
            return None
        best, *rivals = self.ranked
        below = [row for row in rivals if self.compare_with_best(row).outcome == Outcome.AHEAD]
        undecided = [row for row in rivals if row not in below]
        rival = below[0] if below else rivals[-1]
        difference = self.compare_with_best(rival).reversed()
        return BlockOutcome(best, rival, difference, tuple(below), tuple(undecided))

    def top_rows(self) -> set[str]:
        """Return the keys of the rows that may be the best: the model confidence set, or the best row and its ties.

        There are none if the test of any ranked row is missing, or decides nothing.
        """
        if self.best_set:
            return {*self.best_set}
        decided = self.decide()
        if decided is None:
            return {row.key for row in self.ranked if not row.one_seed}
        outcomes = {self.compare_with_best(row).outcome for row in decided.undecided}
        # Every rival needs a test: without one, nobody is called the best
        if not outcomes <= {Outcome.NOT_SHOWN}:
            return set()
        return {row.key for row in (decided.best, *decided.undecided)}

    def records(self) -> list[RunRecord]:
        """Return the runs of all rows, also repeated ones: the best first, oracles last."""
        runs: list[RunRecord] = []
        for row in self.rows:
            runs += [*row.runs, *row.repeated]
        runs.sort(key=_run_ranking_key)
        return runs


def _run_ranking_key(run: RunRecord) -> tuple[Any, ...]:
    return comparability.ranking_key(run, measured_mean(run, run.evaluation.ranked_by))


def build_blocks(
    records: Iterable[RunRecord],
    scores: seed_groups.ScoresOfRuns | None = None,
    by_run: bool = False,
    names: Sequence[str] | None = None,
) -> tuple[LeaderboardBlock, ...]:
    """Return the blocks of comparable rows with their tests, in the order of `_block_order`.

    Arguments as in `read_table`.
    """
    blocks = []
    for members in _group_comparable(records):
        for runs in _split_by_training(members):
            blocks.append(build_block(runs, scores or {}, by_run, names))
    return tuple(blocks)


def build_block(
    records: Sequence[RunRecord],
    scores: seed_groups.ScoresOfRuns,
    by_run: bool = False,
    names: Sequence[str] | None = None,
) -> LeaderboardBlock:
    """Return comparable runs as a block of rows: whether their systems learned, and their tests.

    If no ranking score is above 0, no row is ranked: their order would be that of their names. Arguments as in
    `read_table`.
    """
    rows = seed_groups.group_rows_by_seed(records, scores, by_run)
    learning = gate_rows(rows, scores)
    name = rows[0].representative.evaluation.ranked_by
    means = [
        row.means[name].mean for row in rows if name in row.means and not row.representative.oracle
    ]
    has_place = any(means) or not means
    rows = tuple(replace(row, learned=learning[row.key], has_place=has_place) for row in rows)
    return compare_to_best(rows, scores, names)


def _split_by_training(records: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """Split comparable runs into trained ones, and checkpoints that were not trained here; baselines are in both.

    Runs without one of the two kinds are not split.
    """
    # Baselines are in both blocks; imported outputs stay with the trained systems
    not_zero_shot = [record for record in records if not record.zero_shot]
    untrained = [record for record in records if not record.trained and record.imported is None]
    if len(not_zero_shot) == len(records) or not any(record.trained for record in records):
        return [list(records)]
    return [not_zero_shot, untrained]


def _group_comparable(records: Iterable[RunRecord]) -> list[list[RunRecord]]:
    groups: dict[tuple[str, ...], list[RunRecord]] = {}
    for record in records:
        groups.setdefault(comparability.comparison_key(record), []).append(record)
    keys = sorted(groups, key=lambda key: (*_block_order(groups[key]), key))
    return [groups[key] for key in keys]


def _block_order(members: Sequence[RunRecord]) -> tuple[bool, int, int, int, int]:
    """Return a sorting key of blocks: whole splits first, the test split before others; then by examples, then by runs.

    So a trial on few examples displaces no result, however many runs it has.
    """
    first = members[0]
    limited = first.config.dataset.limit is not None
    whole = not limited and first.num_outputs >= first.texts.examples.get(
        first.key.split, 0
    )  # or an unknown number
    split = comparability.SPLIT_ORDER.index(first.key.split)
    return not whole, split if whole else 0, -first.evaluation.n, split, -len(members)
