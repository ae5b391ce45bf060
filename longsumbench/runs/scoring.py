"""Scores of a run: per example, per checkpoint, and their means."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from longsumbench.api import Example, FitReport, Metric, RunConfig, Split, Summary, registry
from longsumbench.corpora.reading.load import Texts
from longsumbench.errors import DataError
from longsumbench.files import digest
from longsumbench.metrics.aggregate import (
    MeasureMean,
    RougeMeans,
    aggregate,
    aggregate_measures,
    column_means,
    columns_in,
    mean_scores,
    score_all,
    write_scores,
)
from longsumbench.metrics.output_facts import OutputFacts, describe_outputs
from longsumbench.progress import track
from longsumbench.runs.record import DEFAULT_RANKING_SCORE, CheckpointMeans, output_files


@dataclass(frozen=True)
class RunScores:
    """What scoring adds to a run's record; the attributes are those of `RunRecord`."""

    signature: str
    scores: Mapping[str, RougeMeans]
    n: int
    examples: str
    empty_references: tuple[str, ...]
    empty_predictions: int
    measures: Mapping[str, MeasureMean]
    units: Mapping[str, str]
    ranked_by: str
    measured_by: Mapping[str, str]
    checkpoints: tuple[CheckpointMeans, ...]
    outputs: OutputFacts


def score_run(
    config: RunConfig, texts: Texts, report: FitReport, written: Sequence[Sequence[Summary]], folder: Path
) -> RunScores:
    """Score the summaries of each kept checkpoint, the best first, and write the scores per example."""
    split, summaries = texts.splits[config.dataset.split], written[0]
    rouge: Metric = registry.metrics.load("rouge")(config.score)
    dataset_metrics: list[Metric] = [registry.metrics.load(name)(config.score) for name in texts.metrics]
    asked = asked_metrics(config, texts)
    metrics = [rouge, *dataset_metrics, *asked]
    scored = [score_all(metrics, predictions_with_examples(split, found)) for found in written]
    each, n = [checkpoint.per_example for checkpoint in scored], len(scored[0].per_example)
    per_example = write_each_scores(folder, each)
    measures = measured(dataset_metrics, per_example, config)
    references = [split[index].references for index in range(len(summaries))]
    perl = config.score.resampling == "perl"
    return RunScores(
        signature="|".join(metric.signature(n) for metric in (rouge, *dataset_metrics)),
        scores=aggregate(per_example[list(rouge.columns)], config.score.resamples, perl_resampling=perl),
        n=n,
        examples=digest(sorted(summary.id for summary in summaries))[:16],
        empty_references=scored[0].empty_references,
        empty_predictions=scored[0].empty_predictions,
        measures=measures | measured(asked, per_example, config),
        units=metric_units(metrics),
        ranked_by=next(iter(measures), DEFAULT_RANKING_SCORE),
        measured_by={metric.name: metric.signature(n) for metric in asked},
        checkpoints=checkpoint_means(report, each, metric_units(metrics)),
        outputs=describe_outputs([summary.text for summary in summaries], references),
    )


def write_each_scores(folder: Path, each: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Write the scores of each checkpoint, and the means of several; return the scores of the run."""
    for (_, name), table in zip(output_files(len(each)), each, strict=True):
        write_scores(folder / name, table)
    if len(each) == 1:
        return each[0]
    write_scores(folder / "scores.csv", means := mean_scores(each))
    return means


def checkpoint_means(
    report: FitReport, each: Sequence[pd.DataFrame], in_units: Collection[str]
) -> tuple[CheckpointMeans, ...]:
    """Return the checkpoints of a record; empty for a single checkpoint."""
    if len(each) == 1:
        return ()
    every = zip(report.kept, each, strict=True)
    return tuple(CheckpointMeans(step, loss, column_means(scores, in_units)) for (step, loss), scores in every)


def asked_metrics(config: RunConfig, texts: Texts) -> list[Metric]:
    """Return the configured metrics, without ROUGE and the dataset's own metrics."""
    names = [name for name in dict.fromkeys(config.score.metrics) if name not in ("rouge", *texts.metrics)]
    return [registry.metrics.load(name)(config.score) for name in names]


def measured(metrics: Sequence[Metric], per_example: pd.DataFrame, config: RunConfig) -> dict[str, MeasureMean]:
    """Return the measures of some metrics, as the record stores them."""
    columns = columns_in(metrics, per_example)
    return aggregate_measures(per_example[columns], config.score.resamples, in_units=metric_units(metrics))


def metric_units(metrics: Sequence[Metric]) -> dict[str, str]:
    """Return column → unit, for the columns that are not 0–100."""
    return {column: unit for metric in metrics for column, unit in metric.units.items()}


def predictions_with_examples(split: Split, summaries: Sequence[Summary]) -> Iterator[tuple[str, Example]]:
    """Yield each prediction with its example, in the order of the data."""
    for index, summary in enumerate(track(summaries, "scoring", len(summaries))):
        example = split[index]
        if summary.id != example.id:
            raise DataError(f"predictions.jsonl has no prediction for '{example.id}'; run it again with overwrite=true")
        yield summary.text, example
