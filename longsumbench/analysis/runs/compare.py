"""`longsumbench compare`: finished runs on the same examples, pair by pair.

    words of the command line → Runs → the examples that all of them scored → Comparison: Pairs, their Rows, who Moved

A difference is a run's score minus the baseline's, on the same example. ROUGE and other shares are 0–100.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench.api import registry
from longsumbench.api.bounds import Between, check_value
from longsumbench.api.documents import Sentences
from longsumbench.errors import DataError, UsageError, suite_errors
from longsumbench.files import digest
from longsumbench.formatting import format_count
from longsumbench.leaderboards.blocks import MEASURE_HEADINGS
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS, describe_difference
from longsumbench.leaderboards.significance import LEVEL, RESAMPLES, RESAMPLES_A_TEST, read_scores_of_run
from longsumbench.metrics.aggregate import PERCENT
from longsumbench.metrics.output_facts import describe_outputs, output_warnings
from longsumbench.metrics.statistics import (
    approximate_randomization,
    holm,
    paired_bootstrap,
    smallest_detectable_difference,
)
from longsumbench.report.tables import TIED, Block, Tied, terminal
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import (
    RANKED_BY,
    SHORT_ID,
    Results,
    RunRecord,
    check_written,
    ranked_by,
    run_label,
    run_name,
    split_read_by,
)

_DECIMALS = 6  # of numbers in the CSV
_IDS_TOLD = 5  # of the examples compared, on the terminal
_NOTHING = "–"  # in a cell: no difference can be detected
LONGEST_NAME = 200  # characters of a folder's name; file systems take 255
_SPLIT_UP = re.compile(r"_(?:position|distance)_\d+$|_chance$")  # a measure by places, or what is not of the summaries
HEADINGS = ROUGE_HEADINGS | {name: heading.replace("\n", " ") for name, heading in MEASURE_HEADINGS.items()}
COMPARISON_COLUMNS = (
    *("measure", "baseline", "run", "difference", "95 % interval", "p", "p (Holm)", "detectable"),
    *("n", "higher", "lower", "equal"),
)
COMPARISON_ALIGNMENT = "lrrrlrrrrrrr"  # of VIEW


@dataclass(frozen=True)
class ComparedRun:
    """A finished run with what it wrote.

    Attributes:
        folder: where its files stand.
        record: what it was.
        scores: a row an example, indexed by id, as its metrics gave them.
        predictions: id → summary.
    """

    folder: Path
    record: RunRecord
    scores: pd.DataFrame
    predictions: Mapping[str, str]

    @property
    def label(self) -> str:
        """Its model, variant, seed and id, short enough for a heading."""
        return run_label(self.record)

    @cached_property
    def outputs(self) -> dict[str, float]:
        """What its summaries are like as a whole."""
        return describe_outputs(list(self.predictions.values()))

    def scores_of(self, measure: str, ids: Sequence[str]) -> NDArray[np.float64]:
        """Return a measure of some examples, in their order: ROUGE's F and other shares 0–100, the rest in its unit."""
        column = f"{measure}_f" if measure in ROUGE_HEADINGS else measure
        scale = 1.0 if measure in self.record.units else PERCENT
        return self.scores.loc[list(ids), column].to_numpy(dtype=np.float64) * scale


@dataclass(frozen=True)
class ComparisonRow:
    """A measure of two runs. Means, differences and their bounds are 0–100, or in the measure's own unit.

    Attributes:
        measure: a type of ROUGE (its F), or what was measured beside it.
        n: the examples to which it applies.
        baseline_mean, mean: of the baseline and of the run.
        difference: the run's mean minus the baseline's.
        low, high: the 95 % interval of the difference, from the paired bootstrap.
        p: two-sided, from approximate randomization.
        p_holm: the same, corrected for all rows of all pairs.
        detectable: the smallest difference that one such test finds at 5 % in four cases of five; infinite where it
            cannot find any.
        higher, lower, equal: on how many examples the run's score is so.
    """

    measure: str
    n: int
    baseline_mean: float
    mean: float
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    detectable: float
    higher: int
    lower: int
    equal: int

    @property
    def heading(self) -> str:
        """What tables call the measure."""
        return HEADINGS.get(self.measure, self.measure)

    @property
    def distinguishable(self) -> bool:
        """Whether the runs differ in it by more than chance would let them, over the whole table."""
        return self.p_holm < LEVEL


