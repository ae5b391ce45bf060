"""`longsumbench compare`: compares finished runs on the same examples, pair by pair. Begin with `compare`.

    command line → ComparedRuns → the examples that all of them scored → Comparison: RunPairs with ComparisonRows
    Comparison --write_comparison--> comparison.csv, .md

A difference is a run's score minus the baseline's on the same example. ROUGE and other shares are 0–100.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longsumbench.arguments import public_function
from longsumbench.core import registry
from longsumbench.errors import DataError, UnknownName, UsageError
from longsumbench.formatting import format_count, format_examples, format_interval, format_p
from longsumbench.leaderboards.comparability import (
    ROUGE_HEADINGS,
    describe_unlike_conditions,
    find_heading,
)
from longsumbench.leaderboards.learned import gate_rows
from longsumbench.leaderboards.seed_groups import (
    NEVER_RANKED,
    PairDifference,
    ResultRow,
    compare_groups,
    unit_factor,
)
from longsumbench.leaderboards.significance import (
    LEVEL,
    CorrectedDifference,
    Outcome,
    correct_differences,
    read_run_scores,
)
from longsumbench.metrics.aggregate import GROUP, ScoreTable, values_at
from longsumbench.metrics.evaluate import DEFAULT_RANKING_SCORE, score_column
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import SHORT_ID, RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import describe_run, shorten_paths
from longsumbench.views.figures import write_pictures
from longsumbench.views.footnotes import warnings_on_outputs
from longsumbench.views.outcomes import describe_pair
from longsumbench.views.tables import Block, Tied, csv_text, markdown, terminal

if TYPE_CHECKING:
    import pandas as pd

_MOST_IDS = 5  # of the examples compared, on the terminal
_NO_LIMIT = "–"  # in a cell: no difference can be detected, or there is no test
_OPTIONAL = ("equal", "lower", "higher", "n", "detectable", "level")
_PAIR_COLUMNS = (
    *("measure", "baseline", "run", "difference", "interval", "p", "p (Holm)"),
    *_OPTIONAL[::-1],
)
_PAIR_ALIGNMENT = "lrrrrrrrrrrrr"  # numbers are never broken into lines
_DEFAULT_MEASURES = ("rouge1", "rouge2", DEFAULT_RANKING_SCORE)
_CSV_DECIMALS = 6  # of numbers in the CSV


@dataclass(frozen=True)
class ComparedRun:
    """A finished run with its scores and predictions.

    Attributes:
        scores: one row per example, indexed by id, as the metrics returned them.
    """

    folder: Path
    record: RunRecord
    scores: ScoreTable
    predictions: Mapping[str, str]

    @property
    def label(self) -> str:
        """Model, variant, seed and id, short enough for a heading."""
        return describe_run(self.record)

    def metric_scores(self, measure: str, ids: Sequence[str]) -> NDArray[np.float64]:
        """Return a measure of the examples `ids`: ROUGE's F and other shares 0–100, the rest in their units."""
        return values_at(self.scores, score_column(measure), ids) * unit_factor(
            self.record, measure
        )


@dataclass(frozen=True)
class ComparisonRow:
    """One measure of two runs. Means, differences and their bounds are 0–100, or in the measure's unit.

    Attributes:
        measure: a type of ROUGE (its F), or another metric's column.
        n: number of examples to which the measure applies.
        low, high, confidence, detectable, outcome: as in `CorrectedDifference`; all rows of all pairs are tested together.
        p, p_holm: without and with correction; None if a system was trained, because it has one seed here.
        higher, lower, equal: number of examples on which the run scores higher, lower or the same.
    """

    measure: str
    n: int
    baseline_mean: float
    mean: float
    difference: float
    low: float
    high: float
    confidence: float
    p: float | None
    p_holm: float | None
    detectable: float
    higher: int
    lower: int
    equal: int
    outcome: Outcome


