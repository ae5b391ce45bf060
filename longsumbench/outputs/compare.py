"""`longsumbench compare`: compares finished runs on the same examples, pair by pair.

    command line → ComparedRuns → the examples that all of them scored → Comparison: RunPairs with ComparisonRows

A difference is a run's score minus the baseline's on the same example. ROUGE and other shares are 0–100.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench.core import Between, Sentences, check_value, registry
from longsumbench.errors import DataError, UsageError, suite_errors
from longsumbench.formatting import format_count, format_interval, format_p
from longsumbench.leaderboards.comparability import MEASURE_HEADINGS, ROUGE_HEADINGS, describe_difference, heading_of
from longsumbench.leaderboards.seed_groups import unit_factor
from longsumbench.leaderboards.significance import LEVEL, RESAMPLES, RESAMPLES_A_TEST, cannot_reach, read_scores_of_run
from longsumbench.metrics.aggregate import Estimate
from longsumbench.metrics.evaluate import score_column
from longsumbench.metrics.output_facts import OutputFacts, describe_outputs
from longsumbench.metrics.statistics import (
    approximate_randomization,
    bootstrap_interval,
    holm,
    smallest_detectable_difference,
)
from longsumbench.render.figures import COLOURS, GREY, draw_figure, draw_intervals, plain_axes
from longsumbench.render.tables import Block, ShownInNotebooks, Tied, terminal
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import DEFAULT_RANKING_SCORE, RunRecord, output_problems, run_label
from longsumbench.runs.results import Results, split_read_by
from longsumbench.runs.verdicts import Verdicts, read_verdicts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_RUN_COLOUR, _BASELINE_COLOUR = COLOURS[0], COLOURS[1]  # of the higher score; on the page, of words that one shares
_SIZE, _TITLE = (11.0, 3.4), 0.4  # inches of a pair's picture, and the height of its title
_MOST_STEPS = 1_000  # examples drawn; more would not fit the picture's width
_CSV_DECIMALS = 6  # of numbers in the CSV
_MOST_IDS = 5  # of the examples compared, on the terminal
_NO_LIMIT = "–"  # in a cell: no difference can be detected
_BREAKDOWN = re.compile(r"_(?:position|distance)_\d+$|_chance$")  # measures by position, and chance levels
COMPARISON_COLUMNS = (
    *("measure", "baseline", "run", "difference", "95 % interval", "p", "p (Holm)", "detectable"),
    *("n", "higher", "lower", "equal"),
)
COMPARISON_ALIGNMENT = "lrrrrrrrrrrr"  # numbers are never broken into lines


@dataclass(frozen=True)
class ComparedRun:
    """A finished run with its scores and predictions.

    Attributes:
        scores: one row per example, indexed by id, as the metrics returned them.
        verdicts: what metrics found about each sentence of the predictions.
    """

    folder: Path
    record: RunRecord
    scores: pd.DataFrame
    predictions: Mapping[str, str]
    verdicts: Verdicts = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Model, variant, seed and id, short enough for a heading."""
        return run_label(self.record)

    @cached_property
    def outputs(self) -> OutputFacts:
        """Statistics of all summaries together, from `describe_outputs`."""
        return describe_outputs(list(self.predictions.values()))

    def scores_of(self, measure: str, ids: Sequence[str]) -> NDArray[np.float64]:
        """Return a measure of the examples `ids`: ROUGE's F and other shares 0–100, the rest in their units."""
        values = self.scores.loc[list(ids), score_column(measure)].to_numpy(dtype=np.float64)
        return values * unit_factor(self.record, measure)


@dataclass(frozen=True)
class ComparisonRow:
    """One measure of two runs. Means, differences and their bounds are 0–100, or in the measure's unit.

    Attributes:
        measure: a type of ROUGE (its F), or another metric's column.
        n: number of examples to which the measure applies.
        low, high: 95 % interval of the difference, from the paired bootstrap.
        p: two-sided p-value, from approximate randomization.
        p_holm: p with Holm's correction for all rows of all pairs.
        detectable: smallest difference that one test at 5 % finds with a power of 80 %; infinite if there is none.
        higher, lower, equal: number of examples on which the run scores higher, lower or the same.
        too_few: True if the corrected test cannot reach 5 % with n examples.
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
    too_few: bool = False

    @property
    def heading(self) -> str:
        """The measure's heading in tables."""
        return heading_of(self.measure)

    @property
    def distinguishable(self) -> bool:
        """Whether the difference is significant after Holm's correction."""
        return self.p_holm < LEVEL