@dataclass(frozen=True)
class ScoreChange:
    """An example's score under two runs."""

    id: str
    baseline_score: float
    score: float

    @property
    def difference(self) -> float:
        """The run's score minus the baseline's."""
        return self.score - self.baseline_score


@dataclass(frozen=True)
class RunPair:
    """Two runs beside each other.

    Attributes:
        baseline, run: the two.
        rows: a measure each, ROUGE first.
        main: the row of the measure that the suite ranks by.
        moved: every example by that measure, the greatest gain first.
    """

    baseline: ComparedRun
    run: ComparedRun
    rows: tuple[ComparisonRow, ...]
    main: ComparisonRow
    moved: tuple[ScoreChange, ...]

    @property
    def title(self) -> str:
        """What the differences are."""
        return f"{self.run.label} minus {self.baseline.label}"

    def extremes(self, most: int) -> tuple[tuple[ScoreChange, ...], tuple[ScoreChange, ...]]:
        """Return the examples on which the run gained most, and lost most, the greatest difference first."""
        gains = tuple(one for one in self.moved[:most] if one.difference > 0)
        losses = tuple(one for one in self.moved[::-1][:most] if one.difference < 0)
        return gains, losses


@dataclass(frozen=True)
class Comparison:
    """Runs that were compared.

    Attributes:
        runs: as they were named, the baseline first.
        pairs: those that were set beside each other.
        ids: the examples, sorted.
        num_shown: the most examples that are shown of those that gained, and of those that lost.
        references: id of a shown example → its references; empty where the texts are not on this machine.
    """

    runs: tuple[ComparedRun, ...]
    pairs: tuple[RunPair, ...]
    ids: tuple[str, ...]
    num_shown: int
    references: Mapping[str, tuple[Sentences, ...]]

    @property
    def title(self) -> str:
        """Who is compared, and on what."""
        names = list(dict.fromkeys(run.record.model for run in self.runs))
        return f"longsumbench: {', '.join(names)} compared on {self.runs[0].record.dataset}"

    @property
    def all_examples(self) -> bool:
        """Whether no run scored an example that is left out here."""
        return all(len(run.scores) == len(self.ids) for run in self.runs)

    def shown_ids(self) -> set[str]:
        """Return the ids of the examples that are shown."""
        return {one.id for pair in self.pairs for side in pair.extremes(self.num_shown) for one in side}

    def about(self) -> list[str]:
        """Say which examples were compared, and who is an oracle."""
        split, count = self.runs[0].record.split, format_count(len(self.ids), "example")
        lines = [f"{split} split, {count}."]
        if not self.all_examples:
            scored = ", ".join(f"{run.label} {len(run.scores):,}" for run in self.runs)
            lines = [f"{split} split, the {count} that all runs scored, of: {scored}."]
        if oracles := [run.label for run in self.runs if run.record.oracle]:
            lines.append(f"Oracles, which saw the references or their lengths: {', '.join(oracles)}.")
        if means := [run.label for run in self.runs if run.record.checkpoints]:
            lines.append(f"Scores are means of several checkpoints, summaries the best one's: {', '.join(means)}.")
        if averaged := [run.label for run in self.runs if run.record.fit.get("averaged")]:
            lines.append(f"One model, whose weights are the mean of several checkpoints': {', '.join(averaged)}.")
        return lines + self.about_outputs()

    def about_outputs(self) -> list[str]:
        """Say how long the outputs of each run are, and what is wrong with them."""
        lengths = [f"{run.label} {run.outputs['words']:.0f}" for run in self.runs]
        known = [run.record.outputs.get("reference_words") for run in self.runs]
        lengths += [f"the references {length:.0f}" for length in filter(None, known[:1])]
        lines = [f"Mean length in words: {', '.join(lengths)}."]
        for run in self.runs:
            if told := output_warnings(run.outputs, run.record.outputs_cut):
                lines.append(f"Warning, {run.label}: {'; '.join(told)}.")
        return lines

    def method(self) -> list[str]:
        """Say what the columns mean, and how the scores were computed."""
        tests = sum(len(pair.rows) for pair in self.pairs)
        columns = (
            "Difference: run minus baseline, with the 95 % interval of the paired bootstrap. p: approximate "
            f"randomization, two-sided; Holm: corrected for the {tests} tests of this table. {TIED}: the runs are not "
            f"distinguishable, corrected p ≥ {LEVEL}. Detectable: the smallest difference that one such test finds "
            f"four times in five; {_NOTHING} where too few examples differ for it to find any. "
            "Higher, lower, equal: on how many examples the run's score is so. ROUGE (F1) and other shares are 0–100."
        )
        return [columns, _with_count(self.runs[0].record.signature, len(self.ids)).replace("|", " ")]

    def blocks(self) -> list[Block]:
        """Return a block that says what is compared, and one for every pair."""
        head = Block("", (*self.about(), *self.method()), (), "", [])
        return [
            head,
            *(
                Block(pair.title, (), COMPARISON_COLUMNS, COMPARISON_ALIGNMENT, [format_row(row) for row in pair.rows])
                for pair in self.pairs
            ),
        ]

    def render(self) -> str:
        """Return the table for the terminal, with the first ids where not all examples were compared."""
        ids = ", ".join(self.ids[:_IDS_TOLD]) + (", …" if len(self.ids) > _IDS_TOLD else "")
        return terminal(self.title, self.blocks()) + ("" if self.all_examples else f"\n\nCompared: {ids}")

    def frame(self) -> pd.DataFrame:
        """Return one row a pair and measure, with the fields of `ComparisonRow`."""
        rows = []
        for pair in self.pairs:
            before, after = pair.baseline.record, pair.run.record
            named = {f"baseline_{name}": getattr(before, name) for name in ("model", "variant", "run_id")}
            named |= {name: getattr(after, name) for name in ("model", "variant", "run_id")}
            rows += [{**named, **asdict(row)} for row in pair.rows]
        return pd.DataFrame(rows)

    def csv(self) -> str:
        """Return `frame` as CSV."""
        table = self.frame()
        table["detectable"] = table["detectable"].replace(math.inf, math.nan)  # an empty cell
        return table.round(_DECIMALS).to_csv(index=False, lineterminator="\n")


