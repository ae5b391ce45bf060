"""The interface of a system: fit, summarize, save, load. Systems that use torch: `modeling/neural_system.py`."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, NotRequired, Protocol, Self, TypedDict

from numpy.typing import NDArray

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core.config import Decoding, Recipe, RunConfig, Scoring, build_settings
from longsumbench.core.documents import Example, Truncation
from longsumbench.core.registry import systems
from longsumbench.core.settings import Settings, outcome_settings
from longsumbench.errors import DataError, UsageError
from longsumbench.files import BadFile, read_json

_SAVED = "system.json"  # the file of a checkpoint that every system writes
REFERENCE_AXIS = "reference_step"  # a token of the reference, under teacher forcing
WINDOW_AXIS = "window"  # length 2: centre and width of a window, in source tokens counted from 0
ATTENDED_AXIS = "attended_unit"  # the unit that another unit attends to
AXES = (
    "step",
    REFERENCE_AXIS,
    "segment",
    "unit",
    ATTENDED_AXIS,
    "source_token",
    "layer",
    "head",
    WINDOW_AXIS,
)


class SavedSystem(TypedDict):
    """The content of a checkpoint's `system.json`."""

    system: str
    config: dict[str, Any]
    state: dict[str, Any]
    decode: NotRequired[dict[str, Any]]  # settings of the run that pushed it to the hub


class Split(Protocol):
    """A split as a system sees it: a sequence of examples that are read on access."""

    @property
    def name(self) -> str:
        """Name of the split."""

    @property
    def fingerprint(self) -> str:
        """Hash of the texts; part of the key of every stage made from them."""

    @property
    def multi_document(self) -> bool:
        """True if an example of any split of the dataset has several documents."""

    @property
    def queried(self) -> bool:
        """True if an example of any split of the dataset has a query."""

    @property
    def ids(self) -> Sequence[str]:
        """Ids of all examples."""

    @property
    def source_words(self) -> Sequence[int]:
        """Words of each source; no example is read."""

    @property
    def reference_words(self) -> Sequence[int]:
        """Words of each first reference; no example is read."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Example: ...
    def __iter__(self) -> Iterator[Example]: ...


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a system looked at while it wrote one summary: arrays with named axes.

    Attributes:
        arrays: name → array.
        axes: name → the names of the array's dimensions, from `AXES`.
        texts: axis → the text of each index; always present for "unit".
    """

    arrays: Mapping[str, NDArray[Any]]
    axes: Mapping[str, tuple[str, ...]]
    texts: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a system wrote for one example.

    Attributes:
        id: of the example.
        text: the summary; an empty one scores 0.
        truncation: what was cut from the source; None for a system that reads all of it.
        complete: False if the output reached its length limit before the end token.
        tokens: number of tokens written; None for a system without tokens.
        evidence: what the system looked at; None unless it was requested and the system keeps any.
        counts: name → number, summed over the summaries of a run for its record ("prompt_tokens", "refused").
        read: the text as the system read it; None unless `decoding.keep_inputs` requests it.
    """

    id: str
    text: str
    truncation: Truncation | None = None
    complete: bool = True
    tokens: int | None = None
    evidence: Evidence | None = field(default=None, compare=False)
    counts: Mapping[str, float] = field(default_factory=dict)
    read: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class FitReport:
    """Facts about the training, for the record. All zero for a system that does not train.

    Attributes:
        parameters: weights of the model, shared ones counted once.
        steps: optimizer steps.
        examples, source_tokens, target_tokens: what the model was trained on, repetitions counted.
        seconds: training and validation, summed over resumed parts.
        ended_by: the budget or rule that ended training.
        best_step: the step whose weights are used; the best one if weights are averaged.
        validation_loss: of these weights, in nats per target token; None without a validation split.
        validation_losses: (step, loss) of every validation, in nats per target token.
        first_loss, last_loss: mean training loss of the first and last logging interval, in nats per target token.
        targets: the ledger of the training targets.
        targets_cut: number of targets that were cut.
        precision: "float32" or "bfloat16" (autocast).
        kept: (step, validation loss) of the checkpoints whose scores are averaged (`train.keep_best`), best first;
            empty if keep_best is 1.
        averaged: the same for the checkpoints whose weights are averaged (`train.average_weights`).
    """

    parameters: int = 0
    steps: int = 0
    examples: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    seconds: float = 0.0
    ended_by: str = "nothing to train"
    best_step: int = 0
    validation_loss: float | None = None
    validation_losses: tuple[tuple[int, float], ...] = ()
    first_loss: float | None = None
    last_loss: float | None = None
    targets: Truncation | None = None
    targets_cut: int = 0
    precision: str = "float32"
    kept: tuple[tuple[int, float], ...] = ()
    averaged: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class FitContext:
    """What a system is fitted with.

    Attributes:
        train: None if the dataset has no training split.
        validation: None if the dataset has no validation split.
        recipe: how to train, and for how long.
        stages: the cache of finished stages, shared between runs.
        scoring: which words count as equal, for systems that compare texts by ROUGE.
    """

    train: Split | None
    validation: Split | None
    recipe: Recipe
    stages: ArtifactCache
    scoring: Scoring = field(default_factory=Scoring)

    @classmethod
    def of(cls, splits: Mapping[str, Split], config: RunConfig, stages: ArtifactCache) -> Self:
        """Take the training and validation split from a dataset's splits by name, the rest from a configuration."""
        return cls(
            splits.get("train"), splits.get("validation"), config.train, stages, config.score
        )


