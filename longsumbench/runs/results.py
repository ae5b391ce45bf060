"""A results folder: where its files are, which of its runs are finished; the files of a run written, checked, packed.

    results/runs/<dataset>/<model>/<run id>/   config.yaml  record.json  predictions.jsonl  scores.csv  work/
                                               of several checkpoints: predictions-<n>.jsonl  scores-<n>.csv
                                               of a verified run: verified.json; of a merged one: origin.json
    results/bundles/<dataset>.{tar.xz,csv}     packed runs: see `longsumbench.runs.bundles`
    results/leaderboard/<dataset>.{csv,md,tex}  <dataset>-{recall,survival}.png

`record.json` is written last and atomically. If it exists, the run is finished.
"""

import glob
import logging
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Self

from omegaconf import OmegaConf

from longsumbench.cache.artifacts import CHECKSUMS, ArtifactCache
from longsumbench.cache.locks import exclusive_lock, lock_holder
from longsumbench.core import SECTIONS, FitReport, RunConfig, build_settings, registry
from longsumbench.corpora.loading.store import ReadSplit
from longsumbench.errors import DataError, UsageError
from longsumbench.files import (
    BadFile,
    check_contained,
    digest,
    hash_regular,
    read_json,
    writable_folder,
    write_atomically,
)
from longsumbench.formatting import format_bytes, format_count
from longsumbench.runs.bundles import (
    ENDING,
    files_to_pack,
    format_index,
    index_file,
    unpack_bundle,
    write_bundle,
)
from longsumbench.runs.record import VERIFIED_FILE, WORK_FOLDER, RunRecord, TornRecord, output_files

_log = logging.getLogger(__name__)

_NAMED = 3  # most runs in a message


