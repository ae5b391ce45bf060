"""One run: read → fit → summarize → score → record.

Every step writes its result to disk. An interrupted run continues from there.
"""

import logging
import math
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import OmegaConf

from longsumbench.api import (
    SECTIONS,
    Decoding,
    Example,
    FitContext,
    FitReport,
    Metric,
    RunConfig,
    Scored,
    Split,
    Summary,
    System,
    build_settings,
    registry,
    total_truncation,
)
from longsumbench.cache.artifacts import ArtifactCache, is_older, locked_artifact, refuse_damaged, user_cache
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import DataError, as_suite_error
from longsumbench.files import digest, writable_folder, write_atomically
from longsumbench.formatting import format_count
from longsumbench.metrics.aggregate import (
    MeasureMean,
    RougeMeans,
    aggregate,
    aggregate_measures,
    column_means,
    columns_in,
    mean_scores,
    read_scores,
    score_all,
    write_scores,
)
from longsumbench.metrics.output_facts import describe_outputs
from longsumbench.modeling.processes import process_index, share_run, started_processes
from longsumbench.progress import track
from longsumbench.runs.bug_report import as_reported_error
from longsumbench.runs.environment import (
    Environment,
    constraints,
    environment,
    patch,
    peak_memory_gb,
    reset_peak_memory,
)
from longsumbench.runs.evidence import kept_places
from longsumbench.runs.predictions import (
    asked_evidence,
    num_summarized,
    read_summaries,
    seconds_of_decoding,
    summarize_split,
)
from longsumbench.runs.record import (
    DEFAULT_RANKING_SCORE,
    CheckpointMeans,
    Results,
    RunRecord,
    RunSpec,
    StepSeconds,
    TornRecord,
    output_files,
    ranking_score,
)
from longsumbench.runs.run_id import config_identity, run_spec

_log = logging.getLogger(__name__)

BASELINES = ("lead", "random", "oracle")


@dataclass
class Point:
    """One run in progress.

    Attributes:
        config: the resolved configuration.
        variant: the overrides that differ from the recipe, as the table shows them.
        command: the command line as typed.
        timings: step → seconds so far.
        started: start time on the monotonic clock.
        carried_out: False if the run was already finished.
        quiet: True to print no line about a run that is already finished.
        since: seconds since 1970; `overwrite=true` repeats only what began before then. So the points of a sweep
            rebuild a shared stage once, and a restarted point continues.
    """

    config: RunConfig
    variant: str = ""
    command: tuple[str, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)
    carried_out: bool = False
    quiet: bool = False
    since: float = math.inf

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the elapsed time to a step."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.timings[step] = round(self.timings.get(step, 0.0) + time.monotonic() - started, 3)


def run_point(point: Point) -> RunRecord:
    """Do a run, or the missing steps of it. A finished run is only read.

    Raises:
        SuiteError: an error that the user can fix; finished steps are kept.
    """
    config = point.config
    results = Results(writable_folder(Path(config.results_dir).expanduser(), "results_dir="))
    with _stages_of(point) as stages:
        system: System = registry.systems.load(config.model.name)(config.model)
        with point.timed("read"):
            texts = load_texts(config.dataset, stages)
        spec = run_spec(config, system, texts)
        folder = results.run_folder(spec)
        record = None
        with suppress(FileNotFoundError):  # another process with overwrite=true may delete it
            if not config.overwrite and _is_finished(folder) and not _is_incomplete(config, system, texts, folder):
                record = RunRecord.read(folder)
        if record is None:
            (folder / "work").mkdir(parents=True, exist_ok=True)
            with locked_artifact(folder / "work" / ".lock", f"the same run, {folder}"):
                if config.overwrite and is_older(folder / "config.yaml", point.since):
                    delete_run_files(folder)
                if not _is_finished(folder):  # another process may have finished it
                    _report_torn_record(point, folder)
                    return _carry_out(point, system, spec, texts, stages, folder)
                if _is_incomplete(config, system, texts, folder):
                    _add_missing(point, system, texts, stages, folder)
                    return RunRecord.read(folder)
                record = RunRecord.read(folder)
        if not point.quiet:
            _log.info(f"already finished: {config.model.name} on {config.dataset.name}, {folder}")
        return record


@contextmanager
def _stages_of(point: Point) -> Iterator[ArtifactCache]:
    """Yield the user's cache; after a bug, check whether a damaged stage caused it."""
    rebuild = frozenset({"checkpoint"} if point.config.overwrite and process_index() == 0 else ())
    stages = user_cache(rebuild=rebuild, before=point.since)
    try:
        yield stages
    except Exception as error:
        if as_suite_error(error) is None:
            refuse_damaged(stages.used.values(), error)
        raise


