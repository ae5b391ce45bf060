"""Tests of every number in a table against the best of its column, on the runs' per-example scores.

Rows with several common seeds are compared by a t test over examples and seeds, single runs by approximate
randomization over examples. P-values are corrected (Holm) over the rows of a column in a block of comparable rows. The
correction does not account for choosing the best row by the same scores. In simulations with 20 equal systems, a
quarter of the columns (2 % of the rows) have a significant difference at the 5 % level. The set of best systems, for
the score that ranks, accounts for it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from longsumbench.errors import DataError
from longsumbench.leaderboards import comparability, seed_groups
from longsumbench.leaderboards.learned import judge_learning
from longsumbench.metrics import statistics
from longsumbench.metrics.aggregate import ScoreTable, read_score_table
from longsumbench.runs.record import RunRecord, measured_mean
from longsumbench.runs.results import Results

LEVEL, POWER = 0.05, 0.8
RESAMPLES = 10_000
_LEAST_EXAMPLES = 30  # for a set of best systems; with fewer, bootstrap errors are too small
RESAMPLES_A_TEST = 100  # lower bound, since p-values are at least 1 / resamples and Holm multiplies them by the tests


@dataclass(frozen=True)
class AgainstBest:
    """The results of testing rows against the best of each column.

    Attributes:
        p_values: (key of the row, number) → corrected p-value of its difference from the best row of that number.
        detectable: (key of the row, number) → smallest difference that its test detects with 80 % power, in the unit of
            the number; infinite if it detects none.
        over_seeds: True if any row has several seeds (t test over examples and seeds); False if all are single runs
            (approximate randomization over examples).
        untested: rows without a test, because their scores.csv or that of the best row is missing.
        too_few: (key of the row, number) of tests that cannot reach 5 %, because n examples have only 2^n swaps.
        best_set: keys of the rows in the 95 % model confidence set of the score that ranks; empty if it is unknown.
    """

    p_values: Mapping[tuple[str, str], float] = field(default_factory=dict)
    detectable: Mapping[tuple[str, str], float] = field(default_factory=dict)
    over_seeds: bool = False
    untested: tuple[str, ...] = ()
    too_few: frozenset[tuple[str, str]] = frozenset()
    best_set: tuple[str, ...] = ()

    def tied(self) -> frozenset[tuple[str, str]]:
        """Return the (key, number) pairs that are not distinguishable from the best."""
        return frozenset(key for key, p in self.p_values.items() if p >= LEVEL) - self.too_few


UNTESTED = AgainstBest()
_Compared = NDArray[np.float64] | statistics.MeanOverSeeds  # differences of single runs, or the effect over seeds


def read_all_scores(results: Results, records: Iterable[RunRecord], parts: str = "f") -> dict[str, ScoreTable]:
    """Return run id → its per-example scores, 0–1; runs without them are left out, and damaged ones reported.

    Only these `parts` of ROUGE are kept (of "f", "p", "r"), and runs on the same examples share an index: memory.
    """
    scores: dict[str, ScoreTable] = {}
    index: Sequence[str] = ()
    unused = {f"{kind}_{part}" for kind in comparability.ROUGE_HEADINGS for part in "prf" if part not in parts}
    for record in records:
        folder = results.run_folder(record)
        if (folder / "scores.csv").exists():
            try:
                table = read_scores_of_run(folder, record)
            except DataError as error:
                results.leave_out(error)
                continue
            index = index if index == table.index else table.index
            columns = {name: values for name, values in table.columns.items() if name not in unused}
            scores[record.run_id] = ScoreTable(index, columns)
    return scores


def read_scores_of_run(folder: Path, record: RunRecord) -> ScoreTable:
    """Read a run's per-example scores, 0–1, sorted by id.

    Raises:
        DataError: the file is missing, is not a table of scores, or does not belong to the record.
    """
    path, advice = folder / "scores.csv", "run it again with overwrite=true"
    scores = read_score_table(path)
    if len(scores) != record.n:
        raise DataError(f"scores of {len(scores):,} examples, not of {record.n:,}; {advice}", path)
    columns = [f"{kind}_{part}" for kind in comparability.ROUGE_HEADINGS for part in "prf"]
    for name in columns:
        if name not in scores or not ((scores[name] >= 0) & (scores[name] <= 1)).all():
            raise DataError(f"column {name} is missing or not between 0 and 1; {advice}", path)
    return scores.sort()


def best_rows(ranked: Iterable[seed_groups.SeedGroup], names: Iterable[str]) -> dict[str, seed_groups.SeedGroup]:
    """Return the first row with the highest mean of each measured number."""
    best = {}
    for name in names:
        if pairs := [(row.numbers[name].mean, row) for row in ranked if name in row.numbers]:
            best[name] = max(pairs, key=itemgetter(0))[1]
    return best


def against_best(
    rows: Sequence[seed_groups.SeedGroup], scores: seed_groups.ScoresOfRuns, names: Iterable[str] | None = None
) -> AgainstBest:
    """Test the numbers of the ranked rows against the best row of each column.

    A number that equals the best one needs no test.
    Oracles and systems that did not learn are skipped; rows without scores are not tested. `names` are the numbers;
    default: those that tables show.
    """
    ranked = [row for row in rows if row.ranked]
    names = comparability.numbers_shown([row.first for row in rows]) if names is None else list(names)
    pairs: dict[tuple[str, str], _Compared] = {}
    untested: dict[str, None] = {}
    for name, best in best_rows(ranked, names).items():
        for row in ranked:
            if name not in row.numbers or row.numbers[name].mean == best.numbers[name].mean:
                continue
            if (paired := seed_groups.pair_scores(best, row, name, scores)) is None:
                untested[row.key] = None
            else:
                pairs[row.key, name] = paired.differences[:, 0] if paired.single else paired.effect()
    return replace(_test_pairs(pairs, tuple(untested)), best_set=_best_set(ranked, scores))


def _best_set(ranked: Sequence[seed_groups.SeedGroup], scores: seed_groups.ScoresOfRuns) -> tuple[str, ...]:
    """Return the rows in the model confidence set; none for two rows (the test says it all), or without scores."""
    runs = [run for row in ranked for run in row.runs]
    values = seed_groups.aligned_scores(runs, runs[0].ranked_by, scores) if len(ranked) > 2 else None
    if values is None or len(values) < _LEAST_EXAMPLES:
        return ()
    ends = np.cumsum([len(row.runs) for row in ranked])
    p_values = statistics.model_confidence_set(np.split(values, ends[:-1], axis=1))
    return tuple(row.key for row, p in zip(ranked, p_values, strict=True) if p >= LEVEL)


def _test_pairs(pairs: Mapping[tuple[str, str], _Compared], untested: tuple[str, ...]) -> AgainstBest:
    num_tests = Counter(name for _, name in pairs)
    p_values, detectable, unclear, too_few = {}, {}, {}, set()
    for key, compared in pairs.items():
        level = LEVEL / num_tests[key[1]]
        if isinstance(compared, statistics.MeanOverSeeds):
            p_values[key], detectable[key] = compared.p_value(), compared.detectable(level, POWER)
            continue
        p_values[key] = statistics.randomization_bound(compared)
        detectable[key] = statistics.smallest_detectable_difference(compared, level, POWER)
        if p_values[key] > level:
            unclear[key] = compared
        if cannot_reach(level, len(compared)):
            too_few.add(key)
    p_values |= _randomized(unclear)
    corrected: dict[tuple[str, str], float] = {}
    for name in num_tests:
        column = [key for key in p_values if key[1] == name]
        corrected |= zip(column, statistics.holm([p_values[key] for key in column]).tolist(), strict=True)
    over_seeds = any(isinstance(compared, statistics.MeanOverSeeds) for compared in pairs.values())
    return AgainstBest(corrected, detectable, over_seeds, untested, frozenset(too_few))


def cannot_reach(level: float, examples: int) -> bool:
    """Return True if no p-value of approximate randomization over so few examples is below the level."""
    return 2.0 ** (1 - examples) >= level


def _randomized(differences: Mapping[tuple[str, str], NDArray[np.float64]]) -> dict[tuple[str, str], float]:
    """Return the p-values of approximate randomization; all columns have the same swaps.

    A difference of 0 has no effect, so columns are filled with 0 to the same number of examples.
    """
    if not differences:
        return {}
    table = np.zeros((max(map(len, differences.values())), len(differences)))
    for place, column in enumerate(differences.values()):
        table[: len(column), place] = column
    resamples = max(RESAMPLES, RESAMPLES_A_TEST * len(differences))
    return dict(zip(differences, statistics.approximate_randomization(table, resamples).tolist(), strict=True))


@dataclass(frozen=True)
class ComparableRows:
    """Rows of a table that are comparable. Trained systems and checkpoints that were not trained are never together.

    Attributes:
        rows: a row for each system and its settings, best first, oracles last.
        tests: of the rows against the best of each column.
    """

    rows: tuple[seed_groups.SeedGroup, ...]
    tests: AgainstBest = UNTESTED

    @property
    def zero_shot(self) -> bool:
        """True if rows are checkpoints that were not trained here."""
        return any(row.first.zero_shot for row in self.rows)

    def records(self) -> list[RunRecord]:
        """Return the runs of all rows, also repeated ones: the best first, oracles last."""
        runs = (run for row in self.rows for run in (*row.runs, *row.repeated))
        return sorted(runs, key=lambda run: comparability.ranking_key(run, measured_mean(run, run.ranked_by)))


def comparable_rows(
    records: Iterable[RunRecord],
    scores: seed_groups.ScoresOfRuns | None = None,
    by_run: bool = False,
    names: Sequence[str] | None = None,
) -> tuple[ComparableRows, ...]:
    """Return the blocks of comparable rows with their tests, in the order of `_block_order`.

    Arguments as in `read_table`.
    """
    groups = [part for members in _group_comparable(records) for part in _split_by_training(members)]
    blocks = [seed_groups.group_by_seed(members, scores or {}, by_run) for members in groups]
    return tuple(_tested_rows(rows, scores or {}, names) for rows in blocks)


def _tested_rows(
    rows: Sequence[seed_groups.SeedGroup], scores: seed_groups.ScoresOfRuns, names: Sequence[str] | None
) -> ComparableRows:
    learning = judge_learning(rows, scores)
    rows = tuple(replace(row, learned=learning[row.key]) for row in rows)
    return ComparableRows(rows, against_best(rows, scores, names))


def _split_by_training(records: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """Split comparable runs into trained ones, and checkpoints that were not trained here; baselines are in both.

    Runs without one of the two kinds are not split.
    """
    if not (any(record.trained for record in records) and any(record.zero_shot for record in records)):
        return [list(records)]
    untrained = [record for record in records if not record.trained and record.imported is None]
    return [[record for record in records if not record.zero_shot], untrained]


def _group_comparable(records: Iterable[RunRecord]) -> list[list[RunRecord]]:
    groups: dict[tuple[str, ...], list[RunRecord]] = {}
    for record in records:
        groups.setdefault(comparability.comparison_key(record), []).append(record)
    return [groups[key] for key in sorted(groups, key=lambda key: (*_block_order(groups[key]), key))]


def _block_order(members: Sequence[RunRecord]) -> tuple[bool, int, int, int, int]:
    """Return a sorting key of blocks: whole splits first, the test split before others; then by examples, then by runs.

    So a trial on few examples displaces no result, however many runs it has.
    """
    first = members[0]
    limited = first.settings.dataset.limit is not None
    whole = not limited and first.num_outputs >= first.texts.examples.get(first.split, 0)  # or an unknown number
    split = comparability.SPLIT_ORDER.index(first.split)
    return not whole, split if whole else 0, -first.n, split, -len(members)
