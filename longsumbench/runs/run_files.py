"""The files of a run folder: written, checked, deleted."""

import logging
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from longsumbench.api import SECTIONS, FitReport, RunConfig, build_settings, registry
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.cache.locks import lock_holder
from longsumbench.errors import UsageError
from longsumbench.files import digest, write_atomically
from longsumbench.runs.record import RunRecord, TornRecord, output_files

_log = logging.getLogger(__name__)


def write_run_config(config: RunConfig, folder: Path) -> None:
    """Write the configuration of a run into its folder, as `config.yaml`."""
    write_atomically(folder / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(asdict(config))))


def read_run_config(folder: Path) -> RunConfig:
    """Read the configuration of a run from its `config.yaml`."""
    rest: Any = OmegaConf.to_container(OmegaConf.load(folder / "config.yaml"))
    schemas = {"model": registry.config_of(rest["model"]["name"]), **SECTIONS}
    groups = {name: build_settings(schema, rest.pop(name), f"{name}.") for name, schema in schemas.items()}
    config: RunConfig = build_settings(RunConfig, rest, "", groups)
    return config


def is_finished(folder: Path) -> bool:
    """Return True if a run has all its files; committed records lack the predictions."""
    try:
        every = output_files(len(_own_record(folder).checkpoints))
    except (FileNotFoundError, TornRecord):
        return False
    return all((folder / name).is_file() for files in (*every, ["scores.csv"]) for name in files)


def _own_record(folder: Path) -> RunRecord:
    """Return the record of the run in a folder; raise `TornRecord` if it belongs to another run."""
    record = RunRecord.read(folder)
    if record.run_id != folder.name:
        raise TornRecord(f"the record of the run {record.run_id}", folder / "record.json")
    return record


def report_torn_record(folder: Path) -> None:
    """Log that the run is repeated because its record is damaged."""
    if (folder / "record.json").is_file():
        try:
            _own_record(folder)
        except TornRecord:
            _log.warning(f"the record of this run cannot be read; the run is repeated: {folder / 'record.json'}")


def delete_run_files(folder: Path) -> None:
    """Delete a run's files except its lock, the record first."""
    (folder / "record.json").unlink(missing_ok=True)
    for path in [*folder.iterdir(), *(folder / "work").iterdir()]:
        if path.is_dir() and not path.is_symlink():
            if path.name != "work":
                shutil.rmtree(path)
        elif path.name != ".lock":
            path.unlink()


def remove_run(folder: Path, target: Path | None = None) -> None:
    """Delete the folder of a run, or move it to `target`.

    Raises:
        UsageError: a process works on the run; or `target` exists.
    """
    if (holder := lock_holder(folder / "work" / ".lock")) is not None:
        raise UsageError(f"{folder} is running ({holder}): wait for it, or end it first")
    if target is None:
        shutil.rmtree(folder)
        return
    if target.exists():
        raise UsageError(f"{target} exists: delete it or {folder} by `longsumbench runs delete`")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(folder, target)


def keep_predictions_of(report: FitReport, folder: Path) -> None:
    """Delete predictions, evidence and inputs that a killed process wrote with the weights of another training."""
    if not is_fitted_by(report, folder):
        written = (*folder.glob("predictions*.jsonl"), *folder.glob("inputs*.jsonl"))
        for path in (*written, *(folder / "work").glob("decoding*.jsonl")):
            path.unlink(missing_ok=True)
        shutil.rmtree(folder / "evidence", ignore_errors=True)
        write_atomically(folder / "work" / "fitted.json", training_key(report))


def is_fitted_by(report: FitReport, folder: Path) -> bool:
    """Return True if the files of a run were written with the weights of this training."""
    marker = folder / "work" / "fitted.json"
    return marker.is_file() and marker.read_bytes() == training_key(report).encode()


def training_key(report: FitReport) -> str:
    """Return a hash of a training's report, which is unique."""
    return digest(asdict(report))


def link_stages(workdir: Path, stages: ArtifactCache) -> None:
    """Link the finished stages into the run's folder."""
    for name, stage in stages.used.items():
        link = workdir / name
        link.unlink(missing_ok=True)
        link.symlink_to(stage.resolve(), target_is_directory=True)