@dataclass(frozen=True)
class RunPair:
    """Two runs, compared.

    Attributes:
        rows: one row per measure, ROUGE first.
        main: row of the measure that the suite ranks by.
    """

    baseline: ComparedRun
    run: ComparedRun
    rows: tuple[ComparisonRow, ...]
    main: ComparisonRow

    @property
    def title(self) -> str:
        """Heading of the pair."""
        return f"{self.run.label} minus {self.baseline.label}"


@dataclass(frozen=True)
class Comparison:
    """The result of `longsumbench compare`.

    Attributes:
        runs: all runs, in the order of the command line.
        ids: ids of the examples, sorted.
    """

    runs: tuple[ComparedRun, ...]
    pairs: tuple[RunPair, ...]
    ids: tuple[str, ...]

    @property
    def title(self) -> str:
        """Heading: the models and the dataset."""
        names = dict.fromkeys(run.record.key.model for run in self.runs)
        return f"longsumbench: {', '.join(names)} compared on {self.runs[0].record.key.dataset}"

    @property
    def all_examples(self) -> bool:
        """Whether all examples that any run scored are compared."""
        return all(len(run.scores) == len(self.ids) for run in self.runs)

    @property
    def groups(self) -> int | None:
        """Number of texts that the examples are about; None if each example has its own."""
        for run in self.runs:
            if GROUP in run.scores:
                return len(np.unique(values_at(run.scores, GROUP, self.ids)))
        return None

    def about(self) -> list[str]:
        """Return lines about the examples, training, oracles and outputs."""
        split, count = self.runs[0].record.key.split, format_examples(len(self.ids), self.groups)
        lines = [f"{split} split, {count}."]
        if not self.all_examples:
            scored = ", ".join(f"{run.label} {len(run.scores):,}" for run in self.runs)
            lines = [f"{split} split, the {count} that all runs scored, of: {scored}."]
        trained = ", ".join(run.label for run in self.runs if run.record.trained)
        zero_shot = ", ".join(run.label for run in self.runs if run.record.zero_shot)
        oracles = ", ".join(run.label for run in self.runs if run.record.oracle)
        if trained and zero_shot:
            lines.append(
                f"Trained here: {trained}. Not trained here, perhaps on these texts: {zero_shot}."
            )
        if oracles:
            lines.append(f"Oracles, which saw the references or their lengths: {oracles}.")
        lengths = []
        for run in self.runs:
            if outputs := run.record.evaluation.outputs:
                lengths.append(f"{run.label} {outputs.words:.0f} / {outputs.reference_words:.0f}")
        if lengths:
            lines.append(f"Mean words of the outputs / the references: {', '.join(lengths)}.")
        return lines + warnings_on_outputs([run.record for run in self.runs])

    def method(self) -> list[str]:
        """Return lines that explain the columns and how the scores were computed."""
        # The correction counts all rows of all pairs
        tests = sum(len(pair.rows) for pair in self.pairs)
        columns = (
            "Difference: run minus baseline. p: paired t test over examples, those of one text together; p (Holm): corrected "
            f"(Holm) for the {format_count(tests, 'test')} of this table, which --measures chooses. Interval: at the level "
            "of its corrected test, so it contains 0 unless the difference is significant. The level depends on what is "
            "corrected together: other runs, --all-pairs and the leaderboard have other levels. Detectable: the smallest "
            f"difference that such a test finds with 80 % power; {_NO_LIMIT}: too few examples differ. Higher, lower, equal: "
            "number of examples with such a score. "
            "ROUGE (F1) and other shares are 0–100."
        )
        # The signature counts the compared examples, not those of the first run
        signature = _with_count(self.runs[0].record.evaluation.signature, len(self.ids))
        return [columns, signature.replace("|", " ")]

    def blocks(self) -> list[Block]:
        """Return a block about the runs and examples, one for every pair, and one on the method."""
        about = Block("", tuple(self.about()), (), "", [])
        method = Block("", tuple(self.method()), (), "", [])
        return [about, *map(_pair_block, self.pairs), method]

    def render(self) -> str:
        """Return the table for the terminal, with the first ids if some examples were left out."""
        text = terminal(self.title, self.blocks())
        if self.all_examples:
            return text
        more = ", …" if self.ids[_MOST_IDS:] else ""
        return f"{text}\n\nCompared: {', '.join(self.ids[:_MOST_IDS])}{more}"

    def frame(self) -> "pd.DataFrame":
        """Return one row per pair and measure, with the fields of `ComparisonRow`."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of `frame`."""
        rows = []
        for pair in self.pairs:
            identity = {}
            for side, run in (("baseline_", pair.baseline), ("", pair.run)):
                identity[f"{side}model"] = run.record.key.model
                identity[f"{side}variant"] = shorten_paths(run.record.variant)
                identity[f"{side}run_id"] = run.record.run_id
            rows += [{**identity, **asdict(row)} for row in pair.rows]
        return rows


