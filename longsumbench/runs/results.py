"""A results folder: where its files are, which of its runs are finished; the files of a run written, checked, deleted.

    results/runs/<dataset>/<model>/<run id>/   config.yaml  record.json  predictions.jsonl  scores.csv  work/
                                               of several checkpoints: predictions-<n>.jsonl  scores-<n>.csv
                                               of a verified run: verified.json; of a merged one: origin.json
    results/bundles/<dataset>.{tar.xz,csv}     packed runs: see `longsumbench.runs.bundles`
    results/leaderboard/<dataset>.{csv,md,tex}  <dataset>-{recall,oracle-recall}.png  <dataset>-lengths.{png,csv}

`record.json` is written last and atomically. If it exists, the run is finished.
"""

import glob
import hashlib
import logging
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self, TypedDict

from omegaconf import OmegaConf

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.cache.locks import exclusive_lock, lock_holder
from longsumbench.core import SECTIONS, FitReport, RunConfig, build_settings, registry
from longsumbench.corpora.reading.store import ReadSplit
from longsumbench.errors import DataError, UsageError
from longsumbench.files import BadFile, digest, read_json, writable_folder, write_atomically
from longsumbench.formatting import format_bytes, format_count
from longsumbench.runs.bundles import ENDING, index_of, unpack_bundle, write_bundle
from longsumbench.runs.record import RunRecord, TornRecord, output_files

_log = logging.getLogger(__name__)

VERIFIED_FILE = "verified.json"
_NAMED = 3  # most runs in a message