@dataclass(frozen=True)
class Results:
    """A results folder. Unusable files are skipped and reported on stderr once.

    Attributes:
        foreign: True if it is another person's: links to bundles outside it are not followed.
        reported: problems that were reported.
        unpacked: bundle, its size and time → its copy in the cache.
    """

    root: Path
    foreign: bool = False
    reported: set[str] = field(default_factory=set, compare=False, repr=False)
    unpacked: dict[tuple[Any, ...], Path] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def at(cls, results_dir: str | Path) -> Self:
        """Return the results in a folder, which need not exist."""
        return cls(Path(results_dir).expanduser())

    @classmethod
    def writable(cls, results_dir: str, setting: str = "results_dir=") -> Self:
        """Create a results folder, if needed; raise EnvironmentProblem, which names the setting, if it cannot."""
        return cls(writable_folder(Path(results_dir).expanduser(), setting))

    def run_folder(self, run: RunRecord) -> Path:
        """Return the folder of a run; of a packed run, its copy in the cache."""
        return self.folder(run.key.dataset, run.key.model, run.run_id)

    def run_folders(self, dataset: str = "*", pattern: str = "*/*") -> list[Path]:
        """Return the folders of all runs, also of those without a record, sorted by dataset, model and run id.

        Without a dataset, a damaged bundle is reported and left out.

        Raises:
            DataError: the bundle of the dataset is damaged.
        """
        roots: list[Path | None] = [self.root]
        if dataset != "*":
            roots.append(self.unpack(dataset))
            dataset = glob.escape(dataset)
        else:
            for name in _bundled_datasets(self.root):
                try:
                    roots.append(self.unpack(name))
                except DataError as error:
                    self.leave_out(error)
        runs = set()
        for root in filter(None, roots):
            paths = root.glob(f"runs/{dataset}/{pattern}")
            runs |= {path.parts[-3:] for path in paths if path.is_dir()}
        return [self.folder(*parts) for parts in sorted(runs)]

    def folder(self, dataset: str, model: str, run_id: str) -> Path:
        """Return the folder of a run, which may not exist. A packed run is used unless a finished one has its place."""
        folder = self.unpacked_folder(dataset, model, run_id)
        if (folder / "record.json").is_file():
            return folder
        return self.packed_folder(dataset, model, run_id) or folder

    def unpacked_folder(self, dataset: str, model: str, run_id: str) -> Path:
        """Return the folder of a run in the results folder, which may not exist."""
        return self.root / "runs" / dataset / model / run_id

    def packed_folder(self, dataset: str, model: str, run_id: str) -> Path | None:
        """Return the copy of a packed run in the cache; None if it is not packed."""
        copy = self.unpack(dataset)
        folder = copy / "runs" / dataset / model / run_id if copy else None
        return folder if folder and folder.is_dir() else None

    def bundle(self, dataset: str) -> Path:
        """Return the path of the bundle with the packed runs on a dataset, which may not exist."""
        return self.root / "bundles" / f"{dataset}{ENDING}"

    def unpack(self, dataset: str) -> Path | None:
        """Return the copy in the cache of the packed runs on a dataset; None if there is no bundle."""
        bundle = self.bundle(dataset)
        try:
            status = bundle.stat()
            if self.foreign:
                check_contained(self.root, bundle)
            state = (bundle, status.st_size, status.st_mtime_ns)
            if state not in self.unpacked or not self.unpacked[state].is_dir():
                self.unpacked[state] = unpack_bundle(bundle)
        except FileNotFoundError:
            return None
        except BadFile as error:
            raise DataError(f"{error}", bundle) from error
        return self.unpacked[state]

    def check_not_packed(self, folder: Path) -> None:
        """Check that the folder of a run may be changed.

        Raises:
            UsageError: it is the copy of a packed run.
        """
        dataset = folder.parents[1].name
        copy = self.unpack(dataset)
        if copy and folder.resolve().is_relative_to(copy.resolve()):
            run = Path("runs", *folder.parts[-3:]).as_posix()
            command = shlex.join(
                ["tar", "-xf", f"{self.bundle(dataset)}", "-C", f"{self.root}", run]
            )
            raise UsageError(
                f"the run {folder.name} is packed, and no command changes it; unpack it first: {command}"
            )

    def records(self, dataset: str) -> Iterator[RunRecord]:
        """Yield the readable records of all finished runs on a dataset, sorted by model and run id."""
        for folder in self.run_folders(dataset):
            with suppress(FileNotFoundError):  # the run is being repeated
                try:
                    record = RunRecord.read(folder)
                except DataError as error:
                    self.leave_out(error)
                else:
                    yield record

    def leave_out(self, problem: DataError) -> None:
        """Report an unusable file on stderr, once."""
        if str(problem) not in self.reported:
            _log.warning(f"left out: {problem}")
        self.reported.add(str(problem))

    def leaderboard_lock(self, dataset: str) -> AbstractContextManager[None]:
        """Return the lock under which the tables and curves of a dataset are read and written, one job at a time."""
        return exclusive_lock(self.root / f".leaderboard-{dataset}.lock")

    def write_leaderboard(self, contents: Mapping[str, str | bytes | None]) -> list[Path]:
        """Write files (name → content) of the leaderboard, and delete those of None; return the paths of the others."""
        written = []
        for name, content in contents.items():
            path = self.root / "leaderboard" / name
            if content is None:
                path.unlink(missing_ok=True)
            else:
                write_atomically(path, content)
                written.append(path)
        return written

    def datasets(self) -> list[str]:
        """Return the datasets with finished runs."""
        folders = {path.parents[2].name for path in (self.root / "runs").glob("*/*/*/record.json")}
        return sorted(folders.union(_bundled_datasets(self.root)))

    def find(self, run: str | Path | RunRecord) -> Path:
        """Return the folder of a run, given its folder, its id, a unique prefix of its id, or its record.

        The name of a model is enough if the model has one finished run.

        Raises:
            UsageError: no run or several runs match, or the run is not finished.
            DataError: the record is damaged.
        """
        name = run.run_id if isinstance(run, RunRecord) else str(run)
        folder = Path(name).expanduser()
        if (folder / "record.json").is_file():
            return folder
        if folder.is_dir():
            raise UsageError(f"{folder} is not a finished run: it has no record.json")
        word = glob.escape(name)
        runs = {*self.run_folders(pattern=f"*/{word}*"), *self.run_folders(pattern=f"{word}/*")}
        matches = [path for path in sorted(runs) if (path / "record.json").is_file()]
        if not matches:
            advice = "`longsumbench list runs` shows the ids"
            raise UsageError(f"no finished run is called '{name}' under {self.root}; {advice}")
        if matches[1:]:
            labels = []
            for path in matches[:_NAMED]:
                labels.append(f"{path.name} ({path.parent.name} on {path.parents[1].name})")
            more = f" and {len(matches) - _NAMED} more" if matches[_NAMED:] else ""
            raise UsageError(
                f"{len(matches)} runs are called '{name}': {', '.join(labels)}{more}; type the id of one"
            )
        return matches[0]


