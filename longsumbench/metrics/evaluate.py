"""Score predictions: a row for each example, then means and intervals of the columns.

predictions, examples, metrics --evaluate--> Evaluation: rows, ROUGE, measures, the floor, stats of the outputs
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from longsumbench.core import (
    Example,
    Metric,
    Scored,
    Scoring,
    Sentences,
    SentenceScore,
    SentenceScores,
    Split,
    registry,
)
from longsumbench.errors import DataError
from longsumbench.files import digest
from longsumbench.formatting import format_examples
from longsumbench.metrics import aggregate as means
from longsumbench.metrics.output_stats import OutputStats, describe_outputs
from longsumbench.metrics.rouge import Rouge
from longsumbench.metrics.statistics import BOOTSTRAP_SEED
from longsumbench.progress import track
from longsumbench.rouge.scorer import ROUGE_TYPES

if TYPE_CHECKING:
    import pandas as pd

RawText = str | Sentences  # running text, or its sentences
DEFAULT_METRICS = (
    "entity_precision",
    "number_precision",
    "copied",
)  # of every run; they need no model
DEFAULT_RANKING_SCORE = "rougeLsum"  # for datasets without a metric of their own


@dataclass(frozen=True)
class CheckpointMeans:
    """The means of one of the averaged checkpoints (`train.keep_best`): score column → value."""

    step: int
    validation_loss: float | None
    means: Mapping[str, float]


@dataclass(frozen=True)
class Evaluation:
    """What the outputs of a run scored, as its record stores it. Scores are 0–100, lengths in words.

    Attributes:
        signature: the signatures of ROUGE and of the dataset's metrics.
        n: the number of examples in the means.
        groups: the number of sources that they are about; None if each example has its own.
        examples: a hash of their ids and of those that are left out; equal for runs on the same examples.
        scores: type of ROUGE → its means; empty without ROUGE.
        measures: results other than ROUGE, by name. The first measure of a metric comes first; metrics of the dataset
            come before requested ones.
        units: measure → unit, for measures that are not 0–100.
        ranked_by: the type of ROUGE or the measure that decides the rank.
        measured_by: requested metric → signature.
        floor: type of ROUGE, and the measure that decides the rank → mean score of the outputs against the references of
            other examples: what they reach without their sources. Empty if unknown.
        outputs: length, diversity and repetition of the outputs; None if unknown.
        empty_references: ids left out of the means, because no reference can be scored.
        empty_predictions: the number of empty outputs, which score 0.
        checkpoints: the averaged checkpoints, the best first. Scores and measures are averages; all other results are
            those of the best checkpoint. Empty for a single checkpoint.
    """

    signature: str
    n: int
    examples: str
    scores: Mapping[str, means.RougeMeans]
    measures: Mapping[str, means.MeasureMean]
    units: Mapping[str, str]
    ranked_by: str
    measured_by: Mapping[str, str]
    floor: Mapping[str, float]
    outputs: OutputStats | None
    empty_references: tuple[str, ...] = ()
    empty_predictions: int = 0
    checkpoints: tuple[CheckpointMeans, ...] = ()
    groups: int | None = None

    def describe_examples(self) -> str:
        """Return "281 examples of 35 texts", or "281 examples"."""
        return format_examples(self.n, self.groups)


@dataclass(frozen=True)
class ScoredOutputs:
    """Scores of outputs, in all and per example.

    Attributes:
        evaluation: the means.
        tables: for each checkpoint a row per example, indexed by id: 0–1, or in a column's unit.
        per_example: the mean of these tables, example by example.
        sentences: scores of the sentences of the best checkpoint's outputs.
    """

    evaluation: Evaluation
    tables: "tuple[pd.DataFrame, ...]"
    per_example: "pd.DataFrame"
    sentences: SentenceScores


def default_metrics(scoring: Scoring, others: Collection[str] = ()) -> list[Metric]:
    """Return the metrics that every run has without a request, except for those among `others`."""
    return [registry.metrics.load(name)(scoring) for name in DEFAULT_METRICS if name not in others]


def agreement_clause(column: str) -> str:
    """Return how far the default metric with this column agrees with people; empty for other columns."""
    for metric in map(registry.metrics.load, DEFAULT_METRICS):
        if column in metric.columns:
            return f"agreement with people: {metric.agrees}"
    return ""


def evaluate(
    predictions: Sequence[Sequence[RawText]],
    examples: Split | Sequence[Example],
    metrics: Sequence[Metric],
    scoring: Scoring,
    requested: Sequence[Metric] = (),
    ranked_by: str = DEFAULT_RANKING_SCORE,
    with_floor: bool = False,
) -> ScoredOutputs:
    """Score the predictions of a system, or those of several of its checkpoints, which are averaged.

    Args:
        predictions: for each checkpoint, the best first, a text for each example.
        examples: in the same order; further ones are ignored.
        metrics: those that decide the signature, ROUGE first.
        scoring: how intervals are drawn.
        requested: further metrics; their columns come last.
        ranked_by: the score that decides the rank.
        with_floor: compute what the outputs reach without their sources (`score_shuffled`); that of `ranked_by` becomes a
            column.

    Raises:
        DataError: two examples have the same id, or no example can be scored by ROUGE.
    """
    every = [*metrics, *requested]
    for metric in every:
        metric.prepare(
            (_as_text(text), example)
            for texts in predictions
            for text, example in zip(texts, examples, strict=False)
            if all(each.can_score(example) for each in every)
        )
    scored = []
    for texts in predictions:
        tracked = track(texts, "scoring", len(texts))
        scored.append(score_all(every, zip(tracked, examples, strict=False)))
    best = scored[0]
    tables = [of_checkpoint.per_example for of_checkpoint in scored]
    floor: dict[str, float] = {}
    if with_floor:
        # ROUGE does not use the source, and reading it again takes time
        owners = examples if metrics[1:] else best.targets
        floors = [score_shuffled(metrics[:2], owners, texts) for texts in predictions]
        deciding_columns = columns_in(metrics, tables[0])
        tables = [
            _with_floor(deciding_columns, ranked_by, table, floor_table)
            for table, floor_table in zip(tables, floors, strict=True)
        ]
        floor = _floor_means(mean_scores(floors), ranked_by)
    per_example = mean_scores(tables)
    n = len(per_example)
    others = [metric for metric in every if not isinstance(metric, Rouge)]
    units: dict[str, str] = {}
    for metric in others:
        units |= metric.units
    evaluation = Evaluation(
        signature="|".join(metric.signature(n) for metric in metrics),
        n=n,
        examples=digest(sorted([*tables[0].index, *best.empty_references]))[:16],
        scores=_rouge_means(per_example, scoring) if len(others) < len(every) else {},
        measures=_measure_means(others, per_example, scoring, units),
        units=units,
        ranked_by=ranked_by,
        measured_by={metric.name: metric.signature(n) for metric in requested},
        floor=floor,
        outputs=describe_outputs(
            list(map(_as_text, predictions[0])), [example.references for example in best.targets]
        ),
        empty_references=best.empty_references,
        empty_predictions=best.empty_predictions,
        groups=int(per_example[means.GROUP].nunique()) if means.GROUP in per_example else None,
    )
    return ScoredOutputs(evaluation, tuple(tables), per_example, best.sentences)


def _rouge_means(per_example: "pd.DataFrame", scoring: Scoring) -> dict[str, means.RougeMeans]:
    is_perl = scoring.resampling == "perl"
    columns = per_example[list(filter(per_example.__contains__, (*Rouge.columns, means.GROUP)))]
    return means.aggregate(columns, scoring.resamples, perl_resampling=is_perl)


def _measure_means(
    metrics: Sequence[Metric],
    per_example: "pd.DataFrame",
    scoring: Scoring,
    units: Mapping[str, str],
) -> dict[str, means.MeasureMean]:
    names = columns_in(metrics, per_example)
    names += [name for name in [means.GROUP] if name in per_example]
    measures = means.aggregate_measures(per_example[names], scoring.resamples, in_units=units)
    # Numbers that no mean over examples gives
    for metric in metrics:
        for name, number in metric.pooled().items():
            measures[name] = means.MeasureMean(*number)
    return measures


def _with_floor(
    deciding: list[str], name: str, table: "pd.DataFrame", floor: "pd.DataFrame"
) -> "pd.DataFrame":
    """Return scores with the floor of one of them after the columns that decide the signature."""
    column = {score_column(name): floor_column(name)}
    floors = (
        floor.reindex(columns=list(column)).rename(columns=column).dropna(axis="columns", how="all")
    )
    return table[deciding].join(floors).join(table.drop(columns=deciding))


def score_all(metrics: Sequence[Metric], items: Iterable[tuple[RawText, Example]]) -> Scored:
    """Score every prediction once.

    Args:
        metrics: their columns follow each other in this order.
        items: (prediction, its example). A prediction in sentences is split by ROUGE as it is.

    Raises:
        DataError: two examples have the same id.
    """
    import pandas as pd

    rows: dict[str, dict[str, float]] = {}
    unusable: dict[str, None] = {}  # an ordered set
    of_sentences: dict[str, dict[str, Sequence[SentenceScore]]] = {}
    targets: list[Example] = []
    numbers: dict[str, int] = {}  # of the groups
    empty = 0
    for prediction, example in items:
        name, text = example.id, _as_text(prediction)
        targets.append(replace(example, documents=(), group=example.source_group()))
        if name in rows or name in unusable:
            raise DataError(f"two predictions for the example '{name}'; keep one")
        if not all(metric.can_score(example) for metric in metrics):
            unusable[name] = None
            continue
        row = rows[name] = {
            means.GROUP: numbers.setdefault(targets[-1].source_group(), len(numbers))
        }
        for metric in metrics:
            if isinstance(metric, Rouge):
                row |= metric.score(prediction, example)
                continue
            values, sentences = metric.score_sentences(text, example)
            row |= values
            if sentences:
                of_sentences.setdefault(metric.name, {})[name] = sentences
        empty += not text.strip()
    table = pd.DataFrame(
        list(rows.values()), index=pd.Index(list(rows), name="id", dtype=object), dtype=float
    )
    shared = [means.GROUP] if len(numbers) < len(rows) else []
    table = table.reindex(columns=[*columns_in(metrics, table), *shared])
    table = table.astype(dict.fromkeys(shared, int))
    return Scored(table, tuple(unusable), empty, of_sentences, targets)


def _as_text(prediction: RawText) -> str:
    return prediction if isinstance(prediction, str) else "\n".join(prediction)


def columns_in(metrics: Iterable[Metric], table: "pd.DataFrame") -> list[str]:
    """Return the metrics' columns in their order, and of their further columns those in the table."""
    columns: list[str] = []
    for metric in metrics:
        columns += metric.columns
        columns += filter(table.__contains__, metric.further)
    return columns