@dataclass(frozen=True)
class Capabilities:
    """What a system can do, at least with its settings; a class sets it, an instance may replace it.

    Attributes:
        oracle: it looks at the reference; tables mark it.
        keeps_evidence: its summaries have evidence when `decoding.evidence` requests it.
        keeps_reference_evidence: it can also give evidence for the reference under teacher forcing.
        gives_attention: its decoder attends to one memory per text, the same at all steps. A search can then rank by
            coverage (`decode.coverage`).
        supports_length_norms: its beam search can rank by every `decode.length_norm`.
        shares_work: several processes can train it, and write its summaries, together.
        extracts: it scores sentences of the source, so that `decode.mode=extract` can copy the best ones.
        runs_untrained: it summarizes with `train.max_steps=0`, by the weights of a checkpoint.
        trains_scorer: what scores the source can be trained alone (`train.only=scorer`).
        counts_overlap: its summaries depend on which words count as equal (`score.tokenizer`, `score.stem`).
    """

    oracle: bool = False
    keeps_evidence: bool = False
    keeps_reference_evidence: bool = False
    gives_attention: bool = False
    supports_length_norms: bool = False
    shares_work: bool = False
    extracts: bool = False
    runs_untrained: bool = False
    trains_scorer: bool = False
    counts_overlap: bool = False


class System(ABC):
    """Base class of all systems.

    A subclass defines its settings in a dataclass and implements `summarize`. A system that learns overrides `fit`,
    and `save` and `load` if it learns more than `state`.

    Attributes:
        Config: the dataclass of its settings (`model.*`), with a field `name`; `setting` describes the others.
        capabilities: what it can do.
        decided_by: further parts of the configuration that decide the outcome ("seed", "train", "decode"). `model`,
            `dataset` and `score` always do. Runs that differ only in other parts have the same id.
        version: increases when the same settings give another outcome.
        step_versions: step → version, of the shared steps that decide the outcome.
    """

    Config: ClassVar[type]
    capabilities: Capabilities = Capabilities()
    decided_by: frozenset[str] = frozenset()
    version: ClassVar[int] = 1
    step_versions: ClassVar[Mapping[str, int]] = {}

    def __init__(self, config: Settings) -> None:
        self.config: Any = config  # an instance of `Config`
        self.state: dict[str, Any] = {}

    def check_examples(self, examples: Iterable[Example]) -> None:  # noqa: B027 - most can summarize anything
        """Check the examples before training starts. The default accepts all of them.

        Raises:
            UsageError: an example cannot be summarized with these settings.
        """

    def prepare(self, context: FitContext) -> None:  # noqa: B027 - most read any text as it is
        """Make what is needed to read texts (a tokenizer, a ranker), without training; the first step of `fit`.

        `ledgers` can be called after it. The default does nothing.

        Raises:
            DataError: the system needs a split that is missing.
        """

    def fit(self, context: FitContext) -> FitReport:
        """Train on the training split. The default prepares only.

        Raises:
            DataError: the system needs a split that is missing.
        """
        self.prepare(context)
        return FitReport()

    def ledgers(self, example: Example) -> tuple[Truncation | None, Truncation | None]:
        """Return what `summarize` would cut from an example, and training from its first reference.

        None if the system reads all of it or keeps no ledger.
        """
        return None, None

    @abstractmethod
    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield one summary per example, in their order.

        `examples` is a batch of at most `decoding.batch_size` examples of similar length. The batches depend on the
        data alone, so a resumed run gets the same ones.
        """

    def identity(self) -> dict[str, Any]:
        """Return the settings that decide the outcome as JSON values; part of the run id."""
        return outcome_settings(self.config)

    def facts(self) -> dict[str, Any]:
        """Return facts about the fitted system as JSON values, for the record and the tables; none by default.

        Tables know these: "checkpoint", "revision" (commit), "weights" ("safetensors" or "bin"), "parameters",
        "context" (tokens it can read at most), "engine", "prompt", "prompt_hash", "released" (ISO date).
        """
        return {}

    def save(self, folder: Path) -> None:
        """Write all that `load` needs into an existing, empty folder."""
        content = {"system": self.config.name, "config": asdict(self.config), "state": self.state}
        (folder / _SAVED).write_text(json.dumps(content, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load what `save` wrote.

        Raises:
            UsageError: the folder holds another system, or none.
            DataError: its `system.json` is damaged.
        """
        content = read_checkpoint(folder, cls.Config)
        try:
            system = cls(build_settings(cls.Config, content["config"], "model."))
        except UsageError as problem:  # saved by another version, or edited
            message = f"its settings are not those of model '{content['system']}' ({problem})"
            raise DataError(message, folder / _SAVED) from problem
        system.state = content["state"]
        return system