class ScoreChange(NamedTuple):
    """An example's score under two runs; the difference is the run's score minus the baseline's."""

    id: str
    baseline_score: float
    score: float
    difference: float


@dataclass(frozen=True)
class RunPair:
    """Two runs, compared.

    Attributes:
        rows: one row per measure, ROUGE first.
        main: row of the measure that the suite ranks by.
        moved: all examples by that measure, greatest gain first.
    """

    baseline: ComparedRun
    run: ComparedRun
    rows: tuple[ComparisonRow, ...]
    main: ComparisonRow
    moved: tuple[ScoreChange, ...]

    @property
    def title(self) -> str:
        """Heading of the pair."""
        return f"{self.run.label} minus {self.baseline.label}"

    @property
    def picture_size(self) -> tuple[float, float]:
        """Width and height of its picture in inches."""
        return _SIZE[0], max(_SIZE[1], 0.45 * len(self._drawn_rows))

    @property
    def _drawn_rows(self) -> list[ComparisonRow]:
        return [row for row in self.rows if row is self.main or row.measure in (*ROUGE_HEADINGS, *MEASURE_HEADINGS)]

    def draw(self, figure: "Figure | SubFigure") -> None:
        """Draw the mean differences, and the examples' differences in the main measure."""
        mean_plot, example_plot = figure.subplots(1, 2, width_ratios=(2, 3))
        _draw_means(mean_plot, self._drawn_rows)
        _draw_examples(example_plot, self)

    def extremes(self, limit: int) -> tuple[tuple[ScoreChange, ...], tuple[ScoreChange, ...]]:
        """Return the examples with the greatest gains and those with the greatest losses, at most `limit` of each."""
        gains = tuple(change for change in self.moved[:limit] if change.difference > 0)
        losses = tuple(change for change in self.moved[::-1][:limit] if change.difference < 0)
        return gains, losses


