"""The record of a run: its settings, scores and costs, as `record.json`."""

import json
import logging
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from longsumbench.core import FitReport, RunConfig, RunKey, Truncation
from longsumbench.errors import DataError
from longsumbench.files import BadFile, check_tree, read_json, write_atomically
from longsumbench.formatting import format_count, percent
from longsumbench.metrics.aggregate import Estimate
from longsumbench.metrics.evaluate import Evaluation
from longsumbench.metrics.output_stats import OutputStats, output_warnings
from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.runs.environment import Environment

_log = logging.getLogger(__name__)

_REPEAT_ADVICE = "the same `longsumbench run` command makes it again, or remove it"
SHORT_ID = 8
VERIFIED_FILE = "verified.json"
WORK_FOLDER = "work"  # of a run: logs and links to stages, which belong to a machine
# Commas outside brackets and double quotes
_BETWEEN_SETTINGS = re.compile(r',\s*(?![^\[\]{}]*[\]}])(?=(?:[^"]*"[^"]*")*[^"]*$)')


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
class RunCosts:
    """What a run took; an imported run has no costs.

    Attributes:
        timings: how long each step took.
        decode_tokens_per_second: output tokens per second; words if a system has no tokens; None if imported.
        peak_memory_gb: of process and GPU, in 1e9 bytes; None if imported.
    """

    timings: StepSeconds = StepSeconds()
    decode_tokens_per_second: float | None = None
    peak_memory_gb: float | None = None


@dataclass(frozen=True)
class Ledger:
    """What was read, cut and copied, summed over the outputs of a run.

    Attributes:
        source: the ledger of the input; None if it is unknown.
        outputs_cut: number of outputs that hit the length limit.
        words_copied: number of source words that the outputs copied; None if they are written, or it is unknown.
        counts: name → sum over the outputs ("prompt_tokens", "refused").
    """

    source: Truncation | None = None
    outputs_cut: int = 0
    words_copied: int | None = None
    counts: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True)
class GeneratedTexts:
    """How a generator made a split: number of texts, seed, and lengths of the texts in tokens."""

    reports: int = 0
    seed: int = 0
    lengths: tuple[int, ...] = ()


@dataclass(frozen=True)
class RecordedTexts:
    """Facts about the texts of a run.

    Attributes:
        examples: split → number of examples.
        source: where the texts came from.
        generated: split → how its texts were generated; empty for other texts.
        generator: version of the generator.
        options: options of the generator that differ from their default.
        published: the month in which the dataset appeared ("2018-04"); None if unknown.
        licence: their licence.
        homepage: a URL; empty without one.
        more: further facts, for readers: versions, files, skipped rows.
    """

    examples: Mapping[str, int] = field(default_factory=dict)
    source: str | None = None
    generated: Mapping[str, GeneratedTexts] = field(default_factory=dict)
    generator: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    published: str | None = None
    licence: str = ""
    homepage: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordedSystem:
    """What is known of a system (`System.metadata`); None if unknown.

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
        more: further facts, for readers.
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
    more: Mapping[str, Any] = field(default_factory=dict)


_Part = TypeVar("_Part", RecordedTexts, RecordedSystem)


def recorded_metadata(metadata: Mapping[str, Any], part: type[_Part]) -> _Part:
    """Return the typed part of some metadata; those that it has no field for are its `more`."""
    names = part.__dataclass_fields__.keys()
    typed_values = {name: value for name, value in metadata.items() if name in names}
    more = {name: value for name, value in metadata.items() if name not in names}
    return msgspec.convert({**typed_values, "more": more}, part)


@dataclass
class RecordedConfig(RunConfig):
    """The resolved configuration. The settings of its model are a mapping: the system may not be installed."""

    model: dict[str, Any]  # type: ignore[assignment]

    @classmethod
    def of(cls, config: RunConfig) -> Self:
        """Return a configuration as it is recorded."""
        return cls(**{**vars(config), "model": asdict(config.model)})


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
        key: what decides its outcome.
        variant: the model and decode overrides that differ from the recipe, sorted ("input_length=64").
        oracle: True if the system saw the references.
        evaluation: what its outputs scored.
        outputs_digest: a hash of all outputs; runs with the same have equal outputs. Empty if unknown.
        fit: facts about the training.
        ledger: what was read, cut and copied.
        costs: what it took.
        texts: facts about the texts.
        system: facts about the system.
        config: the resolved configuration.
        environment: versions, hardware and commit.
        command: the command line as typed.
        finished: the time, UTC, ISO 8601.
        imported: where the outputs come from, if they were written outside the suite; costs are unknown then.
        verified: whether the run is marked as verified, in tables with such a run; otherwise None. Not written.
    """

    run_id: str
    key: RunKey
    variant: str
    oracle: bool
    evaluation: Evaluation
    outputs_digest: str
    fit: FitReport
    ledger: Ledger
    costs: RunCosts
    texts: RecordedTexts
    system: RecordedSystem
    config: RecordedConfig
    environment: Environment
    command: tuple[str, ...]
    finished: str
    imported: ImportedOutputs | None = None
    verified: bool | None = None

    def __post_init__(self) -> None:
        evaluation = self.evaluation
        missing = [kind for kind in ROUGE_TYPES if kind not in evaluation.scores]
        if missing:
            raise ValueError(f"scores has no {missing[0]}")
        if evaluation.ranked_by not in (*evaluation.scores, *evaluation.measures):
            raise ValueError(f"ranked_by={evaluation.ranked_by!r:.40} was not measured")

    @property
    def label(self) -> str:
        """Model and short id, as in the notes of a table."""
        return f"{self.key.model} {self.run_id[:SHORT_ID]}"

    @property
    def trained(self) -> bool:
        """True if the run trained its system."""
        return self.fit.steps > 0

    @property
    def seconds(self) -> float:
        """Seconds to train and to summarize; 0 for imported outputs."""
        return self.fit.seconds + self.costs.timings.summarize

    @property
    def zero_shot(self) -> bool:
        """True if the system is a checkpoint that was not trained here."""
        return self.system.checkpoint is not None and not (self.trained or is_untrained(self))

    @property
    def parameters(self) -> int:
        """Number of weights; 0 if it is unknown, or the system has none."""
        return self.fit.parameters or self.system.parameters or 0

    @property
    def train_examples(self) -> int:
        """Number of examples in the training split; 0 if it is unknown."""
        return self.texts.examples.get("train", 0)

    @property
    def num_outputs(self) -> int:
        """Number of examples that were summarized."""
        return self.evaluation.n + len(self.evaluation.empty_references) + self.left_out

    @property
    def left_out(self) -> int:
        """Number of examples that have no answer and no scores (`decode.failed=leave_out`)."""
        if self.config.decode.failed != "leave_out":
            return 0
        return int(self.ledger.counts.get("failed", 0))

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
            record = read_json(path, cls)
        except BadFile as error:
            raise TornRecord(f"not a run's record ({error}); {_REPEAT_ADVICE}", path) from error
        return replace(record, verified=None)  # a mark is never taken from the file