def _carry_out(
    point: Point, system: System, spec: RunSpec, texts: Texts, stages: ArtifactCache, folder: Path
) -> RunRecord:
    """Fit and summarize, with all processes if the system can; score; write the run's files, the record last."""
    config, workdir = point.config, folder / "work"
    point.carried_out = True
    reset_peak_memory()
    started_in = replace(
        environment(), processes=started_processes() if system.shares_work else 1
    )  # the commit may change later
    split = texts.splits[config.dataset.split]
    system.check_examples(split[index] for index in range(num_summarized(split, config.decode)))
    write_run_config(config, folder)
    write_atomically(workdir / "patch.diff", patch())
    write_atomically(workdir / "constraints.txt", constraints())
    with share_run(folder) if system.shares_work else nullcontext():
        with point.timed("fit"), _naming_split_files(texts):
            report = system.fit(FitContext.of(texts.splits, config.train, stages))
        _link_stages(workdir, stages)
        _keep_predictions_of(report, folder)
        with point.timed("summarize"):
            written = _summarize_each(system, split, config.decode, folder, len(report.kept))
    rouge: Metric = registry.metrics.load("rouge")(config.score)
    dataset_metrics: list[Metric] = [registry.metrics.load(name)(config.score) for name in texts.metrics]
    asked = _asked_metrics(config, texts)
    with point.timed("score"):
        scored = [score_all([rouge, *dataset_metrics, *asked], _scorable(split, summaries)) for summaries in written]
        each = [checkpoint.per_example for checkpoint in scored]
        per_example = _write_each(folder, each)
        scores = aggregate(
            per_example[list(rouge.columns)],
            config.score.resamples,
            perl_resampling=config.score.resampling == "perl",
        )
        measures = _measured(dataset_metrics, per_example, config)
        first = next(iter(measures), DEFAULT_RANKING_SCORE)
        measures |= _measured(asked, per_example, config)
    checkpoints = _checkpoint_means(report, each, metric_units([*dataset_metrics, *asked]))
    speed = _tokens_per_second(written[0], seconds_of_decoding(workdir / "decoding.jsonl"))
    outcome = _Outcome(report, written[0], speed, scored[0], scores, measures, first, checkpoints)
    record = _build_record(point, spec, system, texts, started_in, outcome, [rouge, *dataset_metrics], asked)
    record.write(folder)
    return record


def take_part(folder: Path) -> None:
    """Fit and summarize in a process other than the first one, which shares the run in this folder."""
    config = read_run_config(folder)
    with _stages_of(Point(config)) as stages:
        system: System = registry.systems.load(config.model.name)(config.model)
        splits = load_texts(config.dataset, stages).splits
        report = system.fit(FitContext.of(splits, config.train, stages))
        _summarize_each(system, splits[config.dataset.split], config.decode, folder, len(report.kept))


def write_run_config(config: RunConfig, folder: Path) -> None:
    """Write the configuration of a run into its folder, as `config.yaml`."""
    write_atomically(folder / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(asdict(config))))


def read_run_config(folder: Path) -> RunConfig:
    """Read the configuration of a run from its `config.yaml`."""
    rest: Any = OmegaConf.to_container(OmegaConf.load(folder / "config.yaml"))
    schemas = {"model": registry.systems.load(rest["model"]["name"]).Config, **SECTIONS}
    groups = {name: build_settings(schema, rest.pop(name), f"{name}.") for name, schema in schemas.items()}
    config: RunConfig = build_settings(RunConfig, rest, "", groups)
    return config


@dataclass(frozen=True)
class _Outcome:
    """What a run trained, wrote and scored; `scored` and `summaries` are those of the best checkpoint."""

    report: FitReport
    summaries: Sequence[Summary]
    tokens_per_second: float
    scored: Scored
    scores: Mapping[str, RougeMeans]
    measures: Mapping[str, MeasureMean]
    ranked_by: str
    checkpoints: tuple[CheckpointMeans, ...]