@dataclass(frozen=True)
class Comparison(ShownInNotebooks):
    """The result of `longsumbench compare`.

    Attributes:
        runs: all runs, in the order of the command line.
        ids: ids of the examples, sorted.
        num_shown: maximum number of gains, and of losses, that are shown.
        references: id of a shown example → its references; empty if the texts are not on this machine.
    """

    runs: tuple[ComparedRun, ...]
    pairs: tuple[RunPair, ...]
    ids: tuple[str, ...]
    num_shown: int
    references: Mapping[str, tuple[Sentences, ...]]

    @property
    def title(self) -> str:
        """Heading: the models and the dataset."""
        names = list(dict.fromkeys(run.record.model for run in self.runs))
        return f"longsumbench: {', '.join(names)} compared on {self.runs[0].record.dataset}"

    @property
    def all_examples(self) -> bool:
        """Whether all examples that any run scored are compared."""
        return all(len(run.scores) == len(self.ids) for run in self.runs)

    def shown_ids(self) -> set[str]:
        """Return the ids of the examples that are shown."""
        return {change.id for pair in self.pairs for side in pair.extremes(self.num_shown) for change in side}

    def about(self) -> list[str]:
        """Return lines about the examples, training, oracles, averaged checkpoints and outputs."""
        split, count = self.runs[0].record.split, format_count(len(self.ids), "example")
        lines = [f"{split} split, {count}."]
        if not self.all_examples:
            scored = ", ".join(f"{run.label} {len(run.scores):,}" for run in self.runs)
            lines = [f"{split} split, the {count} that all runs scored, of: {scored}."]
        trained = ", ".join(run.label for run in self.runs if run.record.trained)
        if trained and (zero_shot := ", ".join(run.label for run in self.runs if run.record.zero_shot)):
            lines.append(f"Trained here: {trained}. Not trained here, perhaps on these texts: {zero_shot}.")
        if oracles := [run.label for run in self.runs if run.record.oracle]:
            lines.append(f"Oracles, which saw the references or their lengths: {', '.join(oracles)}.")
        if means := [run.label for run in self.runs if run.record.checkpoints]:
            lines.append(f"Scores are means of several checkpoints, summaries the best one's: {', '.join(means)}.")
        lengths = [f"{run.label} {run.outputs.words:.0f}" for run in self.runs]
        if (first := self.runs[0].record.outputs) and first.reference_words:
            lengths.append(f"the references {first.reference_words:.0f}")
        lines.append(f"Mean length in words: {', '.join(lengths)}.")
        for run in self.runs:
            if problems := output_problems(run.record, run.outputs):
                lines.append(f"Warning, {run.label}: {'; '.join(problems)}.")
        return lines

    def method(self) -> list[str]:
        """Return lines that explain the columns and how the scores were computed."""
        tests = sum(len(pair.rows) for pair in self.pairs)
        columns = (
            "Difference: run minus baseline, with the 95 % interval of the paired bootstrap. p: approximate "
            f"randomization, two-sided; Holm: corrected for the {tests} tests of this table. Detectable: the "
            f"smallest difference that one such test finds with 80 % power; {_NO_LIMIT}: too few examples differ. "
            "Higher, lower, equal: number of examples with such a score. ROUGE (F1) and other shares are 0–100."
        )
        return [columns, _with_count(self.runs[0].record.signature, len(self.ids)).replace("|", " ")]

    def blocks(self) -> list[Block]:
        """Return a block about the runs and examples, and one for every pair."""
        head = Block("", (*self.about(), *self.method()), (), "", [])
        return [head, *map(_pair_block, self.pairs)]

    def render(self) -> str:
        """Return the table for the terminal, with the first ids if some examples were left out."""
        ids = ", ".join(self.ids[:_MOST_IDS]) + (", …" if len(self.ids) > _MOST_IDS else "")
        return terminal(self.title, self.blocks()) + ("" if self.all_examples else f"\n\nCompared: {ids}")

    def frame(self) -> pd.DataFrame:
        """Return one row per pair and measure, with the fields of `ComparisonRow`."""
        rows = []
        for pair in self.pairs:
            sides = {"baseline_": pair.baseline.record, "": pair.run.record}
            keys = ("model", "variant", "run_id")
            identity = {f"{side}{key}": getattr(record, key) for side, record in sides.items() for key in keys}
            rows += [{**identity, **asdict(row)} for row in pair.rows]
        return pd.DataFrame(rows)

    def examples(self) -> pd.DataFrame:
        """Return one row per pair and example: scores and difference in the main measure, greatest gain first.

        Scores are 0–100, or in the measure's unit. Examples to which the measure does not apply are left out.
        """
        rows = []
        for pair in self.pairs:
            identity = {"baseline_run_id": pair.baseline.record.run_id, "run_id": pair.run.record.run_id}
            identity |= {"measure": pair.main.measure}
            rows += [{**identity, **change._asdict()} for change in pair.moved]
        return pd.DataFrame(rows)

    def figure(self) -> "Figure":
        """Return each pair's picture: mean differences with 95 % intervals, and every example's difference."""
        heights = [pair.picture_size[1] + _TITLE for pair in self.pairs]

        def draw(figure: "Figure") -> None:
            figure.set_layout_engine("constrained")
            parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
            for part, pair in zip(parts, self.pairs, strict=True):
                part.suptitle(pair.title)
                pair.draw(part)

        return draw_figure((_SIZE[0], sum(heights)), draw)

    def csv(self) -> str:
        """Return `frame` as CSV."""
        table = self.frame().replace(math.inf, math.nan)  # an empty cell: no difference is detectable
        return table.round(_CSV_DECIMALS).to_csv(index=False, lineterminator="\n")


def _draw_means(plot: "Axes", rows: Sequence[ComparisonRow]) -> None:
    colours = [_RUN_COLOUR if row.difference > 0 else _BASELINE_COLOUR for row in rows]
    draw_intervals(
        plot,
        [
            (row.heading, Estimate(row.difference, row.low, row.high), {"color": c if row.distinguishable else GREY})
            for row, c in zip(rows, colours, strict=True)
        ],
    )
    plot.axvline(0, color=GREY, linewidth=1.0)
    plot.set_xlabel("mean difference, points")


def _draw_examples(plot: "Axes", pair: RunPair) -> None:
    gaps = np.array([change.difference for change in pair.moved])
    steps = np.linspace(0, len(gaps) - 1, min(len(gaps), _MOST_STEPS)).round().astype(int)
    gaps, edges = gaps[steps], np.linspace(0, len(gaps), len(steps) + 1)
    plot.stairs(np.maximum(gaps, 0), edges, fill=True, color=_RUN_COLOUR)
    plot.stairs(np.minimum(gaps, 0), edges, fill=True, color=_BASELINE_COLOUR)
    plot.axhline(0, color=GREY, linewidth=1.0)
    plot.set_xlim(0, edges[-1])
    plain_axes(plot)
    row, count = pair.main, format_count(pair.main.n, "example")
    plot.set_xlabel(f"{count}: {row.higher:,} higher, {row.lower:,} lower, {row.equal:,} equal")
    plot.set_title(f"difference in {row.heading}, points", fontsize=10, loc="left")