def output_files(checkpoints: int) -> list[tuple[str, str]]:
    """Return the names of the files with summaries and scores of each checkpoint, the best first.

    `scores.csv` holds the means of several checkpoints. Without averaging, `checkpoints` is 0 or 1.
    """
    more_files = []
    for number in range(2, checkpoints + 1):
        more_files.append((predictions_file(number), f"scores-{number}.csv"))
    return [(predictions_file(1), "scores-1.csv" if more_files else "scores.csv"), *more_files]


def predictions_file(checkpoint: int) -> str:
    """Return the name of the file with the summaries of a checkpoint, from 1, the best one."""
    return "predictions.jsonl" if checkpoint == 1 else f"predictions-{checkpoint}.jsonl"


def output_problems(record: RunRecord, stats: OutputStats | None) -> list[str]:
    """Return a clause for each problem of many of a run's outputs; `stats` are those of its record or its file.

    The setting that prevents loops is named if a local model wrote without it.
    """
    local = (
        record.imported is None
        and record.system.engine != "api"
        and (record.trained or record.zero_shot)
    )
    decode = record.config.decode
    can_block_loops = local and decode.mode == "write" and not decode.no_repeat_ngram
    problems = output_warnings(stats, record.ledger.outputs_cut, can_block_loops)
    return [*filter(None, [describe_unanswered(record)]), *problems]


def describe_unanswered(record: RunRecord) -> str:
    """Say how many examples a run has no answer about, without a period; empty if it has all."""
    failed, refused = (int(record.ledger.counts.get(name, 0)) for name in ("failed", "refused"))
    clauses = []
    if failed:
        fate = "left out" if record.config.decode.failed == "leave_out" else "0 points"
        clauses.append(f"{format_count(failed, 'example')} without an answer ({fate})")
    if refused:
        clauses.append(f"{format_count(refused, 'request')} refused")
    return " and ".join(clauses)


def split_variant(variant: str) -> list[str]:
    """Return the settings of a variant; "a=1,b=[1,2]" has two."""
    return [part for part in _BETWEEN_SETTINGS.split(variant) if part]


def is_untrained(record: RunRecord) -> bool:
    """Return whether a run's training made no step, and began with random weights."""
    was_planned = record.fit.ended_by not in ("", FitReport.ended_by)
    return (
        was_planned and not record.trained and record.config.model.get("init", "random") == "random"
    )


def source_seen(record: RunRecord) -> float | None:
    """Return the percentage of source tokens that were read; None if it is unknown."""
    source = record.ledger.source
    if source is None:
        return None
    return (
        percent(source.tokens_seen, source.tokens)
        if source.tokens
        else percent(source.words_seen, source.words)
    )


def source_copied(record: RunRecord) -> float | None:
    """Return the percentage of source words that the outputs copied; None if they are written, or it is unknown."""
    ledger = record.ledger
    if ledger.source is None or ledger.words_copied is None:
        return None
    return percent(ledger.words_copied, ledger.source.words)


def length_ratio(record: RunRecord) -> float | None:
    """Return the mean length of the outputs divided by that of the references, in words; None if it is unknown."""
    outputs = record.evaluation.outputs
    return outputs.words / outputs.reference_words if outputs and outputs.reference_words else None


def measured_mean(record: RunRecord, name: str) -> Estimate | None:
    """Return the mean of a ROUGE type (F1) or a measure; None if it was not measured."""
    evaluation = record.evaluation
    if name in evaluation.scores:
        return evaluation.scores[name].f1
    return evaluation.measures[name].estimate if name in evaluation.measures else None