def _bundled_datasets(root: Path) -> list[str]:
    return [path.name.removesuffix(ENDING) for path in (root / "bundles").glob(f"*{ENDING}")]


def finished_folders(path: Path, **options: Any) -> list[Path]:
    """Return the folders of the runs with a record in a results folder or a bundle.

    A damaged bundle in a results folder is reported and left out. `options` are fields of `Results`.

    Raises:
        DataError: it is neither, or a damaged bundle.
    """
    if not path.is_file() and not any((path / name).is_dir() for name in ("runs", "bundles")):
        raise DataError("no results folder (with runs/ or bundles/), and no bundle (.tar.xz)", path)
    root = unpack_bundle(path) if path.is_file() else path
    folders = Results(root, **options).run_folders()
    return [folder for folder in folders if (folder / "record.json").exists()]


def check_indexes(path: Path) -> None:
    """Check that the indexes of a bundle, or of those in a results folder, are those of their runs; they may be missing.

    Raises:
        DataError: an index has something else.
    """
    for bundle in [path] if path.is_file() else sorted(path.glob(f"bundles/*{ENDING}")):
        index = index_file(bundle)
        content = format_index(finished_folders(bundle))
        if index.is_file() and index.read_bytes() != content.encode():
            raise DataError("not the index of the runs in its bundle: delete it", index)


def hash_scored_files(folder: Path) -> dict[str, str]:
    """Return name → SHA-256 of the record, the summaries and the scores of a run."""
    paths = [*folder.glob("predictions*.jsonl"), *folder.glob("scores*.csv")]
    record = folder / "record.json"
    return {path.name: hash_regular(path) for path in sorted([record, *paths])}


def is_verified(folder: Path) -> bool:
    """Return True if `longsumbench verify` marked a run, and its record, summaries and scores are the same since."""
    with suppress(FileNotFoundError, BadFile):
        mark = read_json(folder / VERIFIED_FILE, dict[str, Any])
        return mark.get("files") == hash_scored_files(folder)
    return False


def find_stage(run: Path, name: str) -> Path:
    """Return the folder of a stage of a run, which may not exist.

    It is a link, which another person may have made. So it is followed only to a finished stage of a cache.
    """
    link = run / WORK_FOLDER / name
    leads_elsewhere = link.is_symlink() and link.exists() and not (link / CHECKSUMS).is_file()
    return link.with_name("not-a-stage") if leads_elsewhere else link


def split_read_by(run: Path, record: RunRecord) -> ReadSplit | None:
    """Return the split that a run summarized; None if its texts are not on this machine."""
    folder, name = find_stage(run, "corpus"), record.key.split
    texts = folder / f"{name}.arrow"
    # The cache was emptied, or the run came from another machine
    with suppress(OSError, ValueError, KeyError):
        splits = read_json(folder / "corpus.json", dict[str, Any])["splits"]
        if digest(splits) == record.key.fingerprint and texts.is_file():
            return ReadSplit(name, texts, splits[name])
    return None


def write_run_config(config: RunConfig, folder: Path) -> None:
    """Write the configuration of a run into its folder, as `config.yaml`."""
    write_atomically(folder / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(asdict(config))))


def read_run_config(folder: Path) -> RunConfig:
    """Read the configuration of a run from its `config.yaml`."""
    top_level: Any = OmegaConf.to_container(OmegaConf.load(folder / "config.yaml"))
    groups = {}
    for name, schema in {
        "model": registry.load_config_class(top_level["model"]["name"]),
        **SECTIONS,
    }.items():
        groups[name] = build_settings(schema, top_level.pop(name), f"{name}.")
    config: RunConfig = build_settings(RunConfig, top_level, "", groups)
    return config


