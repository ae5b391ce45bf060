"""Where a fitted system comes from: a checkpoint, a finished run or the hub. Begin with `resolve_checkpoint`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from longsumbench import core
from longsumbench.cache.artifacts import ArtifactCache, user_cache
from longsumbench.cache.hub import HUB_NAME
from longsumbench.corpora.loading.load import load_texts
from longsumbench.errors import DataError, UnknownName, UsageError, did_you_mean
from longsumbench.files import BadFile, read_json
from longsumbench.modeling.checkpoints import fetch_files
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results, find_stage, read_run_config


@dataclass(frozen=True)
class SystemRef:
    """A system that `load` loads.

    Attributes:
        name: its name, or that of its folder.
        decoding: how it writes, unless the user chooses otherwise.
    """

    name: str
    decoding: core.Decoding
    load: Callable[[], core.System]


def fit_context(
    splits: Mapping[str, core.Split],
    config: core.RunConfig,
    cache: ArtifactCache,
    workdir: Path | None = None,
) -> core.FitContext:
    """Return what a system is fitted with; it can use the finished runs of the results folder."""
    return core.FitContext(
        splits.get("train"),
        splits.get("validation"),
        config.train,
        cache,
        config.score,
        partial(_open_run, config.results_dir),
        workdir,
    )


def _open_run(results_dir: str, name: str) -> core.System:
    results = Results.at(results_dir)
    return _find_in_run(results.find(name), results).load()


def find_used_run(run: str, results: Results) -> tuple[str, core.SystemConfig]:
    """Return the full name of a finished run that another one uses, and the settings of its model.

    The name is its id or, if the run is in another results folder, its own folder.

    Raises:
        UsageError: there is no such run, or it was written outside the suite.
    """
    folder = results.find(run)
    record = RunRecord.read(folder)
    _check_not_imported(record, folder)
    model = core.registry.load_config_class(record.key.model)
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


def resolve_checkpoint(run: str | Path | RunRecord, results: Results) -> SystemRef:
    """Find a checkpoint by its folder, by its run or by its name on the hub; also a run that trained nothing.

    Raises:
        UsageError: there is no such checkpoint.
        DataError: it is damaged.
    """
    folder = Path(run.run_id if isinstance(run, RunRecord) else run).expanduser()
    if (folder / "system.json").is_file():
        decode = core.read_saved(folder).get("decode", {})
        decoding = core.build_settings(core.Decoding, decode, "decode.")
        return SystemRef(f"{folder}", decoding, partial(open_system, folder))
    if folder.is_dir() and not (folder / "record.json").is_file():
        inner = folder / "work" / "checkpoint"
        unfinished = (
            f"; that run is not finished, its checkpoint is {inner}" if inner.is_dir() else ""
        )
        raise UsageError(
            f"{folder} is neither a checkpoint (system.json) nor a run (record.json){unfinished}"
        )
    try:
        run_folder = results.find(str(folder))
    except UsageError as problem:
        if isinstance(run, str) and HUB_NAME.fullmatch(run):
            return resolve_checkpoint(_fetch_system(run), results)
        suggestion = did_you_mean(str(run), core.registry.systems.targets())
        raise UsageError(f"no folder {folder}{suggestion}, and {problem}") from None
    return _find_in_run(run_folder, results)


def _find_in_run(run: Path, results: Results) -> SystemRef:
    """Return the system of a finished run, by its checkpoint, or made again if it trained nothing."""
    record, weights = RunRecord.read(run), find_stage(run, "checkpoint")
    _check_not_imported(record, run)
    decoding = core.Decoding(**recorded_decoding(record))
    if not (weights / "system.json").is_file():
        config = read_run_config(run)
        if not needs_training(config):
            config.results_dir = f"{results.root}"
            return SystemRef(f"{run}", decoding, partial(_fit_again, config))
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
    return SystemRef(f"{weights}", decoding, partial(open_system, weights, record.config.model))


def _fetch_system(name: str) -> Path:
    """Return the local copy of a system on the hub, which `longsumbench push` uploaded."""
    if not (fetch_files(name, "SYSTEM", ("system.json",)) / "system.json").is_file():
        raise UsageError(
            f"{name} on the hub has no system.json: it was not uploaded by `longsumbench push`"
        )
    return fetch_files(name, "SYSTEM", ("*",), more=("ranker/*",))


def recorded_decoding(record: RunRecord) -> dict[str, Any]:
    """Return the settings of `decode.*` that decide a run's summaries."""
    neutral = core.names_deciding(core.Decoding, *core.SAME_SYSTEM)
    return {key: value for key, value in vars(record.config.decode).items() if key not in neutral}


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


def _fit_again(config: core.RunConfig) -> core.System:
    return fitted_system(config, load_texts(config.dataset, user_cache()).splits)


def fitted_system(config: core.RunConfig, splits: Mapping[str, core.Split]) -> core.System:
    """Return the system of a configuration, fitted to splits by name; errors are those of `System.fit`."""
    system = core.new_system(config.model)
    system.fit(fit_context(splits, config, user_cache()))
    return system


def needs_training(config: core.RunConfig) -> bool:
    """Return True if the outcome of a run depends on a training."""
    return "train" in core.deciding_parts(config.model, config.train, config.decode)
