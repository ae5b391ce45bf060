"""Records of runs, run ids, and the layout of a results folder.

    results/runs/<dataset>/<model>/<run id>/   config.yaml  record.json  predictions.jsonl  scores.csv  work/
                                               of several checkpoints: predictions-<n>.jsonl  scores-<n>.csv
    results/leaderboard/<dataset>.{csv,md,tex}  <dataset>-recall.png  <dataset>-lengths.{png,csv}

`record.json` is written last and atomically. If it exists, the run is finished.
"""

import glob
import json
import logging
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from longsumbench.corpora.reading.store import ReadSplit
from longsumbench.errors import DataError, UsageError
from longsumbench.files import (
    COUNTS,
    LONGEST_SHOWN,
    BadFile,
    describe_misfit,
    digest,
    read_json,
    value_of_depth,
    write_atomically,
)
from longsumbench.formatting import percent

_log = logging.getLogger(__name__)

FORMAT = 1  # of record.json
_NAMED = 3  # most runs in a message
_ADVICE = "the same `longsumbench run` command makes it again, or remove it"
_MOVE = "move it into its own folder, or remove it"

# The shape of record.json: the fields that the code uses.
_FOLDER_NAME = re.compile(r"(?!\.\.?$)[^/\x00-\x1f\x7f]{1,60}")
_VALUE = value_of_depth(3)
_PROCESSES = range(1, 2**16)
LEDGER = {"tokens": COUNTS, "words": COUNTS, "cuts": [{"cause": str, "tokens": COUNTS, "words": COUNTS}]}
_SCORE = {"p": float, "r": float, "f": float, "f_lo": float, "f_hi": float}
_SHAPE: dict[str, Any] = {
    "run_id": _FOLDER_NAME,
    "model": _FOLDER_NAME,
    "dataset": _FOLDER_NAME,
    "split": re.compile("train|validation|test"),
    "variant": str,
    "scale": str,
    "seed": (int, None),
    "oracle": bool,
    "signature": str,
    "scores": {**dict.fromkeys(("rouge1", "rouge2", "rougeL", "rougeLsum"), _SCORE), str: _SCORE},
    "n": COUNTS,
    "examples": str,
    "empty_references": [str],
    "empty_predictions": COUNTS,
    "fingerprint": str,
    "corpus": {
        "examples?": {str: COUNTS},
        "generated?": {str: {"lengths?": [range(1, COUNTS.stop)], str: _VALUE}},
        "options?": {str: _VALUE},
        "source?": (str, None),
        str: _VALUE,
    },
    "source": (LEDGER, None),
    "outputs_cut": COUNTS,
    "fit": {
        **dict.fromkeys(("parameters", "steps", "examples", "source_tokens", "target_tokens", "targets_cut"), COUNTS),
        "seconds": float,
        "targets?": (LEDGER, None),
        "averaged?": [_VALUE],
        str: _VALUE,
    },
    "decode_tokens_per_second": float,
    "timings": {str: float},
    "peak_memory_gb": float,
    "config": {
        "model": {"name": _FOLDER_NAME, str: _VALUE},
        "dataset": {"name": _FOLDER_NAME, "path?": (str, None), str: _VALUE},
        "train": {
            "batch_size": COUNTS,
            "accumulation": COUNTS,
            "batch_words?": (COUNTS, None),
            "batch_tokens?": (COUNTS, None),
            "seed?": (int, None),
            str: _VALUE,
        },
        "decode": {"evidence?": re.compile(r"all|none|\d{1,18}"), "seed?": (int, None), str: _VALUE},
        "score": {"resamples?": range(1, 10**6 + 1), str: _VALUE},
        "scale": str,
        str: _VALUE,
    },
    "environment": {
        "longsumbench": str,
        "commit?": (re.compile(r"\w+"), None),
        "packages?": {str: str},
        "gpu?": (str, None),
        "threads?": (_PROCESSES, None),
        "processes?": _PROCESSES,
        str: _VALUE,
    },
    "command": [str],
    "finished": str,
    "repeatable": bool,
    "measures": {str: {"mean": float, "lo": float, "hi": float, "n": COUNTS}},
    "units": {str: str},
    "ranked_by": (str, None),
    "measured_by": {str: str},
    "checkpoints": [{"step": COUNTS, "means": {str: float}, str: _VALUE}],
    "outputs": {str: float},
}
DEFAULT_RANKING_SCORE = "rougeLsum"  # for datasets without a metric of their own
SHORT_ID = 8
_BETWEEN_SETTINGS = re.compile(r",(?![^\[\]]*\])")  # commas outside brackets


