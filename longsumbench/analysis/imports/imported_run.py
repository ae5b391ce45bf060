"""The run of imported outputs: its files are those of other runs. Its costs are unknown."""

import logging
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from longsumbench.analysis.imports.outputs import (
    ImportedConfig,
    ImportedSystem,
    OutputsToImport,
    check_references,
    match_outputs,
    only_summarized,
)
from longsumbench.analysis.runs.repeat import check_same_texts
from longsumbench.api import SECTIONS, FitReport, RunConfig, build_settings
from longsumbench.cache.artifacts import ArtifactCache, locked_artifact, user_cache
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.runs.additions import add_missing, is_incomplete
from longsumbench.runs.environment import environment
from longsumbench.runs.predictions import read_summaries, write_summaries
from longsumbench.runs.record import Results, RunRecord, StepSeconds, check_written
from longsumbench.runs.run_files import (
    delete_run_files,
    is_finished,
    link_stages,
    report_torn_record,
    write_run_config,
)
from longsumbench.runs.run_id import check_split, run_spec
from longsumbench.runs.scoring import score_run

_log = logging.getLogger(__name__)


def make_imported_run(outputs: OutputsToImport, config: RunConfig, command: Sequence[str]) -> tuple[RunRecord, bool]:
    """Make the run of some outputs, or find it finished.

    Returns:
        Its record, and True if it has all examples of the split.

    Raises:
        DataError: the outputs do not fit the examples, or cannot be read.
    """
    results, stages, split = Results.writable(config.results_dir), user_cache(), config.dataset.split
    with stages.blaming_damage():
        texts = load_texts(config.dataset, stages)
        check_split(config.dataset, texts)
        check_references(texts, split)
        system = ImportedSystem(outputs, match_outputs(outputs, texts, split))
        chosen = only_summarized(texts, split, system.summaries)
        folder = results.run_folder(run_spec(config, system, texts))
        (folder / "work").mkdir(parents=True, exist_ok=True)
        with locked_artifact(folder / "work" / ".lock", f"the same run, {folder}"):
            if config.overwrite:
                delete_run_files(folder)
            if not is_finished(folder):
                report_torn_record(folder)
                _write_run(system, config, chosen, stages, folder, command)
            elif is_incomplete(config, system, chosen, folder):
                add_missing(config, system, chosen, stages, folder)
            else:
                _log.info(f"already imported: {outputs.model} on {config.dataset.name}, {folder}")
            return RunRecord.read(folder), chosen is texts


def _write_run(
    system: ImportedSystem,
    config: RunConfig,
    texts: Texts,
    stages: ArtifactCache,
    folder: Path,
    command: Sequence[str],
) -> None:
    """Write a run's files, the record last."""
    summaries, outputs = list(system.summaries.values()), system.outputs
    write_run_config(config, folder)
    write_summaries(folder / "predictions.jsonl", summaries)
    link_stages(folder / "work", stages)
    scores = score_run(config, texts, FitReport(), [summaries], folder)
    RunRecord(
        run_id=folder.name,
        model=outputs.model,
        dataset=config.dataset.name,
        split=config.dataset.split,
        variant=outputs.variant,
        scale=config.scale,
        seed=outputs.seed,
        oracle=False,
        fingerprint=texts.fingerprint,
        corpus=texts.facts,
        source=None,
        outputs_cut=0,
        fit=FitReport(),
        decode_tokens_per_second=None,
        timings=StepSeconds(),
        peak_memory_gb=None,
        config=asdict(config),
        environment=environment(),
        command=tuple(command),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        imported=system.source(),
        **vars(scores),
    ).write(folder)


def score_again(folder: Path, record: RunRecord, root: Path) -> Path:
    """Score the stored outputs of an imported run again, and write the scores into the folder `root`; return it.

    Raises:
        DataError: the texts differ from those of the run, or its predictions are missing.
    """
    check_written(folder, record, ["predictions.jsonl"])
    sections = {name: build_settings(kind, record.config[name], f"{name}.") for name, kind in SECTIONS.items()}
    config = RunConfig(ImportedConfig(record.model), **sections)
    texts = load_texts(config.dataset, user_cache())
    check_same_texts(texts, record)
    summaries = read_summaries(folder / "predictions.jsonl")
    chosen = only_summarized(texts, record.split, {summary.id for summary in summaries})
    score_run(config, chosen, FitReport(), [summaries], root)
    return root