def _pair_block(pair: RunPair) -> Block:
    row = pair.main
    difference = CorrectedDifference(
        row.difference, row.low, row.high, row.outcome, confidence=row.confidence
    )
    unit = pair.run.record.evaluation.units.get(row.measure, "points")
    sentence = describe_pair(pair.run.label, pair.baseline.label, difference, row.measure, unit)
    return Block(
        pair.title,
        (f"{sentence}.",),
        _PAIR_COLUMNS,
        _PAIR_ALIGNMENT,
        list(map(format_row, pair.rows)),
        optional=_OPTIONAL,
        tied=f"the two are not distinguishable (p (Holm) ≥ {LEVEL})",
    )


def format_row(row: ComparisonRow) -> list[str]:
    """Format a row of `_PAIR_COLUMNS`; mark a difference that is not significant, if a test is possible."""
    gap = f"{row.difference:+.2f}"
    return [
        find_heading(row.measure),
        f"{row.baseline_mean:.2f}",
        f"{row.mean:.2f}",
        Tied(gap) if row.outcome == Outcome.NOT_SHOWN else gap,
        format_interval(row.low, row.high, "+.2f"),
        format_p(row.p),
        format_p(row.p_holm),
        _NO_LIMIT if math.isnan(row.low) else f"{row.confidence:.4g} %",
        f"{row.detectable:.2f}" if math.isfinite(row.detectable) else _NO_LIMIT,
        *(f"{number:,}" for number in (row.n, row.higher, row.lower, row.equal)),
    ]


@public_function
def compare(
    *runs: str | Path | RunRecord,
    results_dir: str | Path = "results",
    intersect: bool = False,
    all_pairs: bool = False,
    measures: Sequence[str] = (),
) -> Comparison:
    """Compare finished runs example by example, as `longsumbench compare` does; nothing is written.

        print(compare("85f3139c", "36e2dc94").render())

    Args:
        runs: at least two: folders, ids, unique prefixes of ids, or records. The others are compared with the first.
        results_dir: where ids are looked up.
        intersect: compare the common examples if the runs scored different ones.
        all_pairs: compare each run with all runs named before it.
        measures: what is tested, "rouge1" or "copied_bigrams"; default: R-1, R-2, R-Lsum and what ranks the runs.

    Returns:
        The comparison: a pair for each run and its baseline, with a row for each measure.

    Raises:
        UsageError: fewer than two runs, a run named twice, an unknown run or measure, or runs that are not comparable.
        DataError: a file of a run is missing or damaged.
    """
    if len(runs) < 2:
        raise UsageError("name two or more runs; the others are compared with the first")
    results = Results.at(results_dir)
    # The runs may have scored other examples, but not other texts, nor in another way
    opened = tuple(open_run(run, results) for run in runs)
    for index, run in enumerate(opened):
        if run.record.run_id in [earlier_run.record.run_id for earlier_run in opened[:index]]:
            raise UsageError(f"{run.label} is named twice; name each run once")
        _check_comparable(run, opened[0])
    ids = _common_ids(opened, intersect)
    sides = list(combinations(opened, 2)) if all_pairs else [(opened[0], run) for run in opened[1:]]
    pairs = []
    compared = compare_measures(sides, ids, measures)
    for (baseline, run), rows in zip(sides, compared, strict=True):
        if not rows:
            raise UsageError(
                f"no common example of {run.label} and {baseline.label} has these measures"
            )
        row_of = {row.measure: row for row in rows}
        default = row_of.get(DEFAULT_RANKING_SCORE, rows[0])
        main = row_of.get(baseline.record.evaluation.ranked_by, default)
        pairs.append(RunPair(baseline, run, rows, main))
    return Comparison(opened, tuple(pairs), ids)


