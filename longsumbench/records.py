"""What a run was: RunSpec → run id; RunRecord; atomic JSON; the layout of a results folder.

    results/runs/<dataset>/<model>/<run id>/   config.yaml  record.json  predictions.jsonl  scores.csv  work/
                                               of several checkpoints: predictions-<n>.jsonl  scores-<n>.csv
    results/leaderboard/<dataset>.{csv,md,tex}  <dataset>-recall.png  <dataset>-lengths.{png,csv}

`record.json` is written last, in one rename: a run folder that has one is finished.
"""

import errno
import glob
import json
import os
import shlex
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Self

from longsumbench.errors import IMPOSSIBLE, DataError, EnvironmentProblem, UsageError, naming
from longsumbench.stages import digest

FORMAT = 1  # of record.json
LEFT_FOR = 86_400.0  # seconds, in which a process that writes a file has either finished or died


class TornRecord(DataError):
    """A run's record that a crash, a full disk or a hand has damaged; the same command does the run again."""


@dataclass(frozen=True)
class RunSpec:
    """Everything that decides a run's outcome.

    Attributes:
        model, dataset: their names.
        settings: the resolved configuration, without what cannot change an outcome.
        fingerprint: of the dataset's texts.
        versions: stage → number that changes only when the stage's outcome does.
    """

    model: str
    dataset: str
    settings: Mapping[str, Any]
    fingerprint: str
    versions: Mapping[str, int]

    @property
    def run_id(self) -> str:
        """Twelve hexadecimal digits."""
        return digest(asdict(self))[:12]


