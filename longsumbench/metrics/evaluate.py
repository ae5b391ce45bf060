"""Score predictions: a row for each example, then means and intervals of the columns.

predictions, examples, metrics --evaluate--> Evaluation: rows, ROUGE, measures, the floor, facts about the outputs
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from longsumbench.core import Example, Metric, Scored, Scoring, Sentences, Split, registry
from longsumbench.errors import DataError
from longsumbench.metrics import aggregate as means
from longsumbench.metrics.output_facts import OutputFacts, describe_outputs
from longsumbench.metrics.rouge import Rouge
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


@dataclass(frozen=True)
class Evaluation:
    """The scores of a system's predictions.

    Attributes:
        tables: for each set of predictions a row per example, indexed by id: 0–1, or in a column's unit.
        per_example: the mean of these tables, example by example.
        empty_references: ids of examples that were skipped because no reference can be scored.
        empty_predictions: number of rows whose prediction is empty, of the first set.
        scores: type of ROUGE → its means; empty without ROUGE.
        measures: column of another metric → its mean.
        units: column → its unit, for those that are not 0–100.
        floor: type of ROUGE, and the score that ranks → its mean against other examples, 0–100.
        outputs: facts about the first set of predictions.
        signature: how the means were computed.
        measured_by: name of a requested metric → its signature.
    """

    tables: "tuple[pd.DataFrame, ...]"
    per_example: "pd.DataFrame"
    n: int
    empty_references: tuple[str, ...]
    empty_predictions: int
    scores: Mapping[str, means.RougeMeans]
    measures: Mapping[str, means.MeasureMean]
    units: Mapping[str, str]
    floor: Mapping[str, float]
    outputs: OutputFacts
    signature: str
    measured_by: Mapping[str, str]


def default_metrics(scoring: Scoring, others: Collection[str] = ()) -> list[Metric]:
    """Return the metrics that every run has without a request, except for those among `others`."""
    return [registry.metrics.load(name)(scoring) for name in DEFAULT_METRICS if name not in others]


def agreement_clause(column: str) -> str:
    """Return how far the default metric with this column agrees with people; empty for other columns."""
    metrics = map(registry.metrics.load, DEFAULT_METRICS)
    return next(
        (
            f"agreement with people: {metric.agrees}"
            for metric in metrics
            if column in metric.columns
        ),
        "",
    )


def evaluate(
    predictions: Sequence[Sequence[RawText]],
    examples: Split | Sequence[Example],
    metrics: Sequence[Metric],
    scoring: Scoring,
    requested: Sequence[Metric] = (),
    floor_of: str | None = None,
) -> Evaluation:
    """Score the predictions of a system, or those of several of its checkpoints, which are averaged.

    Args:
        predictions: for each checkpoint, the best first, a text for each example.
        examples: in the same order; further ones are ignored.
        metrics: those that decide the signature, ROUGE first.
        scoring: how intervals are drawn.
        requested: further metrics; their columns come last.
        floor_of: the score whose floor (`score_floor`) becomes a column; None for no floor.

    Raises:
        DataError: two examples have the same id, or no example can be scored by ROUGE.
    """
    every = [*metrics, *requested]
    targets: list[
        Example
    ] = []  # the floor and the outputs need no sources, and reading them again takes time

    def read(texts: Sequence[RawText]) -> Iterator[tuple[RawText, Example]]:
        targets.clear()
        for text, example in zip(track(texts, "scoring", len(texts)), examples, strict=False):
            targets.append(replace(example, documents=()))
            yield text, example

    for metric in every:
        metric.prepare(
            (_as_text(text), example)
            for texts in predictions
            for text, example in zip(texts, examples, strict=False)
            if all(each.can_score(example) for each in every)
        )
    scored = [score_all(every, read(texts)) for texts in predictions]
    tables, floors = [of_checkpoint.per_example for of_checkpoint in scored], []
    if floor_of is not None:
        owners = examples if metrics[1:] else targets  # ROUGE does not use the source
        floors = [score_floor(metrics[:2], owners, texts) for texts in predictions]
        tables = list(
            map(partial(_with_floor, columns_in(metrics, tables[0]), floor_of), tables, floors)
        )
    per_example = mean_scores(tables)
    n, others = len(tables[0]), [metric for metric in every if not isinstance(metric, Rouge)]
    units = {column: unit for metric in others for column, unit in metric.units.items()}
    rouge, perl = (
        per_example[list(Rouge.columns)] if len(others) < len(every) else None,
        scoring.resampling == "perl",
    )
    return Evaluation(
        tables=tuple(tables),
        per_example=per_example,
        n=n,
        empty_references=scored[0].empty_references,
        empty_predictions=scored[0].empty_predictions,
        scores={}
        if rouge is None
        else means.aggregate(rouge, scoring.resamples, perl_resampling=perl),
        measures={
            **means.aggregate_measures(
                per_example[columns_in(others, per_example)], scoring.resamples, in_units=units
            ),
            **{
                name: means.MeasureMean(*number)
                for metric in others
                for name, number in metric.pooled().items()
            },
        },
        units=units,
        floor=_floor_means(mean_scores(floors), floor_of) if floor_of is not None else {},
        outputs=describe_outputs(
            list(map(_as_text, predictions[0])), [example.references for example in targets]
        ),
        signature="|".join(metric.signature(n) for metric in metrics),
        measured_by={metric.name: metric.signature(n) for metric in requested},
    )


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
    empty = 0
    for prediction, example in items:
        name, text = example.id, _as_text(prediction)
        if name in rows or name in unusable:
            raise DataError(f"two predictions for the example '{name}'; keep one")
        if not all(metric.can_score(example) for metric in metrics):
            unusable[name] = None
            continue
        row = rows[name] = {}
        for metric in metrics:
            row |= metric.score(prediction if isinstance(metric, Rouge) else text, example)  # type: ignore[arg-type]
        empty += not text.strip()
    table = pd.DataFrame(
        list(rows.values()), index=pd.Index(list(rows), name="id", dtype=object), dtype=float
    )
    return Scored(table.reindex(columns=columns_in(metrics, table)), tuple(unusable), empty)


def _as_text(prediction: RawText) -> str:
    return prediction if isinstance(prediction, str) else "\n".join(prediction)


def columns_in(metrics: Iterable[Metric], table: "pd.DataFrame") -> list[str]:
    """Return the metrics' columns in their order, and of their further columns those in the table."""
    groups = (
        (*metric.columns, *(name for name in metric.further if name in table)) for metric in metrics
    )
    return [column for columns in groups for column in columns]