def open_run(run: str | Path | RunRecord, results: Results) -> ComparedRun:
    """Read a finished run.

    Raises:
        UsageError: no run, or more than one, has this name.
        DataError: a file of the run is missing or damaged.
    """
    folder = results.find(run)
    record = RunRecord.read(folder)
    record.check_written(folder, ("scores.csv", "predictions.jsonl"))
    scores = read_run_scores(folder, record)
    predictions = {
        summary.id: summary.text for summary in read_summaries(folder / "predictions.jsonl")
    }
    if missing := set(scores.index) - predictions.keys():
        summaries = format_count(len(missing), "output")
        problem = f"lacks {summaries} that scores.csv has; overwrite=true repeats the run"
        raise DataError(problem, folder / "predictions.jsonl")
    return ComparedRun(folder, record, scores, predictions)


def _without_examples(record: RunRecord) -> RunRecord:
    """Return a record that does not say which examples, and how many, it is about."""
    signature = _with_count(record.evaluation.signature, 0)
    evaluation = replace(record.evaluation, n=0, examples="", signature=signature)
    return replace(record, evaluation=evaluation)


def _check_comparable(run: ComparedRun, baseline: ComparedRun) -> None:
    """Raise UsageError if two runs read different texts or were scored differently; their examples may differ."""
    record, expected = _without_examples(run.record), _without_examples(baseline.record)
    if difference := describe_unlike_conditions(record, expected):
        if record.key.dataset != expected.key.dataset:
            datasets = f"{record.key.dataset} instead of {expected.key.dataset}"
            difference = f"{datasets}, {difference}"
        raise UsageError(f"{run.label} may not be compared with {baseline.label}: {difference}")


def _with_count(signature: str, n: int) -> str:
    return re.sub(r"(?<![^|])n:\d+", f"n:{n}", signature)


def _common_ids(runs: Sequence[ComparedRun], intersect: bool) -> tuple[str, ...]:
    """Return the ids of the examples that all runs scored, sorted, so that no test depends on the order of files."""
    sets = [set(map(str, run.scores.index)) for run in runs]
    common = set.intersection(*sets)
    if any(ids != common for ids in sets):
        counts = ", ".join(f"{run.label} {len(ids):,}" for run, ids in zip(runs, sets, strict=True))
        message = f"the runs scored different examples ({counts}; {len(common):,} in common)"
        if not common:
            raise UsageError(f"{message}: there is nothing to compare")
        if not intersect:
            raise UsageError(f"{message}: --intersect compares those in common")
    return tuple(sorted(common))