def format_row(row: ComparisonRow) -> list[str]:
    """Format a row of `COMPARISON_COLUMNS`; mark a difference that is not distinguishable from none."""
    gap = f"{row.difference:+.2f}"
    return [
        row.heading,
        f"{row.baseline_mean:.2f}",
        f"{row.mean:.2f}",
        gap if row.distinguishable else Tied(gap),
        f"{row.low:+.2f} to {row.high:+.2f}",
        probability(row.p),
        probability(row.p_holm),
        f"{row.detectable:.2f}" if math.isfinite(row.detectable) else _NOTHING,
        *(f"{number:,}" for number in (row.n, row.higher, row.lower, row.equal)),
    ]


def probability(p: float) -> str:
    """Write a p-value for people; so many resamples tell no more of one below a thousandth."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


@suite_errors()
def compare(
    *runs: str | Path | RunRecord,
    results_dir: str | Path = "results",
    examples: int = 10,
    intersect: bool = False,
    all_pairs: bool = False,
) -> Comparison:
    """Compare finished runs example by example, as `longsumbench compare` does; nothing is written.

        print(compare("85f3139c", "36e2dc94").render())

    Args:
        runs: at least two, the baseline first: folders, ids, the beginnings of ids, or records.
        results_dir: where ids are looked for.
        examples: the most examples that are shown of those that gained, and of those that lost.
        intersect: whether to go on with the common examples, where runs scored different ones.
        all_pairs: whether each run is compared with all that were named before it.

    Returns:
        The comparison: a pair for each run and its baseline, with a row for each measure.

    Raises:
        UsageError: too few runs, one twice, one that cannot be found, or runs that may not be compared.
        DataError: a run lacks one of its files, or one of them is damaged.
    """
    check_value("--examples", examples, Between(0, 10**6))
    if len(runs) < 2:
        raise UsageError("name two or more runs; the first is what the others are compared with")
    results = Results(Path(results_dir).expanduser())
    opened = tuple(open_run(run_name(run), results) for run in runs)
    for place, run in enumerate(opened):
        if run.record.run_id in [other.record.run_id for other in opened[:place]]:
            raise UsageError(f"{run.label} is named twice; name each run once")
        _check_comparable(run, opened[0])
    ids = _common_ids(opened, intersect)
    chosen = list(combinations(opened, 2)) if all_pairs else [(opened[0], run) for run in opened[1:]]
    tests = sum(len(shared_measures(baseline, run)) for baseline, run in chosen)
    resamples = max(RESAMPLES, RESAMPLES_A_TEST * tests)
    tested = _corrected([compare_measures(baseline, run, ids, resamples) for baseline, run in chosen])
    pairs = tuple(compare_pair(baseline, run, rows, ids) for (baseline, run), rows in zip(chosen, tested, strict=True))
    comparison = Comparison(opened, pairs, ids, examples, {})
    return replace(comparison, references=_references(opened, comparison.shown_ids()))


@suite_errors()
def load_outputs(run: str | Path | RunRecord, results_dir: str | Path = "results") -> pd.DataFrame:
    """Read what a finished run wrote for each example.

    Args:
        run: its folder, its id, the beginning of its id, or its record.
        results_dir: where ids are looked for.

    Returns:
        A row for each scored example, indexed by id: `prediction`, then its scores (ROUGE from 0 to 1).

    Raises:
        UsageError: no run, or several, match.
        DataError: a file of the run is missing or damaged.
    """
    opened = open_run(run_name(run), Results(Path(results_dir).expanduser()))
    predictions = pd.DataFrame({"prediction": opened.predictions})
    return predictions.join(opened.scores, how="right")


def open_run(named: str, results: Results) -> ComparedRun:
    """Read a finished run.

    Raises:
        UsageError: none, or several, are meant by the name.
        DataError: a file of it is missing or damaged.
    """
    folder = results.find(named)
    record = RunRecord.read(folder)
    check_written(folder, record, ("scores.csv", "predictions.jsonl"))
    scores = read_scores_of_run(folder, record)
    predictions = {summary.id: summary.text for summary in read_summaries(folder / "predictions.jsonl")}
    run = ComparedRun(folder, record, scores, predictions)
    _check_whole(run)
    return run


def _check_whole(run: ComparedRun) -> None:
    """Check that a run's files belong together.

    Raises:
        DataError: no example is scored, or one without a prediction.
    """
    if run.scores.empty:
        raise DataError("no example is scored; run it again with overwrite=true", run.folder / "scores.csv")
    if unwritten := [name for name in run.scores.index if name not in run.predictions]:
        told = f"no prediction for {len(unwritten)} of the scored examples (first: '{unwritten[0]}')"
        raise DataError(f"{told}; run it again with overwrite=true", run.folder / "predictions.jsonl")


def _check_comparable(run: ComparedRun, baseline: ComparedRun) -> None:
    """Check that two runs were scored in the same way on the same texts; their examples are another matter.

    Raises:
        UsageError: they were not; the message says in what they differ.
    """
    mine, its = _on_any_examples(run.record), _on_any_examples(baseline.record)
    if unlike := describe_difference(mine, its):
        dataset = f"{mine.dataset} instead of {its.dataset}, " if mine.dataset != its.dataset else ""
        raise UsageError(f"{run.label} may not be compared with {baseline.label}: {dataset}{unlike}")


def _on_any_examples(record: RunRecord) -> RunRecord:
    return replace(record, n=0, examples="", signature=_with_count(record.signature, 0))


def _with_count(signature: str, n: int) -> str:
    return re.sub(r"(?<![^|])n:\d+", f"n:{n}", signature)


def _common_ids(runs: Sequence[ComparedRun], intersect: bool) -> tuple[str, ...]:
    """Return the ids of the examples that all runs scored, sorted, so that no test depends on the order of files.

    Raises:
        UsageError: the runs scored different examples and are not to be intersected, or have none in common.
    """
    sets = [set(map(str, run.scores.index)) for run in runs]
    common = set.intersection(*sets)
    if any(one != common for one in sets):
        counts = ", ".join(f"{run.label} {len(one):,}" for run, one in zip(runs, sets, strict=True))
        told = f"the runs scored different examples ({counts}; {len(common):,} in common)"
        if not common:
            raise UsageError(f"{told}: there is nothing to compare")
        if not intersect:
            raise UsageError(f"{told}: --intersect compares those in common")
    return tuple(sorted(common))


def compare_measures(
    baseline: ComparedRun, run: ComparedRun, ids: Sequence[str], resamples: int = RESAMPLES
) -> tuple[ComparisonRow, ...]:
    """Test two runs on every measure that both have and that applies to any example, p not yet corrected."""
    rows = []
    for measure in shared_measures(baseline, run):
        before, after = baseline.scores_of(measure, ids), run.scores_of(measure, ids)
        applies = np.isfinite(before) & np.isfinite(after)
        if applies.any():
            rows.append(compare_measure(measure, before[applies], after[applies], resamples))
    return tuple(rows)


def shared_measures(baseline: ComparedRun, run: ComparedRun) -> list[str]:
    """Return ROUGE's types, and what was measured beside them of both runs in the same way; no breakdown by places."""
    before, after = baseline.record, run.record
    unlike = [name for name, how in after.measured_by.items() if before.measured_by.get(name, how) != how]
    metrics = [registry.metrics.load(name) for name in unlike]
    left_out = {column for metric in metrics for column in (*metric.columns, *metric.further)}
    tables = (before.measures, after.measures, baseline.scores, run.scores)
    both = [name for name in before.measures if all(name in table for table in tables)]
    return [*ROUGE_HEADINGS, *(name for name in both if name not in left_out and not _SPLIT_UP.search(name))]