def _build_record(
    point: Point,
    spec: RunSpec,
    system: System,
    texts: Texts,
    started_in: Environment,
    outcome: _Outcome,
    metrics: Sequence[Metric],
    asked: Sequence[Metric],
) -> RunRecord:
    """Return the record of a run; `metrics` are ROUGE and those of the dataset, `asked` the requested ones."""
    config, summaries, n = point.config, outcome.summaries, len(outcome.scored.per_example)
    split = texts.splits[config.dataset.split]
    ledgers = [summary.truncation for summary in summaries if summary.truncation is not None]
    references = [split[index].references for index in range(len(summaries))]
    return RunRecord(
        run_id=spec.run_id,
        model=spec.model,
        dataset=spec.dataset,
        split=config.dataset.split,
        variant=point.variant,
        scale=config.scale,
        seed=config.seed if "seed" in system.decided_by else None,
        oracle=system.oracle,
        signature="|".join(metric.signature(n) for metric in metrics),
        scores=outcome.scores,
        n=n,
        examples=digest(sorted(summary.id for summary in summaries))[:16],
        empty_references=outcome.scored.empty_references,
        empty_predictions=outcome.scored.empty_predictions,
        fingerprint=texts.fingerprint,
        corpus=texts.facts,
        source=total_truncation(ledgers) if ledgers else None,
        outputs_cut=sum(not summary.complete for summary in summaries),
        fit=outcome.report,
        decode_tokens_per_second=outcome.tokens_per_second,
        timings=StepSeconds(**point.timings, total=round(time.monotonic() - point.started, 3)),
        peak_memory_gb=peak_memory_gb(),
        config=asdict(config),
        environment=started_in,
        command=point.command,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        repeatable=outcome.report.ended_by != "max_minutes",
        measures=outcome.measures,
        units=metric_units([*metrics, *asked]),
        ranked_by=outcome.ranked_by,
        measured_by={metric.name: metric.signature(n) for metric in asked},
        checkpoints=outcome.checkpoints,
        outputs=describe_outputs([summary.text for summary in summaries], references),
    )


def _tokens_per_second(summaries: Sequence[Summary], seconds: float) -> float:
    """Return the speed of decoding in tokens, or in words of a system without tokens."""
    num_tokens = sum(len(one.text.split()) if one.tokens is None else one.tokens for one in summaries)
    return round(num_tokens / max(seconds, 1e-3), 1)


@contextmanager
def _naming_split_files(texts: Texts) -> Iterator[None]:
    """Add the names of the read files to errors about a missing training split."""
    try:
        yield
    except DataError as error:
        if "train" in texts.splits or not texts.way_to_splits:
            raise
        raise DataError(f"{error}{texts.way_to_splits}") from error


def _summarize_each(
    system: System, split: Split, decoding: Decoding, folder: Path, checkpoints: int
) -> list[list[Summary]]:
    """Summarize a split with each kept checkpoint, the best first. Only the best one has evidence and a log."""
    log, evidence = folder / "work" / "decoding.jsonl", folder / "evidence"
    written = []
    for number, (predictions, _) in enumerate(files := output_files(checkpoints), start=1):
        name = f"summarizing, checkpoint {number} of {checkpoints}" if files[1:] else "summarizing"
        best_only: tuple[Path | None, Path | None] = (log, evidence) if number == 1 else (None, None)
        if number > 1:
            system.use_kept(number)
        written.append(summarize_split(system, split, decoding, folder / predictions, *best_only, name))
    return written