@dataclass(frozen=True)
class Results:
    """A results folder. Unusable files are skipped and reported on stderr once."""

    root: Path
    named: set[str] = field(default_factory=set, compare=False, repr=False)  # the reports so far
    unpacked: dict[tuple[Any, ...], Path] = field(default_factory=dict, compare=False, repr=False)  # of each bundle

    @classmethod
    def writable(cls, results_dir: str, setting: str = "results_dir=") -> Self:
        """Create a results folder, if needed; raise EnvironmentProblem, which names the setting, if it cannot."""
        return cls(writable_folder(Path(results_dir).expanduser(), setting))

    def run_folder(self, run: RunRecord) -> Path:
        """Return the folder of a run; of a packed run, its copy in the cache."""
        return self.folder(run.dataset, run.model, run.run_id)

    def run_folders(self, dataset: str = "*", pattern: str = "*/*") -> list[Path]:
        """Return the folders of all runs, also of those without a record, sorted by dataset, model and run id."""
        names = [*self._bundled()] if dataset == "*" else [dataset]
        roots = [self.root, *filter(None, map(self._unpack, names))]
        runs = f"runs/{dataset if dataset == '*' else glob.escape(dataset)}/{pattern}"
        places = {path.parts[-3:] for root in roots for path in root.glob(runs) if path.is_dir()}
        return [self.folder(*parts) for parts in sorted(places)]

    def folder(self, dataset: str, model: str, run_id: str) -> Path:
        """Return the folder of a run, which may not exist. A packed run is used unless a finished one has its place."""
        parts = ("runs", dataset, model, run_id)
        folder, copy = self.root.joinpath(*parts), self._unpack(dataset)
        if copy and copy.joinpath(*parts).is_dir() and not (folder / "record.json").is_file():
            return copy.joinpath(*parts)
        return folder

    def bundle(self, dataset: str) -> Path:
        """Return the path of the bundle with the packed runs on a dataset, which may not exist."""
        return self.root / "bundles" / f"{dataset}{ENDING}"

    def _bundled(self) -> list[str]:
        return [path.name.removesuffix(ENDING) for path in (self.root / "bundles").glob(f"*{ENDING}")]

    def _unpack(self, dataset: str) -> Path | None:
        try:
            status = (bundle := self.bundle(dataset)).stat()
            state = (bundle, status.st_size, status.st_mtime_ns)
            if state not in self.unpacked or not self.unpacked[state].is_dir():
                self.unpacked[state] = unpack_bundle(bundle)
        except FileNotFoundError:
            return None
        return self.unpacked[state]

    def check_not_packed(self, folder: Path) -> None:
        """Check that the folder of a run may be changed.

        Raises:
            UsageError: it is the copy of a packed run.
        """
        copy, bundle = self._unpack(dataset := folder.parents[1].name), self.bundle(dataset)
        if copy and folder.resolve().is_relative_to(copy.resolve()):
            packed, index, root = (shlex.quote(str(path)) for path in (bundle, index_of(bundle), self.root))
            command = f"tar -xf {packed} -C {root} && rm {packed} {index}"
            raise UsageError(f"the run {folder.name} is packed, and no command changes it; unpack it first: {command}")

    def records(self, dataset: str) -> Iterator[RunRecord]:
        """Yield the readable records of all finished runs on a dataset, sorted by model and run id."""
        for folder in self.run_folders(dataset):
            try:
                record = RunRecord.read(folder)
            except FileNotFoundError:  # the run is being repeated
                continue
            except DataError as error:
                self.leave_out(error)
                continue
            yield record

    def leave_out(self, problem: DataError) -> None:
        """Report an unusable file on stderr, once."""
        if str(problem) not in self.named:
            _log.warning(f"left out: {problem}")
        self.named.add(str(problem))

    def leaderboard_lock(self, dataset: str) -> AbstractContextManager[None]:
        """Return the lock under which the tables and curves of a dataset are read and written, one job at a time."""
        return exclusive_lock(self.root / f".leaderboard-{dataset}.lock")

    def write_leaderboard(self, contents: Mapping[str, str | bytes | None]) -> list[Path]:
        """Write files (name → content) of the leaderboard, and delete those of None; return the paths of the others."""
        paths = {self.root / "leaderboard" / name: content for name, content in contents.items()}
        for path, content in paths.items():
            if content is None:
                path.unlink(missing_ok=True)
            else:
                write_atomically(path, content)
        return [path for path, content in paths.items() if content is not None]

    def datasets(self) -> list[str]:
        """Return the datasets with finished runs."""
        folders = {path.parents[2].name for path in (self.root / "runs").glob("*/*/*/record.json")}
        return sorted(folders.union(self._bundled()))

    def find(self, run: str | Path | RunRecord, begun: bool = False) -> Path:
        """Return the folder of a run, given its folder, its id, a unique prefix of its id, or its record.

        With `begun`, also find a run that is not finished.

        Raises:
            UsageError: no run or several runs match, or the run is not finished.
            DataError: the record is damaged.
        """
        name = run.run_id if isinstance(run, RunRecord) else str(run)
        folder, marks = Path(name).expanduser(), ["record.json", *(["config.yaml"] if begun else [])]
        if any((folder / mark).is_file() for mark in marks):
            return folder
        kind = "run" if begun else "finished run"
        if folder.is_dir():
            raise UsageError(f"{folder} is not a {kind}: it has no {marks[-1]}")
        runs = self.run_folders(pattern=f"*/{glob.escape(name)}*")
        matches = [path for path in runs if any((path / mark).is_file() for mark in marks)]
        if not matches:
            advice = "`longsumbench list runs` shows the ids"
            raise UsageError(f"no {kind} is called '{name}' under {self.root}; {advice}")
        if matches[1:]:
            labels = [f"{path.name} ({path.parent.name} on {path.parents[1].name})" for path in matches[:_NAMED]]
            more = f" and {len(matches) - _NAMED} more" if matches[_NAMED:] else ""
            raise UsageError(f"{len(matches)} runs begin with '{name}': {', '.join(labels)}{more}; type more of the id")
        return matches[0]