@dataclass(frozen=True)
class RunRecord:
    """Enough to compare a run and to repeat it. Scores are 0–100, times in seconds, lengths in tokens.

    Attributes:
        run_id, model, dataset, split: which run.
        variant: the model and decode overrides that differ from the recipe, sorted ("input_length=64").
        scale: the name of the sizes ("tiny", "paper").
        seed: None when the outcome does not depend on one.
        oracle: whether the system saw the references.
        signature: how the scores were computed.
        scores: type → {"p", "r", "f": means; "f_lo", "f_hi": the 95 % interval of f}.
        n: the examples in the means.
        examples: a hash of their ids; two runs with the same one summarized the same examples.
        empty_references: ids left out of the means.
        empty_predictions: how many scored 0 for being empty.
        fingerprint: of the dataset's texts.
        corpus: what is known of them: counts per split, licence, source, versions, what was skipped or left out.
        source: the ledger of what was read: tokens, words, cuts by cause; None when a system keeps none.
        outputs_cut: how many outputs hit the length limit.
        fit: the FitReport, as plain values.
        decode_tokens_per_second: output tokens (words, where a system has no tokens) written a second.
        timings: step → seconds.
        peak_memory_gb: of the process (and the GPU), in 1e9 bytes.
        config: the resolved configuration.
        environment: versions, hardware, commit and patch.
        command: what was typed.
        finished: the time, UTC, ISO 8601.
        repeatable: False when a budget in minutes ended training.
        measures: what was measured beside ROUGE: name → {"mean"; "lo", "hi": its 95 % interval, all 0–100 or in the
            measure's own unit; "n": the examples it applies to}; a metric's first measure comes first, and a metric
            that the dataset names before those that were asked for. Empty in records of before there were any.
        units: of the measures that are not 0–100: measure → unit.
        ranked_by: what decides the rank: a type of ROUGE, or a measure; None in records of before it was noted.
        measured_by: metric → signature, of the metrics that were asked for, in this run or for it later; those of the
            others stand in `signature`.
        checkpoints: of a run that averages the scores of several (`train.keep_best`), each one's "step",
            "validation_loss" and "means" (column of its scores → 0–100 or its own unit), the best first; scores and
            measures are the averages, all else that was written and read is of the best. Empty otherwise.
    """

    run_id: str
    model: str
    dataset: str
    split: str
    variant: str
    scale: str
    seed: int | None
    oracle: bool
    signature: str
    scores: Mapping[str, Mapping[str, float]]
    n: int
    examples: str
    empty_references: tuple[str, ...]
    empty_predictions: int
    fingerprint: str
    corpus: Mapping[str, Any]
    source: Mapping[str, Any] | None
    outputs_cut: int
    fit: Mapping[str, Any]
    decode_tokens_per_second: float
    timings: Mapping[str, float]
    peak_memory_gb: float
    config: Mapping[str, Any]
    environment: Mapping[str, Any]
    command: tuple[str, ...]
    finished: str
    repeatable: bool = True
    measures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    ranked_by: str | None = None
    measured_by: Mapping[str, str] = field(default_factory=dict)
    checkpoints: tuple[Mapping[str, Any], ...] = ()
    format: int = field(default=FORMAT)

    def write(self, folder: Path) -> None:
        """Write `record.json`, whole or not at all."""
        write_atomically(folder / "record.json", json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read `record.json` from a run folder.

        Raises:
            TornRecord: it is not a record.
            DataError: it is one of a later format.
        """
        path = folder / "record.json"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] > FORMAT:
                raise DataError(f"written by a later version (format {content['format']}); update longsumbench", path)
            content = {"measures": {}, "units": {}, "ranked_by": None, "measured_by": {}, "checkpoints": (), **content}
            values = {item.name: content[item.name] for item in fields(cls)}
            values |= {name: tuple(values[name]) for name in ("empty_references", "command", "checkpoints")}
        except (ValueError, KeyError, TypeError) as error:
            advice = "the same `longsumbench run` command makes it again, or remove it"
            raise TornRecord(f"not a run's record ({error!r}); {advice}", path) from error
        return cls(**values)


@dataclass(frozen=True)
class Results:
    """A results folder."""

    root: Path

    def run_folder(self, run: RunSpec | RunRecord) -> Path:
        """Return where a run's files stand, whether or not they do yet."""
        return self.root / "runs" / run.dataset / run.model / run.run_id

    def records(self, dataset: str) -> Iterator[RunRecord]:
        """Yield the records of all finished runs on a dataset, sorted by model and run id."""
        for path in sorted((self.root / "runs" / dataset).glob("*/*/record.json")):
            try:
                record = RunRecord.read(path.parent)
            except FileNotFoundError:  # the run is being done anew
                continue
            yield record

    def datasets(self) -> list[str]:
        """Return the datasets that have finished runs."""
        return sorted({path.parents[2].name for path in (self.root / "runs").glob("*/*/*/record.json")})

    def find(self, run: str) -> Path:
        """Return the folder of a run named by its folder, its id or a unique prefix of it.

        Raises:
            UsageError: no run, or several, are meant by it, or the folder is no finished run's.
        """
        folder = Path(run).expanduser()
        if (folder / "record.json").is_file():
            return folder
        if folder.is_dir():
            raise UsageError(f"{folder} is not a finished run: it has no record.json")
        found = sorted(path.parent for path in (self.root / "runs").glob(f"*/*/{glob.escape(run)}*/record.json"))
        if len(found) != 1:
            many = f"{len(found)} runs begin with '{run}'" if found else f"no finished run is called '{run}'"
            raise UsageError(f"{many} under {self.root}; see {self.root / 'leaderboard'} for the ids")
        return found[0]


def output_files(checkpoints: int) -> list[tuple[str, str]]:
    """Return the names of the files with the summaries and with the scores of each checkpoint of a run, the best first.

    The means of several checkpoints' scores are in `scores.csv`.

    Args:
        checkpoints: how many summarized; of a run that does not average any, 0 or 1.
    """
    others = [(f"predictions-{number}.jsonl", f"scores-{number}.csv") for number in range(2, checkpoints + 1)]
    return [("predictions.jsonl", "scores-1.csv" if others else "scores.csv"), *others]


def check_written(folder: Path, record: RunRecord, names: Iterable[str]) -> None:
    """Check that a finished run has files that a record may have come without.

    Raises:
        DataError: some are missing; the message names the command that makes them again.
    """
    if missing := [name for name in names if not (folder / name).is_file()]:
        told = f"{' and '.join(missing)} missing; the same `longsumbench run` command makes the run again"
        raise DataError(f"{told}: {shlex.join(record.command)}", folder)


def writable(folder: Path, chosen_by: str) -> Path:
    """Return a folder, made if need be.

    Args:
        folder: where things are to be written.
        chosen_by: how the user can choose another one.

    Raises:
        EnvironmentProblem: nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, *IMPOSSIBLE):
            raise
        reason = f"cannot write to {folder} ({error.strerror})"
        raise EnvironmentProblem(f"{reason}; choose another folder by {chosen_by}") from error
    return folder


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file, text in UTF-8, so that readers see the old content or the new, and a full disk leaves the old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_left_over(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with naming(path), os.fdopen(handle, "wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@cache  # once a process: what is left over now was left by others
def remove_left_over(path: Path) -> None:
    """Remove what killed processes have begun to write for a file; what is not a day old may yet be finished."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.{'?' * 8}"):  # as `tempfile` names it
        with suppress(OSError):  # another process removes it, too, or it is somebody else's
            if time.time() - left.stat().st_mtime > LEFT_FOR:
                left.unlink()
