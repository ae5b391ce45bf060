"""Scores of a run: per example, per checkpoint, and their means."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pandas as pd

from longsumbench.api import Example, FitReport, Metric, RunConfig, Split, Summary, registry
from longsumbench.corpora.reading.load import Texts
from longsumbench.errors import DataError
from longsumbench.metrics.aggregate import (
    MeasureMean,
    aggregate_measures,
    column_means,
    columns_in,
    mean_scores,
    write_scores,
)
from longsumbench.progress import track
from longsumbench.runs.record import CheckpointMeans, output_files


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
