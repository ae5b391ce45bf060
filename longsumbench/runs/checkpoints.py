"""The systems of finished runs: their checkpoints, and how they are loaded. Begin with `find_checkpoint`."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from longsumbench import core
from longsumbench.cache.artifacts import ArtifactCache, user_cache
from longsumbench.cache.hub import HUB_NAME
from longsumbench.corpora.reading.load import load_texts
from longsumbench.errors import DataError, UnknownName, UsageError, did_you_mean
from longsumbench.files import BadFile, read_json
from longsumbench.modeling.checkpoints import fetch_files
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results, read_run_config, stage_of_run


def fit_context(
    splits: Mapping[str, core.Split],
    config: core.RunConfig,
    stages: ArtifactCache,
    workdir: Path | None = None,
) -> core.FitContext:
    """Return what a system is fitted with; it can use the finished runs of the results folder."""
    results = Results.at(config.results_dir)

    def open_run(name: str) -> core.System:
        _, _, load = find_checkpoint(results.find(name), results)
        return load()

    train, validation = splits.get("train"), splits.get("validation")
    return core.FitContext(train, validation, config.train, stages, config.score, open_run, workdir)


def find_used_run(run: str, results: Results) -> tuple[str, core.SystemConfig]:
    """Return the full name of a finished run that another one uses, and the settings of its model.

    The name is its id or, if the run is in another results folder, its own folder.

    Raises:
        UsageError: there is no such run, or it was written outside the suite.
    """
    folder = results.find(run)
    record = RunRecord.read(folder)
    _check_not_imported(record, folder)
    model = core.registry.config_of(record.key.model)
    settings = core.build_settings(model, record.config.model, "model.")
    if results.run_folder(record).is_dir():
        return record.run_id, settings
    if folder.resolve().name != record.run_id:
        raise UsageError(f"{folder} is the run {record.run_id}: give the folder that name")
    return f"{folder.resolve()}", settings


def _check_not_imported(record: RunRecord, folder: Path) -> None:
    if record.imported:
        raise UsageError(
            f"{folder} has imported outputs of {record.key.model} and no system: name a run that was trained here"
        )


def find_checkpoint(
    run: str | Path | RunRecord, results: Results
) -> tuple[Path, Mapping[str, Any], Callable[[], core.System]]:
    """Return a checkpoint's folder, or that of a run without training; the run's decode settings; what loads it."""
    folder = Path(run.run_id if isinstance(run, RunRecord) else run).expanduser()
    if (folder / "system.json").is_file():
        return folder, core.read_saved(folder).get("decode", {}), partial(open_system, folder)
    if folder.is_dir() and not (folder / "record.json").is_file():
        inner = folder / "work" / "checkpoint"
        unfinished = (
            f"; that run is not finished, its checkpoint is {inner}" if inner.is_dir() else ""
        )
        raise UsageError(
            f"{folder} is neither a checkpoint (system.json) nor a run (record.json){unfinished}"
        )
    try:
        run = results.find(str(folder))
    except UsageError as problem:
        if isinstance(run, str) and HUB_NAME.fullmatch(run):
            return find_checkpoint(_fetch_system(run), results)
        suggestion = did_you_mean(str(run), core.registry.systems.targets())
        raise UsageError(f"no folder {folder}{suggestion}, and {problem}") from None
    record, weights = RunRecord.read(run), stage_of_run(run, "checkpoint")
    _check_not_imported(record, run)
    decode = recorded_decoding(record)
    if not (weights / "system.json").is_file():
        if not needs_training(read_run_config(run)):
            return run, decode, partial(_system_of_run, run, results)
        gone = (
            f"the checkpoint of {run} is no longer in the cache: run it again with overwrite=true"
        )
        away = f"{run} came without its checkpoint: run it again here"
        raise UsageError(gone if weights.is_symlink() else away)
    try:
        seconds = read_json(weights / "fit.json", core.FitReport).seconds
    except FileNotFoundError:  # without training
        seconds = record.fit.seconds
    except BadFile as error:
        torn = f"not a training report ({error}); run it again with overwrite=true"
        raise DataError(torn, weights / "fit.json") from error
    if seconds != record.fit.seconds:
        raise UsageError(
            f"{run} was written by other weights, trained again since; to use the new ones, name {weights}"
        )
    return weights, decode, partial(open_system, weights, record.config.model)


def _fetch_system(name: str) -> Path:
    """Return the local copy of a system on the hub, which `longsumbench push` uploaded."""
    if not (fetch_files(name, "SYSTEM", ("system.json",)) / "system.json").is_file():
        raise UsageError(
            f"{name} on the hub has no system.json: it was not uploaded by `longsumbench push`"
        )
    return fetch_files(name, "SYSTEM", ("*",), more=("ranker/*",))


def recorded_decoding(record: RunRecord) -> dict[str, Any]:
    """Return the settings of `decode.*` that decide a run's summaries."""
    idle = core.names_deciding(core.Decoding, *core.SAME_SYSTEM)
    return {key: value for key, value in vars(record.config.decode).items() if key not in idle}


def open_system(folder: Path, settings: Mapping[str, Any] | None = None) -> core.System:
    """Load a system from its checkpoint, with the model settings of another run if they are given.

    Raises:
        UsageError: the system is not installed.
        DataError: the checkpoint is damaged.
    """
    name = core.read_saved(folder)["system"]
    try:
        system_class: type[core.System] = core.registry.systems.load(name)
    except UnknownName as problem:
        reason = "which is not installed here: install its package"
        names = ", ".join(problem.known)
        raise UsageError(
            f"{folder} is a checkpoint of model '{name}', {reason} (known: {names})"
        ) from None
    system = system_class.load(folder)
    if settings is not None:
        system.config = core.build_settings(type(system).Config, settings, "model.")
    return system


def _system_of_run(folder: Path, results: Results) -> core.System:
    """Return the system of a run that trained nothing, made again from its texts; errors are those of a run."""
    config = read_run_config(folder)
    config.results_dir = f"{results.root}"
    return fitted_system(config, load_texts(config.dataset, user_cache()).splits)


def fitted_system(config: core.RunConfig, splits: Mapping[str, core.Split]) -> core.System:
    """Return the system of a configuration, fitted to splits by name; errors are those of `System.fit`."""
    system = core.new_system(config.model)
    system.fit(fit_context(splits, config, user_cache()))
    return system


def needs_training(config: core.RunConfig) -> bool:
    """Return True if the outcome of a run depends on a training."""
    return "train" in core.deciding_parts(config.model, config.train, config.decode)
