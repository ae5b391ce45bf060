"""A results folder: where its files are, and which of its runs are finished.

    results/runs/<dataset>/<model>/<run id>/   config.yaml  record.json  predictions.jsonl  scores.csv  work/
                                               of several checkpoints: predictions-<n>.jsonl  scores-<n>.csv
    results/leaderboard/<dataset>.{csv,md,tex}  <dataset>-{recall,oracle-recall}.png  <dataset>-lengths.{png,csv}

`record.json` is written last and atomically. If it exists, the run is finished.
"""

import glob
import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypedDict

from longsumbench.cache.locks import exclusive_lock
from longsumbench.corpora.reading.store import ReadSplit
from longsumbench.errors import DataError, UsageError
from longsumbench.files import digest, read_json, writable_folder, write_atomically
from longsumbench.runs.record import RunRecord, RunSpec

_log = logging.getLogger(__name__)

_NAMED = 3  # most runs in a message
_MOVE = "move it into its own folder, or remove it"


@dataclass(frozen=True)
class Results:
    """A results folder. Unusable files are skipped and reported on stderr once."""

    root: Path
    named: set[str] = field(default_factory=set, compare=False, repr=False)  # the reports so far

    @classmethod
    def writable(cls, results_dir: str, setting: str = "results_dir=") -> Self:
        """Create a results folder, if needed; raise EnvironmentProblem, which names the setting, if it cannot."""
        return cls(writable_folder(Path(results_dir).expanduser(), setting))

    def run_folder(self, run: RunSpec | RunRecord) -> Path:
        """Return the folder of a run, which may not exist yet."""
        return self.root / "runs" / run.dataset / run.model / run.run_id

    def records(self, dataset: str) -> Iterator[RunRecord]:
        """Yield the readable records of all finished runs on a dataset, sorted by model and run id."""
        for path in sorted((self.root / "runs" / dataset).glob("*/*/record.json")):
            try:
                record = RunRecord.read(path.parent)
                if self.run_folder(record) != path.parent:
                    raise DataError(f"the record of {record.model} {record.run_id} on {record.dataset}; {_MOVE}", path)
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
        return sorted({path.parents[2].name for path in (self.root / "runs").glob("*/*/*/record.json")})

    def find(self, run: str | Path | RunRecord, begun: bool = False) -> Path:
        """Return the folder of a run, given its folder, its id, a unique prefix of its id, or its record.

        Args:
            run: the run.
            begun: True to find also a run that is not finished.

        Raises:
            UsageError: no run or several runs match, or the run is not finished.
            DataError: the record is damaged, or belongs to another run.
        """
        name = run.run_id if isinstance(run, RunRecord) else str(run)
        folder, marks = Path(name).expanduser(), ["record.json", *(["config.yaml"] if begun else [])]
        if any((folder / mark).is_file() for mark in marks):
            return folder
        kind = "run" if begun else "finished run"
        if folder.is_dir():
            raise UsageError(f"{folder} is not a {kind}: it has no {marks[-1]}")
        runs, beginning = self.root / "runs", glob.escape(name)
        found = sorted({path.parent for mark in marks for path in runs.glob(f"*/*/{beginning}*/{mark}")})
        if not found:
            known = "`longsumbench list runs` shows the ids"
            raise UsageError(f"no {kind} is called '{name}' under {self.root}; {known}")
        if found[1:]:
            named = [f"{path.name} ({path.parent.name} on {path.parents[1].name})" for path in found[:_NAMED]]
            more = f" and {len(found) - _NAMED} more" if found[_NAMED:] else ""
            raise UsageError(f"{len(found)} runs begin with '{name}': {', '.join(named)}{more}; type more of the id")
        if not begun and (recorded := RunRecord.read(found[0]).run_id) != found[0].name:
            raise DataError(f"the record of the run {recorded}; {_MOVE}", found[0] / "record.json")
        return found[0]


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