class TornRecord(DataError):
    """A run's record is damaged; the same command repeats the run."""


@dataclass(frozen=True)
class RunSpec:
    """Everything that decides a run's outcome.

    Attributes:
        settings: the resolved configuration, without settings that cannot change the outcome.
        fingerprint: the hash of the dataset's texts.
        versions: step → number that rises when the outcome of the step changes.
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
    """The results of a run. Scores are 0–100, times in seconds, lengths in tokens.

    Attributes:
        variant: the model and decode overrides that differ from the recipe, sorted ("input_length=64").
        scale: the name of the sizes ("tiny", "paper").
        seed: None if the outcome does not depend on it.
        oracle: True if the system saw the references.
        signature: the signatures of ROUGE and of the dataset's metrics.
        scores: ROUGE type → {"p", "r", "f": means; "f_lo", "f_hi": the 95 % interval of f}.
        n: the number of examples in the means.
        examples: a hash of their ids; equal for runs on the same examples.
        empty_references: ids left out of the means.
        empty_predictions: the number of empty outputs, which score 0.
        fingerprint: the hash of the dataset's texts.
        corpus: counts per split, licence, source, versions, skipped rows.
        source: the ledger of the input: tokens, words, cuts by cause; None without a ledger.
        outputs_cut: the number of outputs that hit the length limit.
        fit: the fields of `FitReport`.
        decode_tokens_per_second: output tokens per second; words if a system has no tokens.
        timings: step → seconds.
        peak_memory_gb: of process and GPU, in 1e9 bytes.
        config: the resolved configuration.
        environment: versions, hardware, commit and patch.
        command: the command line as typed.
        finished: the time, UTC, ISO 8601.
        repeatable: False if a time budget ended training.
        measures: results other than ROUGE: name → {"mean"; "lo", "hi": its 95 % interval, all 0–100 or in the measure's
            unit; "n": the number of examples}. The first measure of a metric comes first; metrics of the dataset come
            before requested ones.
        units: measure → unit, for measures that are not 0–100.
        ranked_by: the ROUGE type or measure that decides the rank; None in old records.
        measured_by: requested metric → signature.
        checkpoints: the averaged checkpoints (`train.keep_best`), the best first: "step", "validation_loss" and "means"
            (score column → value). Scores and measures are averages; all other results are those of the best
            checkpoint. Empty for a single checkpoint.
        outputs: length, diversity and repetition of the outputs (`describe_outputs`); empty in old records.
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
    outputs: Mapping[str, float] = field(default_factory=dict)
    format: int = field(default=FORMAT)

    def write(self, folder: Path) -> None:
        """Write `record.json` atomically."""
        write_atomically(folder / "record.json", json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read `record.json` from a run folder.

        Raises:
            FileNotFoundError: the file does not exist.
            TornRecord: the file is damaged.
            DataError: the file has a later format.
        """
        path = folder / "record.json"
        try:
            content = read_json(path, {"format": int})
            if content["format"] > FORMAT:
                raise DataError(f"written by a later version (format {content['format']}); update longsumbench", path)
            added_later: dict[str, Any] = {"measures": {}, "units": {}, "ranked_by": None, "measured_by": {}}
            content = {**added_later, "checkpoints": [], "outputs": {}, **content}
            if problem := describe_misfit(content, _SHAPE) or _misfit_of_rank(content):
                raise BadFile(problem)
        except BadFile as error:
            raise TornRecord(f"not a run's record ({error}); {_ADVICE}", path) from error
        values = {item.name: content[item.name] for item in fields(cls)}
        values |= {name: tuple(values[name]) for name in ("empty_references", "command", "checkpoints")}
        return cls(**values)


def _misfit_of_rank(content: Mapping[str, Any]) -> str:
    """Return an error if `ranking_score` is not among the measures, or an empty text."""
    name = content["ranked_by"]
    known = name in (None, *content["scores"], *content["measures"])
    return "" if known else f"ranked_by={name[:LONGEST_SHOWN]!r} was not measured"


@dataclass(frozen=True)
class Results:
    """A results folder. Unusable files are skipped and reported on stderr once."""

    root: Path
    named: set[str] = field(default_factory=set, compare=False, repr=False)  # the reports so far

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
            _log.info(f"left out: {problem}")
        self.named.add(str(problem))

    def datasets(self) -> list[str]:
        """Return the datasets with finished runs."""
        return sorted({path.parents[2].name for path in (self.root / "runs").glob("*/*/*/record.json")})

    def find(self, run: str) -> Path:
        """Return the folder of a run, given its folder, its id or a unique prefix of its id.

        Raises:
            UsageError: no run or several runs match, or the run is not finished.
            DataError: the record is damaged, or belongs to another run.
        """
        folder = Path(run).expanduser()
        if (folder / "record.json").is_file():
            return folder
        if folder.is_dir():
            raise UsageError(f"{folder} is not a finished run: it has no record.json")
        found = sorted(path.parent for path in (self.root / "runs").glob(f"*/*/{glob.escape(run)}*/record.json"))
        if not found:
            known = f"see {self.root / 'leaderboard'} for the ids"
            raise UsageError(f"no finished run is called '{run}' under {self.root}; {known}")
        if found[1:]:
            named = [f"{path.name} ({path.parent.name} on {path.parents[1].name})" for path in found[:_NAMED]]
            more = f" and {len(found) - _NAMED} more" if found[_NAMED:] else ""
            raise UsageError(f"{len(found)} runs begin with '{run}': {', '.join(named)}{more}; type more of the id")
        if (recorded := RunRecord.read(found[0]).run_id) != found[0].name:
            raise DataError(f"the record of the run {recorded}; {_MOVE}", found[0] / "record.json")
        return found[0]


def run_name(run: str | Path | RunRecord) -> str:
    """Return the name by which `Results.find` finds a run."""
    return run.run_id if isinstance(run, RunRecord) else str(run)


def output_files(checkpoints: int) -> list[tuple[str, str]]:
    """Return the names of the files with summaries and scores of each checkpoint, the best first.

    `scores.csv` holds the means of several checkpoints. Without averaging, `checkpoints` is 0 or 1.
    """
    others = [(f"predictions-{number}.jsonl", f"scores-{number}.csv") for number in range(2, checkpoints + 1)]
    return [("predictions.jsonl", "scores-1.csv" if others else "scores.csv"), *others]


def check_written(folder: Path, record: RunRecord, names: Iterable[str]) -> None:
    """Check that a finished run has some files; committed records may lack them.

    Raises:
        DataError: files are missing.
    """
    if missing := [name for name in names if not (folder / name).is_file()]:
        problem = f"{' and '.join(missing)} missing; the same `longsumbench run` command makes the run again"
        raise DataError(f"{problem}: {shlex.join(record.command)}", folder)


def run_label(record: RunRecord) -> str:
    """Return a run's model, variant, seed and id, short enough for a heading."""
    named = [record.model, *split_variant(record.variant)]
    if record.seed is not None:
        named.append(f"seed={record.seed}")
    return f"{' '.join(named)} ({record.run_id[:SHORT_ID]})"


def split_variant(variant: str) -> list[str]:
    """Return the settings of a variant; "a=1,b=[1,2]" has two."""
    return [part for part in _BETWEEN_SETTINGS.split(variant) if part]


def source_seen(record: RunRecord) -> float | None:
    """Return the percentage of source tokens that were read; None without a ledger."""
    if record.source is None:
        return None
    unit = "tokens" if record.source["tokens"] else "words"
    whole = record.source[unit]
    return percent(whole - sum(cut[unit] for cut in record.source["cuts"]), whole)


def ranking_score(record: RunRecord, part: str = "f") -> str:
    """Return the ROUGE type or measure that decides a run's rank; for precision and recall always a ROUGE type."""
    if part != "f":
        return DEFAULT_RANKING_SCORE
    return record.ranked_by or next(iter(record.measures), DEFAULT_RANKING_SCORE)


def measured_mean(record: RunRecord, name: str, part: str = "f") -> tuple[float, float | None, float | None] | None:
    """Return mean, low and high of a ROUGE type or a measure; None if it was not measured.

    Records have no intervals of precision and recall: there, low and high are None.
    """
    if name in record.scores:
        score = record.scores[name]
        return score[part], score.get(f"{part}_lo"), score.get(f"{part}_hi")
    measure = record.measures.get(name)
    return (measure["mean"], measure["lo"], measure["hi"]) if measure else None


def split_read_by(run: Path, record: RunRecord) -> ReadSplit | None:
    """Return the split that a run summarized; None if its texts are not on this machine."""
    folder = run / "work" / "corpus"
    try:
        splits = read_json(folder / "corpus.json", {"splits": {str: str}})["splits"]
        if digest(splits) == record.fingerprint:
            return ReadSplit(record.split, folder / f"{record.split}.arrow", splits[record.split])
    except (OSError, ValueError, KeyError):  # the cache was emptied, or the run came from another machine
        pass
    return None
