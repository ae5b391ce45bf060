"""The interface of a system: fit, summarize, save, load. Systems that use torch: `modeling/neural_system.py`."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NotRequired, Protocol, Self, TypedDict

from numpy.typing import NDArray

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import registry
from longsumbench.core.config import build_settings
from longsumbench.core.documents import Example, Truncation
from longsumbench.core.run_settings import Decoding, Scoring, TrainConfig
from longsumbench.core.settings import collect_defaults
from longsumbench.core.system_config import SystemConfig
from longsumbench.core.unfinished_work import UnfinishedWork
from longsumbench.errors import DataError, UsageError
from longsumbench.files import BadFile, as_type, read_json

# The file of a checkpoint that every system writes.
SAVED_SYSTEM = "system.json"
# A token of the reference, under teacher forcing.
REFERENCE_AXIS = "reference_step"
# Length 2: centre and width of a window, in source tokens counted from 0.
WINDOW_AXIS = "window"
# The unit that another unit attends to.
ATTENDED_AXIS = "attended_unit"
AXES = (
    "step",
    REFERENCE_AXIS,
    "segment",
    "request",
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
    # Settings of the run that pushed it to the hub.
    decode: NotRequired[dict[str, Any]]


class Split(Protocol):
    """A split as a system sees it: a sequence of examples that are read on access."""

    @property
    def name(self) -> str:
        """Name of the split."""

    @property
    def fingerprint(self) -> str:
        """Hash of the texts; part of the key of every stage made from them."""

    @property
    def layout(self) -> str:
        """Hash of the texts with their line breaks and blanks."""

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
        counts: name → number, summed over the summaries of a run for its record ("prompt_tokens", "seconds"). Equal
            summaries may have cost different amounts.
        read: the text as the system read it; None unless `decoding.keep_inputs` requests it.
    """

    id: str
    text: str
    truncation: Truncation | None = None
    complete: bool = True
    tokens: int | None = None
    evidence: Evidence | None = field(default=None, compare=False)
    counts: Mapping[str, float] = field(default_factory=dict, compare=False)
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


def _no_runs(name: str) -> "System":
    raise UsageError(f"no run '{name}': there are no results here")


@dataclass(frozen=True)
class FitContext:
    """What a system is fitted with.

    Attributes:
        train: None if the dataset has no training split.
        validation: None if the dataset has no validation split.
        recipe: how to train, and for how long.
        cache: finished stages, shared between runs.
        scoring: which words count as equal, for systems that compare texts by ROUGE.
        open_run: returns the system of a finished run, by its id or folder. Raises UsageError if there is none.
        workdir: the run's folder for what it needs until it is finished; None outside a run.
    """

    train: Split | None
    validation: Split | None
    recipe: TrainConfig
    cache: ArtifactCache
    scoring: Scoring = field(default_factory=Scoring)
    open_run: Callable[[str], "System"] = _no_runs
    workdir: Path | None = None


@dataclass
class Fitted:
    """What a system learned besides its weights. None: not learned; it is not saved.

    A subclass adds what else a system learns, as JSON values.

    Attributes:
        target_words: mean length of the training targets.
        multi_document: True if a training text has several documents.
        queried: true, or the version of queries, if the training texts have any.
        trained_only: the part of the model that was trained, if not all of it.
    """

    target_words: int | None = None
    multi_document: bool | None = None
    queried: bool | int | None = None
    trained_only: str | None = None

    def learned(self) -> dict[str, Any]:
        """Return name → value of what was learned."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class System(ABC):
    """Base class of all systems.

    A subclass names its settings and implements `summarize`. A system that learns overrides `fit`, and `save` and
    `load` if it learns more than `state`.

    Attributes:
        Config: the dataclass of its settings, which also say what it can do.
        State: the dataclass of what it learns besides weights.
        config: an instance of `Config`.
        state: an instance of `State`, set by `fit` and `load`.
        unfinished: where `summarize` may keep steps of a batch; None if nothing is to be kept.
    """

    Config: ClassVar[type[SystemConfig]]
    State: ClassVar[type[Fitted]] = Fitted
    config: SystemConfig
    state: Fitted
    unfinished: UnfinishedWork | None = None

    def __init__(self, config: SystemConfig) -> None:
        self.config, self.state = config, self.State()

    def check_examples(self, examples: Iterable[Example]) -> None:  # noqa: B027 - most can summarize anything
        """Check the examples before training starts. The default accepts all of them.

        Raises:
            UsageError: an example cannot be summarized with these settings.
        """

    def check_trained(self, decode: Decoding) -> None:
        """Check that what was trained can summarize as `decode` asks.

        Raises:
            UsageError: the decoder is to write, and was not trained.
        """
        if decode.mode == "write" and (part := self.state.trained_only):
            problem = f"only the {part} of this checkpoint was trained, and not what writes"
            raise UsageError(f"decode.mode=write: {problem}: choose decode.mode=extract")

    def prepare(self, context: FitContext) -> None:  # noqa: B027 - most read any text as it is
        """Make what is needed to read texts (a tokenizer, a ranker), without training; the first step of `fit`.

        The default does nothing.

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

    @abstractmethod
    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield one summary per example, in their order.

        `examples` is a batch of at most `decoding.batch_size` examples of similar length. The batches depend on the
        data alone, so a resumed run gets the same ones.
        """

    def metadata(self) -> dict[str, Any]:
        """Return what is known of the fitted system as JSON values, for the record and the tables; none by default.

        Tables know these: "checkpoint", "revision" (commit), "weights" ("safetensors", "bin" or "GGUF Q4_1"), "parameters",
        "context" (tokens it can read at most), "engine", "prompt", "prompt_hash", "released" (ISO date).
        """
        return {}

    def save(self, folder: Path) -> None:
        """Write all that `load` needs into an existing, empty folder."""
        content = {
            "system": self.config.name,
            "config": asdict(self.config),
            "state": self.state.learned(),
        }
        (folder / SAVED_SYSTEM).write_text(json.dumps(content, indent=1), encoding="utf-8")

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
            raise DataError(message, folder / SAVED_SYSTEM) from problem
        try:
            system.state = as_type(content["state"], cls.State)
        except BadFile as problem:
            raise DataError(f"its state is damaged ({problem})", folder / SAVED_SYSTEM) from problem
        return system


def new_system(config: SystemConfig) -> System:
    """Return the system of some settings, which learned nothing yet.

    Raises:
        BrokenPlugin: its module cannot be imported.
    """
    system: System = registry.systems.load(config.name)(config)
    return system


def read_checkpoint(folder: Path, config: type[SystemConfig]) -> SavedSystem:
    """Read a checkpoint's `system.json` and check that it belongs to the system with this `Config`.

    Raises:
        UsageError: there is no checkpoint, or it belongs to another system.
        DataError: the file is damaged.
    """
    content = read_saved(folder)
    system, expected = content["system"], collect_defaults(config)["name"]
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
    path = folder / SAVED_SYSTEM
    if not path.is_file():
        raise UsageError(f"{folder} is not a checkpoint of this suite: it has no {SAVED_SYSTEM}")
    try:
        return read_json(path, SavedSystem)
    except BadFile as error:
        raise DataError(
            f"not a checkpoint's {SAVED_SYSTEM} ({error}); save it again, or give another", path
        ) from error
