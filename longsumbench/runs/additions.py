"""What is added to a finished run: evidence, inputs and metrics that were requested later."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import FitContext, Metric, RunConfig, System
from longsumbench.corpora.reading.load import Texts
from longsumbench.formatting import format_count
from longsumbench.metrics.aggregate import column_means, read_scores
from longsumbench.metrics.evaluate import evaluate, mean_scores
from longsumbench.runs.predictions import Writer, read_summaries, summarize_split
from longsumbench.runs.record import RunRecord, output_files, ranking_score
from longsumbench.runs.results import is_fitted_by
from longsumbench.runs.scoring import asked_metrics, check_summarized, write_each_scores

_log = logging.getLogger(__name__)


def is_incomplete(config: RunConfig, system: System, texts: Texts, folder: Path) -> bool:
    """Return True if the configuration asks for evidence, inputs or metrics that a finished run does not have."""
    return bool(_missing_parts(config, system, texts, folder) or _missing_metrics(config, texts, folder))


def add_missing(config: RunConfig, system: System, texts: Texts, stages: ArtifactCache, folder: Path) -> None:
    """Add the evidence, inputs and metrics that a finished run lacks."""
    if missing := _missing_parts(config, system, texts, folder):
        parts = f"{_describe_parts(missing)}: {config.model.name} on {config.dataset.name}"
        _log.info(f"already finished, except for the {parts}, {folder}")
        if problem := _add_parts(config, system, texts, stages, folder):
            _log.warning(f"no {problem}; overwrite=true repeats the run")
    if metrics := _missing_metrics(config, texts, folder):
        _add_measures(config, metrics, texts, folder)


def _missing_parts(config: RunConfig, system: System, texts: Texts, folder: Path) -> dict[str, int]:
    """Return "evidence", "inputs" → number of examples that lack what the configuration asks for; without zeros."""
    split, decode = texts.splits[config.dataset.split], config.decode
    predictions, evidence, inputs = folder / "predictions.jsonl", folder / "evidence", folder / "inputs.jsonl"
    writer = Writer(system, split, decode, predictions, log=None, evidence=evidence, inputs=inputs)
    missing = {"evidence": len(writer.lacking_evidence), "inputs": len(writer.lacking_inputs)}
    return {name: number for name, number in missing.items() if number}


def _describe_parts(missing: Mapping[str, int]) -> str:
    return " and the ".join(f"{name} of {format_count(number, 'example')}" for name, number in missing.items())


def _add_parts(config: RunConfig, system: System, texts: Texts, stages: ArtifactCache, folder: Path) -> str:
    """Add missing evidence and inputs to a finished run by decoding their batches again.

    This needs the weights that wrote the summaries.

    Returns:
        What is still missing, and why; empty if nothing is.
    """
    names = " and ".join(_missing_parts(config, system, texts, folder))
    if lost := [link.name for link in (folder / "work").iterdir() if link.is_symlink() and not link.exists()]:
        return f"{names} added: the {lost[0]} of that run is not in the cache"
    report = system.fit(FitContext.of(texts.splits, config.train, replace(stages, rebuild=frozenset())))
    if not is_fitted_by(report, folder):
        return f"{names} added: the weights in the cache may differ from those that wrote the summaries"
    split, evidence, inputs = texts.splits[config.dataset.split], folder / "evidence", folder / "inputs.jsonl"
    summarize_split(system, split, config.decode, folder / "predictions.jsonl", evidence=evidence, inputs=inputs)
    still_missing = _missing_parts(config, system, texts, folder)
    return f"{_describe_parts(still_missing)} added: their summaries differ on this machine" if still_missing else ""


def _missing_metrics(config: RunConfig, texts: Texts, folder: Path) -> list[Metric]:
    """Return the configured metrics without scores under their present settings."""
    record, metrics = RunRecord.read(folder), asked_metrics(config, texts)
    return [metric for metric in metrics if record.measured_by.get(metric.name) != metric.signature(record.n)]


def _add_measures(config: RunConfig, metrics: Sequence[Metric], texts: Texts, folder: Path) -> None:
    """Score the summaries of a finished run with more metrics. Its rank does not change."""
    record, split = RunRecord.read(folder), texts.splits[config.dataset.split]
    names = ", ".join(metric.name for metric in metrics)
    _log.info(f"already finished, except for {names}: {config.model.name} on {config.dataset.name}, {folder}")
    files = output_files(len(record.checkpoints))
    tables, predictions = [read_scores(folder / scores) for _, scores in files], []
    for name, _ in files:
        check_summarized(summaries := read_summaries(folder / name), split)
        predictions.append([summary.text for summary in summaries if summary.id in tables[0].index])
    added = evaluate(predictions, split.select(tables[0].index), (), config.score, metrics)
    tables = [
        table.drop(columns=columns.columns, errors="ignore").join(columns)
        for table, columns in zip(tables, added.tables, strict=True)
    ]
    write_each_scores(folder, tables, mean_scores(tables))
    measures = {name: measure for name, measure in record.measures.items() if name not in added.per_example.columns}
    checkpoints = [
        replace(checkpoint, means={**checkpoint.means, **column_means(scores, added.units)})
        for checkpoint, scores in zip(record.checkpoints, added.tables, strict=False)  # empty for a single checkpoint
    ]
    replace(
        record,
        measures={**measures, **added.measures},
        checkpoints=tuple(checkpoints),
        units={**record.units, **added.units},
        ranked_by=ranking_score(record),
        measured_by={**record.measured_by, **added.measured_by},
    ).write(folder)
