"""The record of a run: its settings, scores and costs, as `record.json`."""

import json
import logging
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec

from longsumbench.core import DatasetSettings, Decoding, FitReport, Recipe, Scoring, Truncation
from longsumbench.errors import DataError
from longsumbench.files import BadFile, check_tree, read_json, write_atomically
from longsumbench.formatting import percent
from longsumbench.metrics.aggregate import Estimate, MeasureMean, RougeMeans
from longsumbench.metrics.output_facts import OutputFacts, output_warnings
from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.runs.environment import Environment

_log = logging.getLogger(__name__)

_REPEAT_ADVICE = "the same `longsumbench run` command makes it again, or remove it"
DEFAULT_RANKING_SCORE = "rougeLsum"  # for datasets without a metric of their own
SHORT_ID = 8
WORK_FOLDER = "work"  # of a run: logs and links to stages, which belong to a machine
_BETWEEN_SETTINGS = re.compile(r",\s*(?![^\[\]{}]*[\]}])")  # commas outside brackets


class TornRecord(DataError):
    """A run's record is damaged; the same command repeats the run."""


@dataclass(frozen=True)
class StepSeconds:
    """How long the steps of a run took, in seconds; `total` also has the time between them."""

    read: float = 0.0
    fit: float = 0.0
    summarize: float = 0.0
    score: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class CheckpointMeans:
    """The means of one of the averaged checkpoints (`train.keep_best`): score column → value."""

    step: int
    validation_loss: float | None
    means: Mapping[str, float]


@dataclass(frozen=True)
class GeneratedTexts:
    """How a generator made a split: number of texts, seed, and lengths of the texts in tokens."""

    reports: int = 0
    seed: int = 0
    lengths: tuple[int, ...] = ()


@dataclass(frozen=True)
class RecordedTexts:
    """Facts about the texts of a run that tables and analyses use, a part of `RunRecord.corpus`.

    Attributes:
        examples: split → number of examples.
        source: where the texts came from.
        generated: split → how its texts were generated; empty for other texts.
        generator: version of the generator.
        options: options of the generator that differ from their default.
        published: the month in which the dataset appeared ("2018-04"); None if unknown.
    """

    examples: Mapping[str, int] = field(default_factory=dict)
    source: str | None = None
    generated: Mapping[str, GeneratedTexts] = field(default_factory=dict)
    generator: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    published: str | None = None


@dataclass(frozen=True)
class RecordedSystem:
    """Facts about a system that tables show, a part of `RunRecord.system`; None if unknown.

    Attributes:
        checkpoint: folder or hub name, or the model's name at a server.
        revision: its commit.
        weights: the format of its files ("safetensors" or "bin").
        parameters: number of weights.
        context: most tokens of an input with the run's settings, with its prompt and special tokens.
        engine: what runs it ("transformers" or "api").
        prompt: name of the prompt.
        prompt_hash: hash of the prompt's text.
        released: month or day of the checkpoint's release, ISO.
    """

    checkpoint: str | None = None
    revision: str | None = None
    weights: str | None = None
    parameters: int | None = None
    context: int | None = None
    engine: str | None = None
    prompt: str | None = None
    prompt_hash: str | None = None
    released: str | None = None


@dataclass(frozen=True)
class RecordedSettings:
    """Settings that tables and analyses use, a part of `RunRecord.config`.

    The configuration may have other settings, of other versions or of systems that are not installed.
    """

    model: Mapping[str, Any]
    dataset: DatasetSettings
    train: Recipe
    decode: Decoding
    score: Scoring
    scale: str
    name: str | None  # which the user gave the run
    results_dir: str


@dataclass(frozen=True)
class ImportedOutputs:
    """Where the outputs of an imported run come from.

    Attributes:
        file: name of the file or folder.
        sha256: of the file's bytes; of a folder, of the outputs that were read.
        origin: a URL or a paper, as typed; empty if unknown.
    """

    file: str
    sha256: str
    origin: str = ""