def _pair_block(pair: RunPair) -> Block:
    too_few = ", ".join(row.heading for row in pair.rows if row.too_few)
    return Block(
        pair.title,
        (),
        COMPARISON_COLUMNS,
        COMPARISON_ALIGNMENT,
        [format_row(row) for row in pair.rows],
        optional=("equal", "lower", "higher", "n", "p", "detectable"),
        footnotes=(f"Too few examples for a test: {too_few}.",) if too_few else (),
        tied=f"the two are not distinguishable (p (Holm) ≥ {LEVEL})",
    )


def format_row(row: ComparisonRow) -> list[str]:
    """Format a row of `COMPARISON_COLUMNS`; mark a difference that is not significant, unless no test is possible."""
    gap = f"{row.difference:+.2f}"
    return [
        row.heading,
        f"{row.baseline_mean:.2f}",
        f"{row.mean:.2f}",
        gap if row.distinguishable or row.too_few else Tied(gap),
        format_interval(row.low, row.high, "+.2f"),
        format_p(row.p),
        format_p(row.p_holm),
        f"{row.detectable:.2f}" if math.isfinite(row.detectable) else _NO_LIMIT,
        *(f"{number:,}" for number in (row.n, row.higher, row.lower, row.equal)),
    ]


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
        runs: at least two: folders, ids, unique prefixes of ids, or records. The others are compared with the first.
        results_dir: where ids are looked up.
        examples: maximum number of gains, and of losses, that are shown.
        intersect: compare the common examples if the runs scored different ones.
        all_pairs: compare each run with all runs named before it.

    Returns:
        The comparison: a pair for each run and its baseline, with a row for each measure.

    Raises:
        UsageError: fewer than two runs, a run named twice, an unknown run, or runs that are not comparable.
        DataError: a file of a run is missing or damaged.
    """
    check_value("--examples", examples, Between(0, 10**6))
    if len(runs) < 2:
        raise UsageError("name two or more runs; the others are compared with the first")
    results = Results(Path(results_dir).expanduser())
    opened = tuple(open_run(run, results) for run in runs)
    for place, run in enumerate(opened):
        if run.record.run_id in [earlier_run.record.run_id for earlier_run in opened[:place]]:
            raise UsageError(f"{run.label} is named twice; name each run once")
        _check_comparable(run, opened[0])
    ids = _common_ids(opened, intersect)
    sides = list(combinations(opened, 2)) if all_pairs else [(opened[0], run) for run in opened[1:]]
    tests = sum(len(shared_measures(baseline, run)) for baseline, run in sides)
    resamples = max(RESAMPLES, RESAMPLES_A_TEST * tests)
    tables = _corrected([compare_measures(baseline, run, ids, resamples) for baseline, run in sides])
    pairs = tuple(compare_pair(baseline, run, rows, ids) for (baseline, run), rows in zip(sides, tables, strict=True))
    comparison = Comparison(opened, pairs, ids, examples, {})
    return replace(comparison, references=_find_references(opened, comparison.shown_ids()))


@suite_errors()
def load_outputs(run: str | Path | RunRecord, results_dir: str | Path = "results") -> pd.DataFrame:
    """Read what a finished run wrote for each example.

    Args:
        run: its folder, its id, the beginning of its id, or its record.
        results_dir: where ids are looked for.

    Returns:
        A row for each scored example, indexed by id: `prediction`, `words` (its length), `references` (a list of
        texts; None if the texts are not on this machine), then its scores (ROUGE from 0 to 1).

    Raises:
        UsageError: no run, or several, match.
        DataError: a file of the run is missing or damaged.
    """
    opened = open_run(run, Results(Path(results_dir).expanduser()))
    references = _find_references([opened], opened.predictions.keys())
    texts = {name: [" ".join(sentences) for sentences in group] for name, group in references.items()}
    rows = {name: (text, len(text.split()), texts.get(name)) for name, text in opened.predictions.items()}
    outputs = pd.DataFrame.from_dict(rows, "index", columns=["prediction", "words", "references"])
    return outputs.join(opened.scores, how="right")


def open_run(run: str | Path | RunRecord, results: Results) -> ComparedRun:
    """Read a finished run.

    Raises:
        UsageError: no run, or more than one, has this name.
        DataError: a file of the run is missing or damaged.
    """
    folder = results.find(run)
    record = RunRecord.read(folder)
    record.check_written(folder, ("scores.csv", "predictions.jsonl"))
    scores = read_scores_of_run(folder, record)
    predictions = {summary.id: summary.text for summary in read_summaries(folder / "predictions.jsonl")}
    if missing := set(scores.index) - predictions.keys():
        problem = f"lacks {len(missing)} summaries that scores.csv has; overwrite=true repeats the run"
        raise DataError(problem, folder / "predictions.jsonl")
    return ComparedRun(folder, record, scores, predictions, read_verdicts(folder))


def _check_comparable(run: ComparedRun, baseline: ComparedRun) -> None:
    """Raise UsageError if two runs read different texts or were scored differently; their examples may differ."""
    record, expected = (
        replace(side.record, n=0, examples="", signature=_with_count(side.record.signature, 0))
        for side in (run, baseline)
    )
    if difference := describe_difference(record, expected):
        dataset = f"{record.dataset} instead of {expected.dataset}, " if record.dataset != expected.dataset else ""
        raise UsageError(f"{run.label} may not be compared with {baseline.label}: {dataset}{difference}")


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
    baseline: ComparedRun, run: ComparedRun, ids: Sequence[str], resamples: int = RESAMPLES
) -> tuple[ComparisonRow, ...]:
    """Test two runs on every shared measure that applies to an example; `p_holm` is not corrected yet."""
    rows = []
    for measure in shared_measures(baseline, run):
        baseline_scores, scores = baseline.scores_of(measure, ids), run.scores_of(measure, ids)
        applies = np.isfinite(baseline_scores) & np.isfinite(scores)
        if applies.any():
            rows.append(compare_measure(measure, baseline_scores[applies], scores[applies], resamples))
    return tuple(rows)


def shared_measures(baseline: ComparedRun, run: ComparedRun) -> list[str]:
    """Return ROUGE's types and the other measures computed in the same way for both runs; no breakdowns by position."""
    first, record = baseline.record, run.record
    different = [name for name, way in record.measured_by.items() if first.measured_by.get(name, way) != way]
    metrics = [registry.metrics.load(name) for name in different]
    left_out = {column for metric in metrics for column in (*metric.columns, *metric.further)}
    tables = (first.measures, record.measures, baseline.scores, run.scores)
    measures = [name for name in first.measures if all(name in table for table in tables)]
    return [*ROUGE_HEADINGS, *(name for name in measures if name not in left_out and not _BREAKDOWN.search(name))]