def compare_measure(
    measure: str, before: NDArray[np.float64], after: NDArray[np.float64], resamples: int = RESAMPLES
) -> ComparisonRow:
    """Test one measure, p not yet corrected.

    Args:
        measure: its name.
        before: the baseline's scores, one an example.
        after: the run's, on the same examples.
        resamples: of either test.
    """
    gaps = after - before
    resampled, p = paired_bootstrap(gaps, resamples), approximate_randomization(gaps, resamples).p
    return ComparisonRow(
        measure=measure,
        n=len(gaps),
        baseline_mean=float(before.mean()),
        mean=float(after.mean()),
        difference=resampled.difference,
        low=resampled.low,
        high=resampled.high,
        p=p,
        p_holm=p,
        detectable=smallest_detectable_difference(gaps),
        higher=int((gaps > 0).sum()),
        lower=int((gaps < 0).sum()),
        equal=int((gaps == 0).sum()),
    )


def _corrected(tested: Sequence[Sequence[ComparisonRow]]) -> list[tuple[ComparisonRow, ...]]:
    """Correct the p-values of all pairs' rows together."""
    p_values = iter(holm([row.p for rows in tested for row in rows]).tolist())
    return [tuple(replace(row, p_holm=next(p_values)) for row in rows) for rows in tested]