@dataclass(frozen=True)
class RunRecord:
    """The results of a run. Scores are 0–100, times in seconds, lengths in tokens.

    Attributes:
        variant: the model and decode overrides that differ from the recipe, sorted ("input_length=64").
        scale: the name of the sizes ("tiny", "paper").
        seed: None if the outcome does not depend on it.
        oracle: True if the system saw the references.
        signature: the signatures of ROUGE and of the dataset's metrics.
        scores: ROUGE type → its means.
        n: the number of examples in the means.
        examples: a hash of their ids; equal for runs on the same examples.
        empty_references: ids left out of the means.
        empty_predictions: the number of empty outputs, which score 0.
        fingerprint: the hash of the dataset's texts.
        corpus: counts per split, licence, source, versions, skipped rows; `texts` has its typed part.
        source: the ledger of the input; None without a ledger.
        outputs_cut: the number of outputs that hit the length limit.
        fit: facts about the training.
        decode_tokens_per_second: output tokens per second; words if a system has no tokens; None if imported.
        timings: how long each step took.
        peak_memory_gb: of process and GPU, in 1e9 bytes; None if imported.
        config: the resolved configuration as plain values; `settings` has its typed part.
        environment: versions, hardware and commit.
        command: the command line as typed.
        finished: the time, UTC, ISO 8601.
        repeatable: False if a time budget ended training.
        measures: results other than ROUGE, by name. The first measure of a metric comes first; metrics of the dataset
            come before requested ones.
        units: measure → unit, for measures that are not 0–100.
        ranked_by: the ROUGE type or measure that decides the rank.
        measured_by: requested metric → signature.
        checkpoints: the averaged checkpoints, the best first. Scores and measures are averages; all other results are
            those of the best checkpoint. Empty for a single checkpoint.
        outputs: length, diversity and repetition of the outputs; None if unknown.
        words_copied: the number of source words that the outputs copied; None if they are written, or it is unknown.
        floor: ROUGE type, and the measure that decides the rank → mean score of the outputs against the references of
            other examples: what they reach without their sources. Empty if unknown.
        imported: where the outputs come from, if they were written outside the suite; costs are unknown then.
        system: facts about the system (`System.facts`); `facts` has the typed part.
        counts: name → sum over the outputs ("prompt_tokens", "refused").
        versions: step → version of its code, which rises when the outcome of the step changes. Empty if unknown.
        outputs_digest: a hash of all outputs; runs with the same have equal outputs. Empty if unknown.
        verified: whether the run is marked as verified, in tables with such a run; otherwise None. Not written.
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
    scores: Mapping[str, RougeMeans]
    n: int
    examples: str
    empty_references: tuple[str, ...]
    empty_predictions: int
    fingerprint: str
    corpus: Mapping[str, Any]
    source: Truncation | None
    outputs_cut: int
    fit: FitReport
    decode_tokens_per_second: float | None
    timings: StepSeconds
    peak_memory_gb: float | None
    config: Mapping[str, Any]
    environment: Environment
    command: tuple[str, ...]
    finished: str
    repeatable: bool
    measures: Mapping[str, MeasureMean]
    units: Mapping[str, str]
    ranked_by: str
    measured_by: Mapping[str, str]
    checkpoints: tuple[CheckpointMeans, ...]
    outputs: OutputFacts | None
    words_copied: int | None
    floor: Mapping[str, float]
    imported: ImportedOutputs | None
    system: Mapping[str, Any]
    counts: Mapping[str, int | float]
    versions: Mapping[str, int]
    outputs_digest: str = ""
    verified: bool | None = None

    def __post_init__(self) -> None:
        if missing := [kind for kind in ROUGE_TYPES if kind not in self.scores]:
            raise ValueError(f"scores has no {missing[0]}")
        if self.ranked_by not in (*self.scores, *self.measures):
            raise ValueError(f"ranked_by={self.ranked_by!r:.40} was not measured")

    @cached_property
    def settings(self) -> RecordedSettings:
        """The part of `config` that every run has."""
        return msgspec.convert(self.config, RecordedSettings)

    @cached_property
    def texts(self) -> RecordedTexts:
        """The part of `corpus` that the code uses."""
        return msgspec.convert(self.corpus, RecordedTexts)

    @cached_property
    def facts(self) -> RecordedSystem:
        """The part of `system` that tables show."""
        return msgspec.convert(self.system, RecordedSystem)

    @property
    def label(self) -> str:
        """Model and short id, as in the notes of a table."""
        return f"{self.model} {self.run_id[:SHORT_ID]}"

    @property
    def trained(self) -> bool:
        """True if the run trained its system."""
        return self.fit.steps > 0

    @property
    def zero_shot(self) -> bool:
        """True if the system is a checkpoint that was not trained here."""
        return self.facts.checkpoint is not None and not (self.trained or is_untrained(self))

    @property
    def parameters(self) -> int:
        """Number of weights; 0 if it is unknown, or the system has none."""
        return self.fit.parameters or self.facts.parameters or 0

    @property
    def train_examples(self) -> int:
        """Number of examples in the training split; 0 if it is unknown."""
        return self.texts.examples.get("train", 0)

    @property
    def num_outputs(self) -> int:
        """Number of examples that were summarized."""
        return self.n + len(self.empty_references) + self.left_out

    @property
    def left_out(self) -> int:
        """Number of examples that have no answer and no scores (`decode.failed=leave_out`)."""
        return (
            int(self.counts.get("failed", 0)) if self.settings.decode.failed == "leave_out" else 0
        )

    def check_written(self, folder: Path, names: Iterable[str]) -> None:
        """Check that the run's folder has some files; committed records may lack them.

        Raises:
            DataError: files are missing.
        """
        if missing := [name for name in names if not (folder / name).is_file()]:
            problem = f"{' and '.join(missing)} missing; the same `longsumbench run` command makes the run again"
            raise DataError(f"{problem}: {shlex.join(self.command)}", folder)

    def write(self, folder: Path) -> None:
        """Write `record.json` atomically."""
        values = asdict(self)
        del values["verified"]
        write_atomically(
            folder / "record.json", json.dumps(values, indent=1, ensure_ascii=False) + "\n"
        )

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read `record.json` from a run folder, which somebody else may have written.

        Raises:
            FileNotFoundError: the file does not exist.
            TornRecord: the file is damaged.
            DataError: a file of the run is a link that leaves its folder, a pipe or a device.
        """
        check_tree(folder, skipped=WORK_FOLDER)
        path = folder / "record.json"
        try:
            record = replace(
                read_json(path, cls), verified=None
            )  # a mark is never taken from the file
            _ = record.settings, record.texts, record.facts
        except (BadFile, msgspec.ValidationError) as error:
            raise TornRecord(f"not a run's record ({error}); {_REPEAT_ADVICE}", path) from error
        return record