def compare_measures(
    sides: Sequence[tuple[ComparedRun, ComparedRun]], ids: Sequence[str], measures: Sequence[str]
) -> list[tuple[ComparisonRow, ...]]:
    """Test pairs of a baseline and a run, all together, on the measures that apply to an example.

    Nothing is decided about a run that did not learn, as in tables.
    """
    by_run = {run.record.run_id: run.scores.select(ids) for run in chain.from_iterable(sides)}
    rows = {run.record.run_id: ResultRow((run.record,)) for run in chain.from_iterable(sides)}
    learning = gate_rows(list(rows.values()), by_run)
    # First all differences, then one correction over all of them
    differences: dict[tuple[int, str], PairDifference] = {}
    for number, (baseline, run) in enumerate(sides):
        pair = rows[run.record.run_id], rows[baseline.record.run_id]
        for measure in _choose_measures(measures, baseline, run):
            difference = compare_groups(*pair, measure, by_run)
            if difference is not None:
                differences[number, measure] = difference
    tables: list[list[ComparisonRow]] = [[] for _ in sides]
    for (number, measure), judged in correct_differences(differences).items():
        baseline, run = sides[number]
        if any(learning[side.record.run_id].word in NEVER_RANKED for side in sides[number]):
            judged = judged._replace(outcome=Outcome.NOT_LEARNED)
        scores = baseline.metric_scores(measure, ids), run.metric_scores(measure, ids)
        tables[number].append(_comparison_row(measure, *scores, judged))
    return [tuple(rows) for rows in tables]


def _choose_measures(names: Sequence[str], baseline: ComparedRun, run: ComparedRun) -> list[str]:
    """Return `names`, or the default ones; raise UsageError if the two runs do not share one."""
    shared = _shared_measures(baseline, run)
    default = {*_DEFAULT_MEASURES, baseline.record.evaluation.ranked_by}
    for name in names:
        if name not in shared:
            raise UnknownName(f"measure of {run.label} and {baseline.label}", name, shared)
    chosen = names or default
    return [measure for measure in shared if measure in chosen]


def _shared_measures(baseline: ComparedRun, run: ComparedRun) -> list[str]:
    """Return ROUGE's types and the other measures computed in the same way for both runs."""
    first, second = baseline.record.evaluation, run.record.evaluation
    # Columns of metrics that the two runs computed in other ways
    left_out: set[str] = set()
    for name, way in second.measured_by.items():
        if first.measured_by.get(name, way) != way:
            metric = registry.metrics.load(name)
            left_out.update(metric.columns, metric.further)
    measures = [*ROUGE_HEADINGS]
    for name in first.measures:
        is_shared = name in second.measures and name in baseline.scores and name in run.scores
        if is_shared and name not in left_out:
            measures.append(name)
    return measures


def _comparison_row(
    measure: str,
    baseline_scores: NDArray[np.float64],
    scores: NDArray[np.float64],
    judged: CorrectedDifference,
) -> ComparisonRow:
    gaps = scores - baseline_scores
    applies = np.isfinite(gaps)
    return ComparisonRow(
        measure=measure,
        n=int(applies.sum()),
        baseline_mean=float(baseline_scores[applies].mean()),
        mean=float(scores[applies].mean()),
        difference=judged.mean,
        low=judged.low,
        high=judged.high,
        confidence=judged.confidence,
        p=judged.p_alone,
        p_holm=judged.p,
        detectable=judged.detectable,
        higher=int((gaps > 0).sum()),
        lower=int((gaps < 0).sum()),
        equal=int((gaps == 0).sum()),
        outcome=judged.outcome,
    )


def comparison_folder(results: Results, runs: Sequence[ComparedRun]) -> Path:
    """Return the default folder of a comparison; its name contains the runs' ids."""
    return results.root / "comparisons" / "-".join(run.record.run_id[:SHORT_ID] for run in runs)


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write a comparison as CSV, where a cell is empty if no difference is detectable, and as Markdown."""
    csv = csv_text(comparison.rows(), decimals=_CSV_DECIMALS)
    blocks = comparison.blocks()
    if not comparison.all_examples:
        blocks.append(Block("Examples compared", (", ".join(comparison.ids),), (), "", []))
    text = markdown(comparison.title, blocks)
    return write_pictures(folder, {"comparison.csv": csv, "comparison.md": text})