def is_finished(folder: Path) -> bool:
    """Return True if a run has all its files; committed records lack the predictions."""
    try:
        files = output_files(len(RunRecord.read(folder).evaluation.checkpoints))
    except (FileNotFoundError, TornRecord):
        return False
    return all((folder / name).is_file() for name in ("scores.csv", *chain.from_iterable(files)))


def report_torn_record(folder: Path) -> None:
    """Log that the run is repeated because its record is damaged."""
    path = folder / "record.json"
    try:
        RunRecord.read(folder)
    except FileNotFoundError:
        return
    except TornRecord:
        _log.warning(f"the record of this run cannot be read; the run is repeated: {path}")


def delete_run_files(folder: Path) -> None:
    """Delete a run's files except its lock, the record first."""
    (folder / "record.json").unlink(missing_ok=True)
    for path in [*folder.iterdir(), *(folder / WORK_FOLDER).iterdir()]:
        if path.is_dir() and not path.is_symlink():
            if path.name != WORK_FOLDER:
                shutil.rmtree(path)
        elif path.name != ".lock":
            path.unlink()


def delete_stale_outputs(report: FitReport, folder: Path) -> None:
    """Delete predictions, evidence and inputs that a killed process wrote with the weights of another training."""
    if not is_fitted_by(report, folder):
        outputs = (*folder.glob("predictions*.jsonl"), *folder.glob("inputs*.jsonl"))
        for path in (*outputs, *(folder / WORK_FOLDER).glob("decoding*.jsonl")):
            path.unlink(missing_ok=True)
        shutil.rmtree(folder / "evidence", ignore_errors=True)
        write_atomically(folder / WORK_FOLDER / "fitted.json", training_key(report))


def is_fitted_by(report: FitReport, folder: Path) -> bool:
    """Return True if the files of a run were written with the weights of this training."""
    marker = folder / WORK_FOLDER / "fitted.json"
    return marker.is_file() and marker.read_bytes() == training_key(report).encode()


def training_key(report: FitReport) -> str:
    """Return a hash of a training's report, which is unique."""
    return digest(asdict(report))


def link_stages(workdir: Path, cache: ArtifactCache) -> None:
    """Link the finished stages into the run's folder."""
    for name, stage in cache.folders.items():
        link = workdir / name
        link.unlink(missing_ok=True)
        link.symlink_to(stage.resolve(), target_is_directory=True)


def pack_runs(results: Results) -> Iterator[str]:
    """Write the finished runs of each dataset into its bundle; yield a line for each dataset.

    Nothing is deleted. Runs that were packed before stay in the bundle with all their files.

    Raises:
        DataError: a record or the bundle is damaged; nothing is packed of its dataset.
    """
    for dataset in results.datasets():
        if not any(results.root.glob(f"runs/{glob.escape(dataset)}/*/*/record.json")):
            continue
        bundle = results.bundle(dataset)
        with results.leaderboard_lock(dataset):
            results.unpack(dataset)  # DataError if it is damaged
            chosen = [_choose_folder_to_pack(results, run) for run in results.run_folders(dataset)]
            folders = [folder for folder in chosen if folder is not None]
            for folder in folders:
                RunRecord.read(folder)  # DataError if it is damaged
            write_bundle(bundle, folders)
        yield f"packed: {format_count(len(folders), 'run')} → {bundle} ({format_bytes(bundle.stat().st_size)})"


def _choose_folder_to_pack(results: Results, folder: Path) -> Path | None:
    """Return the folder of a run or, if that lacks a file or is being changed, of its packed copy; None without any."""
    packed = results.packed_folder(*folder.parts[-3:])
    if folder == packed:
        return packed
    if not (folder / "record.json").is_file():
        return None
    if (holder := lock_holder(folder / WORK_FOLDER / ".lock")) is not None:
        _log.warning(f"left out: {folder} is running ({holder}); pack again when it has ended")
        return packed
    missing_files = {*files_to_pack(packed)} - {*files_to_pack(folder)} if packed else ()
    if missing_files:
        _log.warning(
            f"{folder} lacks {min(missing_files)}, which is packed: the packed run stays as it is"
        )
        return packed
    return folder