def compare_pair(
    baseline: ComparedRun, run: ComparedRun, rows: tuple[ComparisonRow, ...], ids: Sequence[str]
) -> RunPair:
    """Put a pair together: its examples by how their main measure moved, ties in the order of the ids."""
    found = {row.measure: row for row in rows}
    main = found.get(ranked_by(baseline.record), found[RANKED_BY])
    scores = zip(ids, baseline.scores_of(main.measure, ids), run.scores_of(main.measure, ids), strict=True)
    moved = [ScoreChange(name, float(before), float(after)) for name, before, after in scores]
    applies = [one for one in moved if math.isfinite(one.difference)]
    return RunPair(baseline, run, rows, main, tuple(sorted(applies, key=lambda one: -one.difference)))


def _references(runs: Sequence[ComparedRun], ids: Collection[str]) -> dict[str, tuple[Sentences, ...]]:
    """Return the references of examples, from the texts that one of the runs has read; nothing without these."""
    for run in runs:
        if (split := split_read_by(run.folder, run.record)) is not None:
            return {name: split[place].references for place, name in enumerate(split.ids) if name in ids}
    return {}


def comparison_folder(results: Results, runs: Sequence[ComparedRun]) -> Path:
    """Return where a comparison is written when no folder is named: its name holds the runs' ids."""
    name = "-".join(run.record.run_id[:SHORT_ID] for run in runs)
    many = f"{len(runs)}-runs-{digest(name)[:12]}"
    return results.root / "comparisons" / (name if len(name) <= LONGEST_NAME else many)