def mean_scores(tables: "Sequence[pd.DataFrame]") -> "pd.DataFrame":
    """Average the scores of several predictions of the same examples, example by example; NaN is ignored."""
    import pandas as pd

    return tables[0] if len(tables) == 1 else pd.concat(tables).groupby(level=0, sort=False).mean()


def score_floor(
    metrics: Sequence[Metric], examples: Split | Sequence[Example], predictions: Sequence[RawText]
) -> "pd.DataFrame":
    """Score each prediction against the references of another example: what it reaches without its source.

    The examples form a random cycle that depends on their ids alone, and each gets the prediction of the one before it.

    Returns:
        A row for each prediction, as `Scored.per_example`; empty for fewer than two examples that can be scored.
    """
    places = {
        example.id: place
        for place, (_, example) in enumerate(zip(predictions, examples, strict=False))
        if all(metric.can_score(example) for metric in metrics)
    }
    ids = sorted(places)
    cycle = [
        ids[place] for place in np.random.default_rng(means.BOOTSTRAP_SEED).permutation(len(ids))
    ]
    if len(cycle) < 2:
        import pandas as pd

        return pd.DataFrame()
    owner_of = dict(
        zip(cycle, [cycle[-1], *cycle[:-1]], strict=True)
    )  # example → whose prediction it gets
    pairs = (
        (predictions[places[owner_of[name]]], examples[place]) for name, place in places.items()
    )
    return score_all(metrics, pairs).per_example.rename(index=owner_of)


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