def _write_each(folder: Path, each: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Write the scores of each checkpoint, and the means of several; return the scores of the run."""
    for (_, name), table in zip(output_files(len(each)), each, strict=True):
        write_scores(folder / name, table)
    if len(each) == 1:
        return each[0]
    write_scores(folder / "scores.csv", means := mean_scores(each))
    return means


def _checkpoint_means(
    report: FitReport, each: Sequence[pd.DataFrame], in_units: Collection[str]
) -> tuple[CheckpointMeans, ...]:
    """Return the checkpoints of a record; empty for a single checkpoint."""
    if len(each) == 1:
        return ()
    every = zip(report.kept, each, strict=True)
    return tuple(CheckpointMeans(step, loss, column_means(scores, in_units)) for (step, loss), scores in every)


def _add_evidence(point: Point, system: System, texts: Texts, stages: ArtifactCache, folder: Path) -> None:
    """Add missing evidence to a finished run by decoding its batches again.

    This needs the weights that wrote the summaries. If they are missing or differ, it prints a line and stops.
    """
    config, split = point.config, texts.splits[point.config.dataset.split]
    missing, run = _num_missing_evidence(config, system, split, folder), f"{config.model.name} on {config.dataset.name}"
    _log.info(f"already finished, except for the evidence of {format_count(missing, 'example')}: {run}, {folder}")
    links = [path for path in (folder / "work").iterdir() if path.is_symlink()]
    if lost := [link.name for link in links if not link.exists()]:
        reason = f"the {lost[0]} of that run is not in the cache"
        _log.info(f"no evidence is added: {reason}; overwrite=true repeats the run")
        return
    found = replace(stages, rebuild=frozenset())
    report = system.fit(FitContext.of(texts.splits, config.train, found))
    if not _is_fitted_by(report, folder):
        reason = "the weights in the cache may differ from those that wrote the summaries"
        _log.info(f"no evidence is added: {reason}; overwrite=true repeats the run")
        return
    summarize_split(system, split, config.decode, folder / "predictions.jsonl", evidence=folder / "evidence")
    if left := _num_missing_evidence(config, system, split, folder):
        reason = "their summaries differ on this machine"
        _log.info(f"no evidence of {format_count(left, 'example')} is added: {reason}; overwrite=true repeats the run")


def _num_missing_evidence(config: RunConfig, system: System, split: Split, folder: Path) -> int:
    asked_for = asked_evidence(system, config.decode, num_summarized(split, config.decode))
    return len(asked_for - kept_places(folder / "evidence", config.decode.reference_evidence))


def _is_incomplete(config: RunConfig, system: System, texts: Texts, folder: Path) -> bool:
    """Return True if the configuration asks for evidence or metrics that a finished run does not have."""
    missing = _num_missing_evidence(config, system, texts.splits[config.dataset.split], folder)
    return bool(missing or _missing_metrics(config, texts, RunRecord.read(folder)))


def _add_missing(point: Point, system: System, texts: Texts, stages: ArtifactCache, folder: Path) -> None:
    config, split = point.config, texts.splits[point.config.dataset.split]
    if _num_missing_evidence(config, system, split, folder):
        _add_evidence(point, system, texts, stages, folder)
    if metrics := _missing_metrics(config, texts, RunRecord.read(folder)):
        _add_measures(point, metrics, split, folder)


def _add_measures(point: Point, metrics: Sequence[Metric], split: Split, folder: Path) -> None:
    """Score the summaries of a finished run with more metrics. Its rank does not change."""
    config, record = point.config, RunRecord.read(folder)
    names = ", ".join(metric.name for metric in metrics)
    _log.info(f"already finished, except for {names}: {config.model.name} on {config.dataset.name}, {folder}")
    tables, each = [], []
    for predictions, scores in output_files(len(record.checkpoints)):
        table, pairs = read_scores(folder / scores), _scorable(split, read_summaries(folder / predictions))
        added = score_all(metrics, (pair for pair in pairs if pair[1].id in table.index)).per_example
        tables.append(table.drop(columns=added.columns, errors="ignore").join(added))
        each.append(added)
    _write_each(folder, tables)
    added = mean_scores(each)
    measures = {name: found for name, found in record.measures.items() if name not in added.columns}
    checkpoints = [
        replace(checkpoint, means={**checkpoint.means, **column_means(scores, metric_units(metrics))})
        for checkpoint, scores in zip(record.checkpoints, each, strict=False)  # empty for a single checkpoint
    ]
    replace(
        record,
        measures={**measures, **_measured(metrics, added, config)},
        checkpoints=tuple(checkpoints),
        units={**record.units, **metric_units(metrics)},
        ranked_by=ranking_score(record),
        measured_by={**record.measured_by, **{metric.name: metric.signature(record.n) for metric in metrics}},
    ).write(folder)


def _missing_metrics(config: RunConfig, texts: Texts, record: RunRecord) -> list[Metric]:
    """Return the configured metrics without scores under their present settings."""
    asked = _asked_metrics(config, texts)
    return [metric for metric in asked if record.measured_by.get(metric.name) != metric.signature(record.n)]


def _asked_metrics(config: RunConfig, texts: Texts) -> list[Metric]:
    """Return the configured metrics, without ROUGE and the dataset's own metrics."""
    names = [name for name in dict.fromkeys(config.score.metrics) if name not in ("rouge", *texts.metrics)]
    return [registry.metrics.load(name)(config.score) for name in names]


def _measured(metrics: Sequence[Metric], per_example: pd.DataFrame, config: RunConfig) -> dict[str, MeasureMean]:
    """Return the measures of some metrics, as the record stores them."""
    columns = columns_in(metrics, per_example)
    return aggregate_measures(per_example[columns], config.score.resamples, in_units=metric_units(metrics))


def metric_units(metrics: Sequence[Metric]) -> dict[str, str]:
    """Return column → unit, for the columns that are not 0–100."""
    return {column: unit for metric in metrics for column, unit in metric.units.items()}


def score_baselines(point: Point, taken: set[str], failed: dict[str, str] | None = None) -> list[RunRecord]:
    """Score the baselines on the examples of a run, unless it has `baselines=false`; return their records.

    Args:
        point: the run.
        taken: identities of baselines that need not be scored; those that are scored here are added.
        failed: a baseline that fails is added here with its reason; without it, the error is raised.
    """
    records: list[RunRecord] = []
    for name in BASELINES if point.config.baselines else ():
        try:
            if name != point.config.model.name:
                records.extend(score_baseline(point, name, taken))
        except Exception as error:
            if failed is None:
                raise
            failed[name] = f"{as_reported_error(error)}"
            _log.info(f"failed: {name}: {failed[name]}")
    return records


def score_baseline(point: Point, name: str, taken: set[str]) -> Iterator[RunRecord]:
    """Score a baseline on the examples of a run.

    Lead and Random need a training split for their length; without one they are skipped with a line. The seed is the
    default, so that a sweep over seeds adds no rows.
    """
    seed = RunConfig.seed
    decode = replace(point.config.decode, seed=seed)
    train = replace(point.config.train, seed=seed)
    system = registry.systems.load(name)
    model = system.Config()
    config = replace(point.config, model=model, train=train, decode=decode, seed=seed, overwrite=False)
    key = config_identity(config, system(model))
    if key in taken:
        return
    taken.add(key)
    try:
        yield run_point(Point(config, command=point.command, quiet=True))
    except DataError as error:
        _log.info(f"{name} is not in the table: {error}")


def _scorable(split: Split, summaries: Sequence[Summary]) -> Iterator[tuple[str, Example]]:
    """Yield each prediction with its example, in the order of the data."""
    for index, summary in enumerate(track(summaries, "scoring", len(summaries))):
        example = split[index]
        if summary.id != example.id:
            raise DataError(f"predictions.jsonl has no prediction for '{example.id}'; run it again with overwrite=true")
        yield summary.text, example


def _is_finished(folder: Path) -> bool:
    """Return True if a run has all its files; committed records lack the predictions."""
    if not all((folder / name).is_file() for name in ("record.json", "predictions.jsonl", "scores.csv")):
        return False
    try:
        every = output_files(len(_own_record(folder).checkpoints))
    except TornRecord:
        return False
    return all((folder / name).is_file() for files in every for name in files)


def _own_record(folder: Path) -> RunRecord:
    """Return the record of the run in a folder; raise `TornRecord` if it belongs to another run."""
    record = RunRecord.read(folder)
    if record.run_id != folder.name:
        raise TornRecord(f"the record of the run {record.run_id}", folder / "record.json")
    return record


def _report_torn_record(point: Point, folder: Path) -> None:
    if (folder / "record.json").is_file():
        try:
            _own_record(folder)
        except TornRecord:
            _log.info(f"the record of this run cannot be read; the run is repeated: {folder / 'record.json'}")


def delete_run_files(folder: Path) -> None:
    """Delete a run's files except its lock, the record first."""
    (folder / "record.json").unlink(missing_ok=True)
    for path in [*folder.iterdir(), *(folder / "work").iterdir()]:
        if path.is_dir() and not path.is_symlink():
            if path.name != "work":
                shutil.rmtree(path)
        elif path.name != ".lock":
            path.unlink()


def _keep_predictions_of(report: FitReport, folder: Path) -> None:
    """Delete predictions and evidence that a killed process wrote with the weights of another training."""
    if not _is_fitted_by(report, folder):
        for path in (*folder.glob("predictions*.jsonl"), *(folder / "work").glob("decoding*.jsonl")):
            path.unlink(missing_ok=True)
        shutil.rmtree(folder / "evidence", ignore_errors=True)
        write_atomically(folder / "work" / "fitted.json", training_key(report))


def _is_fitted_by(report: FitReport, folder: Path) -> bool:
    """Return True if the files of a run were written with the weights of this training."""
    marker = folder / "work" / "fitted.json"
    return marker.is_file() and marker.read_bytes() == training_key(report).encode()


def training_key(report: FitReport) -> str:
    """Return a hash of a training's report, which is unique. Old reports lack `kept` and `averaged`."""
    facts = {key: value for key, value in asdict(report).items() if value or key not in ("kept", "averaged")}
    return digest(facts)


def _link_stages(workdir: Path, stages: ArtifactCache) -> None:
    """Link the finished stages into the run's folder."""
    for name, stage in stages.used.items():
        link = workdir / name
        link.unlink(missing_ok=True)
        link.symlink_to(stage.resolve(), target_is_directory=True)