def compare_measure(
    measure: str, baseline_scores: NDArray[np.float64], scores: NDArray[np.float64], resamples: int = RESAMPLES
) -> ComparisonRow:
    """Test one measure of the baseline and the run (`scores`), one score per example; `p_holm` equals `p`."""
    gaps = scores - baseline_scores
    (low, high), p = bootstrap_interval(gaps, resamples, 1), float(approximate_randomization(gaps, resamples))
    return ComparisonRow(
        measure=measure,
        n=len(gaps),
        baseline_mean=float(baseline_scores.mean()),
        mean=float(scores.mean()),
        difference=float(gaps.mean()),
        low=low,
        high=high,
        p=p,
        p_holm=p,
        detectable=smallest_detectable_difference(gaps),
        higher=int((gaps > 0).sum()),
        lower=int((gaps < 0).sum()),
        equal=int((gaps == 0).sum()),
        too_few=cannot_reach(LEVEL, len(gaps)),
    )


def _corrected(tested: Sequence[Sequence[ComparisonRow]]) -> list[tuple[ComparisonRow, ...]]:
    p_values = holm([row.p for rows in tested for row in rows]).tolist()
    level, corrected = LEVEL / max(1, len(p_values)), iter(p_values)
    return [
        tuple(replace(row, p_holm=next(corrected), too_few=cannot_reach(level, row.n)) for row in rows)
        for rows in tested
    ]


def compare_pair(
    baseline: ComparedRun, run: ComparedRun, rows: tuple[ComparisonRow, ...], ids: Sequence[str]
) -> RunPair:
    """Build a pair, with its examples sorted by the change of the main measure; ties are in the order of the ids."""
    row_of = {row.measure: row for row in rows}
    main = row_of.get(baseline.record.ranked_by, row_of[DEFAULT_RANKING_SCORE])
    scores = baseline.scores_of(main.measure, ids), run.scores_of(main.measure, ids)
    numbers = zip(ids, *(column.tolist() for column in (*scores, scores[1] - scores[0])), strict=True)
    moved = [change for change in map(ScoreChange._make, numbers) if math.isfinite(change.difference)]
    return RunPair(baseline, run, rows, main, tuple(sorted(moved, key=lambda change: -change.difference)))


def _find_references(runs: Sequence[ComparedRun], ids: Collection[str]) -> dict[str, tuple[Sentences, ...]]:
    for run in runs:
        if (split := split_read_by(run.folder, run.record)) is not None:
            return {name: split[place].references for place, name in enumerate(split.ids) if name in ids}
    return {}