def finished_folders(path: Path) -> list[Path]:
    """Return the folders of the runs with a record in a results folder or a bundle; DataError if it is neither."""
    if not path.is_file() and not any((path / name).is_dir() for name in ("runs", "bundles")):
        raise DataError("no results folder (with runs/ or bundles/), and no bundle (.tar.xz)", path)
    folders = Results(unpack_bundle(path) if path.is_file() else path).run_folders()
    return [folder for folder in folders if (folder / "record.json").is_file()]


def hash_scored_files(folder: Path) -> dict[str, str]:
    """Return name → SHA-256 of the record, the summaries and the scores of a run."""
    paths = [path for name in ("record.json", "predictions*.jsonl", "scores*.csv") for path in folder.glob(name)]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(paths)}


def is_verified(folder: Path) -> bool:
    """Return True if `longsumbench verify` marked a run, and its record, summaries and scores are the same since."""
    with suppress(FileNotFoundError, BadFile):
        return read_json(folder / VERIFIED_FILE, dict[str, Any]).get("files") == hash_scored_files(folder)
    return False


class _CorpusFile(TypedDict):
    splits: dict[str, str]


def split_read_by(run: Path, record: RunRecord) -> ReadSplit | None:
    """Return the split that a run summarized; None if its texts are not on this machine."""
    folder = run / "work" / "corpus"
    try:
        splits = read_json(folder / "corpus.json", _CorpusFile)["splits"]
        if digest(splits) == record.fingerprint:
            return ReadSplit(record.split, folder / f"{record.split}.arrow", splits[record.split])
    except (OSError, ValueError, KeyError):  # the cache was emptied, or the run came from another machine
        pass
    return None


def write_run_config(config: RunConfig, folder: Path) -> None:
    """Write the configuration of a run into its folder, as `config.yaml`."""
    write_atomically(folder / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(asdict(config))))


def read_run_config(folder: Path) -> RunConfig:
    """Read the configuration of a run from its `config.yaml`."""
    top_level: Any = OmegaConf.to_container(OmegaConf.load(folder / "config.yaml"))
    schemas = {"model": registry.config_of(top_level["model"]["name"]), **SECTIONS}
    groups = {name: build_settings(schema, top_level.pop(name), f"{name}.") for name, schema in schemas.items()}
    config: RunConfig = build_settings(RunConfig, top_level, "", groups)
    return config


def is_finished(folder: Path) -> bool:
    """Return True if a run has all its files; committed records lack the predictions."""
    try:
        every = output_files(len(RunRecord.read(folder).checkpoints))
    except (FileNotFoundError, TornRecord):
        return False
    return all((folder / name).is_file() for files in (*every, ["scores.csv"]) for name in files)


def report_torn_record(folder: Path) -> None:
    """Log that the run is repeated because its record is damaged."""
    with suppress(FileNotFoundError):
        try:
            RunRecord.read(folder)
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
        outputs = (*folder.glob("predictions*.jsonl"), *folder.glob("inputs*.jsonl"))
        for path in (*outputs, *(folder / "work").glob("decoding*.jsonl")):
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
    for name, stage in stages.folders.items():
        link = workdir / name
        link.unlink(missing_ok=True)
        link.symlink_to(stage.resolve(), target_is_directory=True)


def pack_runs(results: Results) -> Iterator[str]:
    """Pack the finished runs of each dataset, and delete their folders; yield a line for each dataset.

    Interrupted runs are left as they are. Runs that were packed before stay in the bundle.

    Raises:
        DataError: a record is damaged; nothing is packed of its dataset.
        UsageError: a process works on a run; its folder is left.
    """
    home = results.root / "runs"
    for dataset in sorted({path.parents[2].name for path in home.glob("*/*/*/record.json")}):
        folders = [folder for folder in results.run_folders(dataset) if (folder / "record.json").is_file()]
        bundle = results.bundle(dataset)
        write_bundle(bundle, [(folder, RunRecord.read(folder)) for folder in folders])
        for folder in folders:
            if folder.is_relative_to(home):
                remove_run(folder)
        yield f"packed: {format_count(len(folders), 'run')} → {bundle} ({format_bytes(bundle.stat().st_size)})"