def output_files(checkpoints: int) -> list[tuple[str, str]]:
    """Return the names of the files with summaries and scores of each checkpoint, the best first.

    `scores.csv` holds the means of several checkpoints. Without averaging, `checkpoints` is 0 or 1.
    """
    more_files = [
        (f"predictions-{number}.jsonl", f"scores-{number}.csv")
        for number in range(2, checkpoints + 1)
    ]
    return [("predictions.jsonl", "scores-1.csv" if more_files else "scores.csv"), *more_files]


def output_problems(record: RunRecord, facts: OutputFacts | None) -> list[str]:
    """Return a clause for each problem of many of a run's outputs; `facts` are about those of its record or its file.

    The setting that prevents loops is named if a local model wrote without it.
    """
    local = (
        record.imported is None
        and record.facts.engine != "api"
        and (record.trained or record.zero_shot)
    )
    decode = record.settings.decode
    can_block_loops = local and decode.mode == "write" and not decode.no_repeat_ngram
    return output_warnings(facts, record.outputs_cut, can_block_loops)


def run_label(record: RunRecord) -> str:
    """Return a run's model, name, variant, seed and id, short enough for a heading."""
    parts = [record.model, *filter(None, [record.settings.name]), *split_variant(record.variant)]
    if record.seed is not None:
        parts.append(f"seed={record.seed}")
    return (
        f"{' '.join(parts)} ({'imported, ' if record.imported else ''}{record.run_id[:SHORT_ID]})"
    )


def split_variant(variant: str) -> list[str]:
    """Return the settings of a variant; "a=1,b=[1,2]" has two."""
    return [part for part in _BETWEEN_SETTINGS.split(variant) if part]


def is_untrained(record: RunRecord) -> bool:
    """Return whether a run's training made no step, and began with random weights."""
    was_planned = record.fit.ended_by not in ("", FitReport.ended_by)
    return (
        was_planned
        and not record.trained
        and record.config["model"].get("init", "random") == "random"
    )


def source_seen(record: RunRecord) -> float | None:
    """Return the percentage of source tokens that were read; None if it is unknown."""
    source = record.source
    if source is None:
        return None
    return (
        percent(source.tokens_seen, source.tokens)
        if source.tokens
        else percent(source.words_seen, source.words)
    )


def source_copied(record: RunRecord) -> float | None:
    """Return the percentage of source words that the outputs copied; None if they are written, or it is unknown."""
    if record.source is None or record.words_copied is None:
        return None
    return percent(record.words_copied, record.source.words)


def length_ratio(record: RunRecord) -> float | None:
    """Return the mean length of the outputs divided by that of the references, in words; None if it is unknown."""
    outputs = record.outputs
    return outputs.words / outputs.reference_words if outputs and outputs.reference_words else None


def measured_mean(record: RunRecord, name: str) -> Estimate | None:
    """Return the mean of a ROUGE type (F1) or a measure; None if it was not measured."""
    if name in record.scores:
        return record.scores[name].f1
    return record.measures[name].estimate if name in record.measures else None
