"""The runs of a system with the same settings, one per seed: averages, and differences of systems.

comparable records --group_rows_by_seed--> SeedGroups: their means, with 95 % intervals over examples and seeds

Numbers are 0–100 or in the unit of the measure.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longsumbench.leaderboards.comparability import ROUGE_HEADINGS, ranking_key
from longsumbench.metrics import statistics
from longsumbench.metrics.aggregate import GROUP, PERCENT, Estimate, ScoreTable, values_at
from longsumbench.metrics.evaluate import score_column
from longsumbench.runs.record import RunRecord, measured_mean
from longsumbench.runs.run_names import RunName, name_runs, name_system

if TYPE_CHECKING:
    import pandas as pd

NO_INTERVAL = (math.nan, math.nan)
LEARNED, STILL_LEARNING, NOT_LEARNED, UNKNOWN = (
    "learned",
    "still learning",
    "not learned",
    "not known",
)
UNTRAINED, NOT_SHOWN, NOT_RANKED = "untrained", "not shown", "not ranked"
DEPENDS = "depends on its source"
NEVER_RANKED = (UNTRAINED, NOT_LEARNED, NOT_RANKED, STILL_LEARNING)

# Run id → per-example scores, 0–1; runs without them are left out
ScoresOfRuns = Mapping[str, "ScoreTable | pd.DataFrame"]


class Learned(NamedTuple):
    """Whether the system of a row learned to summarize (`gate_rows`).

    Attributes:
        word: `LEARNED`, `STILL_LEARNING`, `NOT_LEARNED`, `UNTRAINED`, `UNKNOWN` or `NOT_SHOWN`; for what was not
            trained here, `DEPENDS` and `NOT_RANKED` instead; empty for a system that learns nothing, such as Lead.
        reason: why it is neither `LEARNED` nor `DEPENDS`; otherwise empty.
        floor: what its outputs score without their sources, in the unit of the ranking score; None if unknown.
        lift: of planted facts, the gain over the floor in percent of what is possible with the source that was read; of
            other texts, the gain in R-2 in percent of Random's. None if unknown.
    """

    word: str = ""
    reason: str = ""
    floor: float | None = None
    lift: float | None = None

    @property
    def comparable(self) -> bool:
        """True if conclusions about the row can be drawn."""
        return self.word in ("", LEARNED, DEPENDS)


_NOT_JUDGED = Learned()
_UNNAMED = RunName("")


@dataclass(frozen=True)
class ResultRow:
    """The runs of a system with the same settings, one per seed; a row of a table.

    Attributes:
        runs: ordered by seed; at least one.
        repeated: earlier runs with the same seeds, and runs with the outputs of another seed; they are ignored.
        means: type of ROUGE, or measure → its mean over `runs`. The interval is that of the only run; of several, it
            covers examples and seeds, and is NaN if the scores of a run are missing.
        name: what it is called in its table.
        learned: whether its system learned to summarize.
        equal_seeds: seeds with equal outputs; only the first of them is in `runs`.
        has_place: False if no comparable row scores above 0.
    """

    runs: tuple[RunRecord, ...]
    repeated: tuple[RunRecord, ...] = ()
    means: Mapping[str, Estimate] = field(default_factory=dict)
    name: RunName = _UNNAMED
    learned: Learned = _NOT_JUDGED
    equal_seeds: tuple[int | None, ...] = ()
    has_place: bool = True

    @property
    def representative(self) -> RunRecord:
        """A run, for what all runs have in common."""
        return self.runs[0]

    @property
    def key(self) -> str:
        """The id of the representative run, by which tests refer to the row."""
        return self.runs[0].run_id

    @property
    def ranked(self) -> bool:
        """False for oracles, without places, and for systems that did not learn: never the best, nor tied with it."""
        is_candidate = self.has_place and not self.representative.oracle
        return is_candidate and self.learned.word not in NEVER_RANKED

    @property
    def one_seed(self) -> bool:
        """True for a single run of a trained system: another seed may give another number."""
        return len(self.runs) == 1 and seed_matters(self.representative)

    @property
    def words(self) -> float | None:
        """Mean length of the outputs; None if it is unknown."""
        outputs = [run.evaluation.outputs for run in self.runs if run.evaluation.outputs]
        return sum(stats.words for stats in outputs) / len(outputs) if outputs else None

    @property
    def label(self) -> str:
        """What it is called in its table; its system, if it is in none."""
        return self.name.label or name_system(self.representative)


def collect_runs(rows: Iterable[ResultRow]) -> list[RunRecord]:
    """Return the runs of all rows."""
    runs: list[RunRecord] = []
    for row in rows:
        runs += row.runs
    return runs


class PairDifference(NamedTuple):
    """The difference of two systems, or of two numbers of the same texts; `correct_differences` tests it.

    Attributes:
        effect: the first minus the second, with its error over examples and seeds; 0–100 for ROUGE.
        examples: number of examples that both have.
        groups: number of sources that these are about, the independent cases.
        seeds: number of seeds, if both have the same ones; 1 if each has one run; 0 if they have different seeds.
        one_seed: True if only one run of a trained system is compared.
        limit: the largest difference that is possible, 100 for shares.
    """

    effect: statistics.MeanOverSeeds
    examples: int
    groups: int
    seeds: int = 1
    one_seed: bool = False
    limit: float = math.inf


def group_rows_by_seed(
    records: Sequence[RunRecord], scores: ScoresOfRuns, by_run: bool = False
) -> tuple[ResultRow, ...]:
    """Group comparable runs that differ only in their seed: best first, oracles last.

    With `by_run`, each run is a group.
    """
    systems: dict[object, list[RunRecord]] = {}
    for record in records:
        same_system = (record.key.model, record.variant, record.key.system)
        systems.setdefault(record.run_id if by_run else same_system, []).append(record)
    groups = [average_seeds(latest_per_seed(runs), scores) for runs in systems.values()]
    names = name_runs([group.representative for group in groups])
    rows = [replace(group, name=name) for group, name in zip(groups, names, strict=True)]
    return tuple(sorted(rows, key=_rank_row))


def _rank_row(row: ResultRow) -> tuple[object, ...]:
    return ranking_key(row.representative, row.means.get(row.representative.evaluation.ranked_by))


def latest_per_seed(records: Sequence[RunRecord]) -> ResultRow:
    """Group runs with the same settings; the latest run of each seed counts, and equal outputs count once."""
    latest = sorted(records, key=lambda record: (record.finished, record.run_id))
    by_seed = {record.key.seeds: record for record in latest}
    runs: list[RunRecord] = []
    equal_seeds: dict[int | None, None] = {}
    for _, run in sorted(by_seed.items()):
        same = next((other for other in runs if have_equal_outputs(run, other)), None)
        if same is None:
            runs.append(run)
        else:
            equal_seeds |= dict.fromkeys([same.key.seed, run.key.seed])
    return ResultRow(
        tuple(runs), tuple(run for run in latest if run not in runs), equal_seeds=tuple(equal_seeds)
    )


def seed_matters(record: RunRecord) -> bool:
    """Return True if another seed trains another system. That of Random only draws other sentences."""
    return record.key.seed is not None and (record.trained or record.imported is not None)


def have_equal_outputs(first: RunRecord, second: RunRecord) -> bool:
    """Return True if a trained run wrote the same as another, which two trainings do not do.

    They may if all outputs are right, or if all are the same text; so may extracts.
    """
    is_equal = (
        first.outputs_digest == second.outputs_digest
        and first.evaluation.scores == second.evaluation.scores
    )
    is_varied = first.evaluation.outputs is None or first.evaluation.outputs.distinct > 1
    is_written = seed_matters(first) and first.config.decode.mode == "write"
    return (
        bool(first.outputs_digest)
        and is_equal
        and is_written
        and is_varied
        and first.evaluation.scores["rouge1"].f < PERCENT
    )


def average_seeds(group: ResultRow, scores: ScoresOfRuns) -> ResultRow:
    """Average the numbers that all runs of a group have."""
    names = [*ROUGE_HEADINGS, *group.representative.evaluation.measures]
    means: dict[str, Estimate] = {}
    for name in names:
        run_means = [mean for run in group.runs if (mean := measured_mean(run, name))]
        if len(run_means) == len(group.runs):
            means[name] = _average_means(group, name, run_means, scores)
    return replace(group, means=means)


def _average_means(
    group: ResultRow, name: str, run_means: Sequence[Estimate], scores: ScoresOfRuns
) -> Estimate:
    if len(run_means) == 1:
        return run_means[0]
    mean = sum(estimate.mean for estimate in run_means) / len(run_means)
    aligned = aligned_scores(group.runs, name, scores)
    if aligned is None:
        return Estimate(mean, *NO_INTERVAL)
    scale = unit_factor(group.representative, name)
    low, high = statistics.interval_over_seeds(
        aligned.values, is_share=scale == PERCENT, groups=aligned.groups
    )
    return Estimate(mean, scale * low, scale * high)


def unit_factor(record: RunRecord, name: str) -> float:
    """Return the factor from per-example scores to the number in tables: 100 for shares, otherwise 1."""
    return 1.0 if name in record.evaluation.units else PERCENT


class AlignedScores(NamedTuple):
    """Scores of the examples to which a number applies in all runs.

    Attributes:
        values: [examples, runs], 0–1 or in the unit of the number.
        groups: number of each example's group; None if each is a group of its own.
    """

    values: NDArray[np.float64]
    groups: NDArray[np.int64] | None


def aligned_scores(
    runs: Sequence[RunRecord], name: str, scores: ScoresOfRuns
) -> AlignedScores | None:
    """Return a number's scores of the examples to which it applies in all runs.

    None if the scores of a run are missing, or it applies to no example.
    """
    column = score_column(name)
    tables = []
    for run in runs:
        if run.run_id not in scores or column not in scores[run.run_id]:
            return None
        tables.append(scores[run.run_id])
    values = np.stack([values_at(table, column, list(tables[0].index)) for table in tables], axis=1)
    applies = np.isfinite(values).all(axis=1)
    groups = None
    # Runs on the same examples have the same groups, but those of earlier versions lack them
    if grouped := [table for table in tables if GROUP in table]:
        groups = values_at(grouped[0], GROUP, list(tables[0].index))[applies].astype(np.int64)
    return AlignedScores(values[applies], groups) if applies.any() else None


def compare_groups(
    first: ResultRow, second: ResultRow, name: str, scores: ScoresOfRuns
) -> PairDifference | None:
    """Compare two systems on their common examples, and by seed if both have the same; None if scores are missing.

    All runs count, so that the difference is that of the means in tables. A single run of a system that is not trained
    is compared with each seed of the other.
    """
    groups = (first, second)
    seeds = max(len(group.runs) for group in groups)
    runs = [group.runs for group in groups]
    # A baseline's only run is paired with every seed of the other system
    if any(len(group.runs) == 1 and not seed_matters(group.representative) for group in groups):
        runs = [members * (seeds // len(members)) for members in runs]
    elif [run.key.seeds for run in first.runs] != [run.key.seeds for run in second.runs]:
        seeds = 0
    aligned = aligned_scores([*runs[0], *runs[1]], name, scores)
    if aligned is None:
        return None
    scale = unit_factor(first.representative, name)
    first_scores, second_scores = np.split(scale * aligned.values, [len(runs[0])], axis=1)
    if seeds:
        effect = statistics.paired_effect(first_scores - second_scores, groups=aligned.groups)
    else:
        effect = statistics.paired_effect(first_scores, second_scores, aligned.groups)
    one_seed = first.one_seed or second.one_seed
    limit = scale if scale == PERCENT else math.inf
    num_groups = statistics.count_groups(*aligned)
    return PairDifference(effect, len(aligned.values), num_groups, seeds, one_seed, limit)


def compare_examples(
    differences: NDArray[np.float64],
    one_seed: bool = False,
    groups: NDArray[np.int64] | None = None,
) -> PairDifference | None:
    """Compare two numbers of the same examples by their differences, [examples, seeds]; None without an example.

    Examples with NaN are left out.
    """
    applies = np.isfinite(differences).all(axis=1)
    gaps = differences[applies]
    if groups is not None:
        groups = groups[applies]
    if not len(gaps):
        return None
    effect = statistics.paired_effect(gaps, groups=groups)
    num_groups = statistics.count_groups(gaps, groups)
    return PairDifference(effect, len(gaps), num_groups, gaps.shape[1], one_seed)