def mean_scores(tables: "Sequence[pd.DataFrame]") -> "pd.DataFrame":
    """Average the scores of several predictions of the same examples, example by example; NaN is ignored."""
    import pandas as pd

    return tables[0] if len(tables) == 1 else pd.concat(tables).groupby(level=0, sort=False).mean()


def score_shuffled(
    metrics: Sequence[Metric], examples: Split | Sequence[Example], predictions: Sequence[RawText]
) -> "pd.DataFrame":
    """Score each prediction against the references of another example: what it reaches without its source.

    The groups form a random cycle that depends on the ids alone. The predictions of a group meet the references of the
    next one, whose examples take turns.

    Returns:
        A row for each prediction, as `Scored.per_example`; empty for fewer than two groups that can be scored.
    """
    indices: dict[str, int] = {}
    groups: dict[str, str] = {}  # id → group
    for index, (_, example) in enumerate(zip(predictions, examples, strict=False)):
        if all(metric.can_score(example) for metric in metrics):
            indices[example.id] = index
            groups[example.id] = example.source_group()
    members: dict[str, list[str]] = {}
    for name in sorted(indices):
        members.setdefault(groups[name], []).append(name)
    every = list(members.values())
    order = np.random.default_rng(BOOTSTRAP_SEED).permutation(len(every))
    targets: dict[str, str] = {}  # whose prediction → whose references
    for position, next_position in zip(order, np.roll(order, -1), strict=True):
        targets |= zip(every[position], cycle(every[next_position]), strict=False)
    if len(every) < 2:
        import pandas as pd

        return pd.DataFrame()
    pairs = (
        (predictions[index], replace(examples[indices[targets[name]]], id=name))
        for name, index in indices.items()
    )
    return score_all(metrics, pairs).per_example


def floor_column(name: str) -> str:
    """Return the column of scores.csv with the floor of a score, 0–1."""
    return f"{name}_floor"


def _floor_means(floor: "pd.DataFrame", ranked_by: str) -> dict[str, float]:
    """Return type of ROUGE and ranking measure → mean floor, 0–100."""
    of_columns = means.column_means(floor)
    names = {name: score_column(name) for name in (*ROUGE_TYPES, ranked_by)}
    return {name: of_columns[column] for name, column in names.items() if column in of_columns}


def score_column(name: str) -> str:
    """Return the column of scores.csv with the values of a number: F1 for a type of ROUGE."""
    return f"{name}_f" if name in ROUGE_TYPES else name
