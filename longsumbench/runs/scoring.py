"""Scores of a run: per example, per checkpoint, and their means."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from longsumbench.core import Example, FitReport, Metric, RunConfig, Scoring, Split, Summary, registry
from longsumbench.corpora.reading.load import Texts, warn_once
from longsumbench.errors import DataError
from longsumbench.files import digest
from longsumbench.metrics.aggregate import (
    BOOTSTRAP_SEED,
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
from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.rouge.tokenizer import dropped_share
from longsumbench.runs.record import DEFAULT_RANKING_SCORE, CheckpointMeans, floor_column, output_files

_SAMPLED_REFERENCES, _MOST = 100, 0.5


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
    floor: Mapping[str, float]


def score_run(
    config: RunConfig, texts: Texts, report: FitReport, outputs: Sequence[Sequence[Summary]], folder: Path
) -> RunScores:
    """Score the summaries of each kept checkpoint, the best first, and write the scores per example.

    Raises:
        DataError: no example has an answer; the same command asks again.
    """
    split = texts.splits[config.dataset.split]
    if outputs[0] and all(summary.counts.get("failed") for summary in outputs[0]):
        (folder / "predictions.jsonl").unlink(missing_ok=True)
        raise DataError("no example has an answer: correct what the warnings name, then run the same command again")
    if config.decode.failed == "leave_out":
        outputs = [[summary for summary in each if not summary.counts.get("failed")] for each in outputs]
        split = split.select([summary.id for summary in outputs[0]])
    summaries = outputs[0]
    rouge: Metric = registry.metrics.load("rouge")(config.score)
    dataset_metrics: list[Metric] = [registry.metrics.load(name)(config.score) for name in texts.metrics]
    extra_metrics = asked_metrics(config, texts)
    metrics = [rouge, *dataset_metrics, *extra_metrics]
    scored = [score_all(metrics, predictions_with_examples(split, output)) for output in outputs]
    each, n = [checkpoint.per_example for checkpoint in scored], len(scored[0].per_example)
    ranked_by = dataset_metrics[0].columns[0] if dataset_metrics else DEFAULT_RANKING_SCORE
    floors = [score_floor([rouge, *dataset_metrics[:1]], split, output) for output in outputs]
    deciding = columns_in([rouge, *dataset_metrics], each[0])  # requested metrics come last, as when added
    each = [
        table[deciding].join(_ranking_floor(floor, ranked_by)).join(table.drop(columns=deciding))
        for table, floor in zip(each, floors, strict=True)
    ]
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
        measures=measures | measured(extra_metrics, per_example, config),
        units=metric_units(metrics),
        ranked_by=ranked_by,
        measured_by={metric.name: metric.signature(n) for metric in extra_metrics},
        checkpoints=checkpoint_means(report, each, metric_units(metrics)),
        outputs=describe_outputs([summary.text for summary in summaries], references),
        floor=_floor_means(mean_scores(floors), ranked_by),
    )


def warn_of_other_scripts(scoring: Scoring, split: Split) -> None:
    """Warn before the training if the tokenizer drops most letters of the first references."""
    examples = (split[index] for index in range(min(len(split), _SAMPLED_REFERENCES)))
    dropped = dropped_share(" ".join(chain.from_iterable(example.references[0] for example in examples)))
    if scoring.tokenizer == "default" and dropped > _MOST:
        problem = f"score.tokenizer=default drops {100 * dropped:.0f} % of the references' letters and digits"
        warn_once(f"{problem}: only a–z and 0–9 can match; score.tokenizer=unicode keeps the others")


def score_floor(metrics: Sequence[Metric], split: Split, summaries: Sequence[Summary]) -> pd.DataFrame:
    """Score each summary against the references of another example: what it reaches without its source.

    The examples form a random cycle that depends on their ids alone, and each gets the summary of the one before it.

    Returns:
        A row for each summary, as `Scored.per_example`; empty for fewer than two examples that can be scored.
    """
    places = {
        summary.id: place
        for place, summary in enumerate(summaries)
        if all(metric.can_score(split[place]) for metric in metrics)
    }
    ids = sorted(places)
    cycle = [ids[place] for place in np.random.default_rng(BOOTSTRAP_SEED).permutation(len(ids))]
    if len(cycle) < 2:
        return pd.DataFrame()
    summary_of = dict(zip(cycle, [cycle[-1], *cycle[:-1]], strict=True))  # example → whose summary it gets
    pairs = ((summaries[places[summary_of[name]]].text, split[place]) for name, place in places.items())
    return score_all(metrics, pairs).per_example.rename(index=summary_of)


def _ranking_floor(floor: pd.DataFrame, ranked_by: str) -> pd.DataFrame:
    """Return the column of scores.csv with the floor of the ranking score; empty without a floor."""
    columns = {_score_column(ranked_by): floor_column(ranked_by)}
    return floor.reindex(columns=list(columns)).rename(columns=columns).dropna(axis="columns", how="all")


def _floor_means(floor: pd.DataFrame, ranked_by: str) -> dict[str, float]:
    """Return type of ROUGE and ranking measure → mean floor, 0–100."""
    means = column_means(floor)
    names = {name: _score_column(name) for name in (*ROUGE_TYPES, ranked_by)}
    return {name: means[column] for name, column in names.items() if column in means}


def _score_column(name: str) -> str:
    return f"{name}_f" if name in ROUGE_TYPES else name


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