def system_versions(system: System) -> dict[str, int]:
    """Return the version numbers of a system and its steps; part of the run id."""
    return {"system": system.version, **system.step_versions}


def sees_reference(system: System, decode: Decoding) -> bool:
    """Return True if summaries depend on the references: of an oracle, and of extracts as long as the reference."""
    as_long = (
        decode.mode == "extract"
        and decode.extract_length == "reference"
        and "decode" in system.decided_by
    )
    return system.capabilities.oracle or as_long


def deciding_parts(system: System, train: Recipe, decode: Decoding) -> frozenset[str]:
    """Return the parts of the configuration that decide a run's outcome, as in `System.decided_by`.

    A checkpoint that is used as it is does not depend on the training, and no search without samples on the seed.
    """
    parts = system.decided_by
    if system.capabilities.runs_untrained and not train.max_steps:
        parts -= {"seed", "train"}
    return parts | {"seed"} if "decode" in parts and decode.temperature > 0 else parts


def check_trained_part(system: System, recipe: Recipe, decode: Decoding) -> None:
    """Check that the part of the network that `train.only` names can be trained alone, and is enough to summarize.

    Raises:
        UsageError: the system has no such part; or the summaries need the decoder.
    """
    if recipe.only == "all" or "train" not in system.decided_by:
        return
    only = f"train.only={recipe.only}"
    if not system.capabilities.trains_scorer:
        raise UsageError(
            f"{only}: model={system.config.name} has no scorer that trains alone: choose train.only=all"
        )
    if decode.mode != "extract":
        raise UsageError(
            f"{only} leaves the decoder untrained: add decode.mode=extract, or choose train.only=all"
        )


def check_search(system: System, decode: Decoding) -> None:
    """Check that a system supports the decoding settings.

    Raises:
        UsageError: `decode.coverage` is set, but the decoder gives no attention; `decode.length_norm` is set, but the
            search has the library's only; `decode.mode=extract`, but the system scores nothing; `decode.mode=write`,
            but its decoder was not trained.
    """
    ranks = decode.num_beams > 1 and "decode" in system.decided_by
    if ranks and decode.length_norm != "power" and not system.capabilities.supports_length_norms:
        problem = f"model={system.config.name} searches with the library's length norm"
        raise UsageError(
            f"decode.length_norm={decode.length_norm}: {problem}: choose decode.length_norm=power"
        )
    if (
        decode.mode == "extract"
        and "decode" in system.decided_by
        and not system.capabilities.extracts
    ):
        problem = f"model={system.config.name}, at least with these settings, scores no sentences of the source"
        able = ", ".join(
            name for name in systems.built_in if systems.load(name).capabilities.extracts
        )
        raise UsageError(
            f"decode.mode=extract: {problem}: choose decode.mode=write, or another model ({able})"
        )
    if decode.mode == "write" and (part := system.state.get("trained_only")):
        problem = f"only the {part} of this checkpoint was trained, and not what writes"
        raise UsageError(f"decode.mode=write: {problem}: choose decode.mode=extract")
    if (
        decode.coverage != "none"
        and "decode" in system.decided_by
        and not system.capabilities.gives_attention
    ):
        problem = f"model={system.config.name}, at least with these settings, cannot give the search its attention"
        raise UsageError(
            f"decode.coverage={decode.coverage}: {problem}: choose decode.coverage=none"
        )


def read_checkpoint(folder: Path, config: type) -> SavedSystem:
    """Read a checkpoint's `system.json` and check that it belongs to the system with this `Config`.

    Raises:
        UsageError: there is no checkpoint, or it belongs to another system.
        DataError: the file is damaged.
    """
    content = read_saved(folder)
    system, expected = (
        content["system"],
        next(item.default for item in fields(config) if item.name == "name"),
    )
    if system != expected:
        raise UsageError(
            f"{folder} is a checkpoint of '{system}', not of '{expected}': choose model={system}"
        )
    return content


def read_saved(folder: Path) -> SavedSystem:
    """Read a checkpoint's `system.json`: the name of a system, its settings and its state.

    Raises:
        UsageError: there is no checkpoint.
        DataError: the file is damaged.
    """
    path = folder / _SAVED
    if not path.is_file():
        raise UsageError(f"{folder} is not a checkpoint of this suite: it has no {_SAVED}")
    try:
        return read_json(path, SavedSystem)
    except BadFile as error:
        raise DataError(
            f"not a checkpoint's {_SAVED} ({error}); save it again, or give another", path
        ) from error
