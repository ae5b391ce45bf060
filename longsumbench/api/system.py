"""The contract between the bench and a system: fit, summarize, save, load. No torch here: see `neural.py`."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from numpy.typing import NDArray

from longsumbench.api.config import Decoding, Recipe, build_settings
from longsumbench.api.documents import Example, Truncation
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.errors import DataError, UsageError
from longsumbench.files import BadFile, read_json

_SAVED = "system.json"  # of a checkpoint: what every system saves
_PARTS = {"system": str, "config": {}, "state": {}}  # its shape
REFERENCE_AXIS = "reference_step"  # a token of the reference, fed instead of what the system would write
WINDOW_AXIS = "window"  # of length 2: the middle, then the width of a stretch, both in source tokens from 0
ATTENDED_AXIS = "attended_unit"  # a unit, too: one that a unit attends to
AXES = ("step", REFERENCE_AXIS, "segment", "unit", ATTENDED_AXIS, "source_token", "layer", "head", WINDOW_AXIS)


class Split(Protocol):
    """A split as a system sees it: a sequence of examples, read as they are asked for."""

    @property
    def name(self) -> str:
        """The split's."""

    @property
    def fingerprint(self) -> str:
        """Of the texts; part of every stage made from them."""

    @property
    def multi_document(self) -> bool:
        """Whether the dataset's examples are several documents: a property of all its splits together."""

    @property
    def queried(self) -> bool:
        """Whether any of the dataset's examples comes with a query, likewise."""

    @property
    def ids(self) -> Sequence[str]:
        """Of all examples."""

    @property
    def source_words(self) -> Sequence[int]:
        """Of all examples, without reading them."""

    @property
    def reference_words(self) -> Sequence[int]:
        """Of all examples' first references, without reading them."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Example: ...
    def __iter__(self) -> Iterator[Example]: ...


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a system looked at while it wrote one summary; whoever draws it needs to know the axes only.

    Attributes:
        arrays: name → array.
        axes: name → the name of each of the array's dimensions, out of `AXES`.
        texts: axis → the text behind each of its indices; always there for "unit".
    """

    arrays: Mapping[str, NDArray[Any]]
    axes: Mapping[str, tuple[str, ...]]
    texts: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a system wrote for one example.

    Attributes:
        id: the example's.
        text: the summary; may be empty, then it scores 0.
        truncation: what the system left out of the source; None for a system that reads all of it.
        complete: False when the output hit its length limit before it ended by itself.
        tokens: how many the system wrote; None for a system without tokens of its own.
        evidence: what it looked at; only where it was asked for, of a system that keeps any.
    """

    id: str
    text: str
    truncation: Truncation | None = None
    complete: bool = True
    tokens: int | None = None
    evidence: Evidence | None = field(default=None, compare=False)


@dataclass(frozen=True)
class FitReport:
    """What training was, for the record. All zero for a system that does not train.

    Attributes:
        parameters: weights of the model, shared ones counted once.
        steps: optimizer steps done.
        examples, source_tokens, target_tokens: what the model was trained on, repetitions counted.
        seconds: training and validation, over all resumed pieces.
        ended_by: the budget or rule that ended training.
        best_step: the step whose weights are used; of weights that are averaged, that of the best.
        validation_loss: theirs, in nats per target token; None without a validation split.
        validation_losses: (step, loss) of every validation, in nats per target token.
        first_loss, last_loss: mean training loss of the first and last logged stretch, in nats per target token.
        targets: the ledger of the training targets.
        targets_cut: how many of them were cut.
        precision: "float32" or "bfloat16" (autocast).
        kept: (step, validation loss) of the checkpoints that were kept to average their scores (`train.keep_best`), the
            best first; empty unless that was asked for.
        averaged: likewise of those whose weights were averaged (`train.average_weights`).
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


class System(ABC):
    """A way of summarizing long input.

    A subclass names its settings in a dataclass and its reading in `summarize`; one that learns overrides `fit`, and
    `save`/`load` when it learns more than `state`.

    Attributes:
        Config: the dataclass of its settings (`model.*`); must have a field `name`.
        decided_by: the parts of a run's configuration, beside `model`, `dataset` and `score`, that decide its outcome
            ("seed", "train", "decode"); two runs that differ elsewhere are one run.
        later: settings that came after the first release of the system, with the values that change nothing. They are
            left out of run ids where they have these values, so that earlier runs keep their ids.
        oracle: True when it looks at the reference; every table says so.
        keeps_evidence: whether its summaries come with evidence when `decoding.evidence` asks for it.
        keeps_reference_evidence: whether that can also say what is looked at for the reference, fed token by token.
        gives_attention: whether its decoder attends to one memory for each text, the same at all steps, so that a
            search can rank by its coverage (`decode.coverage`).
        shares_work: whether several processes can write its summaries, and train it as its stages say, together.
        version: rises when the same settings would give another outcome.
    """

    Config: ClassVar[type]
    decided_by: ClassVar[frozenset[str]] = frozenset()
    later: ClassVar[Mapping[str, Any]] = {}
    oracle: bool = False
    keeps_evidence: bool = False
    keeps_reference_evidence: ClassVar[bool] = False
    gives_attention: bool = False
    shares_work: ClassVar[bool] = False
    version: ClassVar[int] = 1

    def __init__(self, config: Any) -> None:
        self.config = config
        self.state: dict[str, Any] = {}

    def check_examples(self, examples: Iterable[Example]) -> None:  # noqa: B027 - most can summarize anything
        """Look, before hours of training, whether these can be summarized. They can, unless a system says otherwise.

        Raises:
            UsageError: one of them cannot, with these settings.
        """

    def fit(
        self, train: Split | None, validation: Split | None, recipe: Recipe, workdir: Path, stages: ArtifactCache
    ) -> FitReport:
        """Learn from the training split. Nothing to do unless a system says otherwise.

        Args:
            train: None when the dataset has no such split.
            validation: likewise.
            recipe: how to train, for how long.
            workdir: the run's own folder for logs and links.
            stages: finished pieces of work, shared between runs.

        Raises:
            DataError: the system needs a split that is missing.
        """
        return FitReport()

    def ready_to_read(  # noqa: B027 - most read any text as it is
        self, train: Split | None, validation: Split | None, recipe: Recipe, stages: ArtifactCache
    ) -> None:
        """Learn what decides how texts are read (a tokenizer, a ranker), without training; `fit` begins with it.

        Then `source_ledger` and `reference_ledger` can be asked. Nothing to do unless a system says otherwise.

        Args:
            train: None when the dataset has no such split.
            validation: likewise.
            recipe: as of `fit`.
            stages: likewise.

        Raises:
            DataError: the system needs a split that is missing.
        """

    def source_ledger(self, example: Example) -> Truncation | None:
        """Return what `summarize` would leave out of an example; None: of a system that reads all, or does not say."""
        return None

    def reference_ledger(self, example: Example) -> Truncation | None:
        """Return what training would cut from an example's first reference; None: of a system that cuts nothing."""
        return None

    def use_kept(self, number: int) -> None:
        """Go on, when fitted, with one of the checkpoints of `FitReport.kept`; number 1, the best, is used after `fit`.

        Only of systems whose report says that several were kept.
        """
        raise NotImplementedError(f"{type(self).__name__} keeps one checkpoint")

    @abstractmethod
    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield one summary per example, in their order.

        The bench hands over batches of examples of similar length, `decoding.batch_size` at a time, in an order that
        depends on the data alone: a resumed run sees the same batches.
        """

    def identity(self) -> dict[str, Any]:
        """Return the settings as they decide the outcome: JSON values, part of the run id."""
        settings = asdict(self.config)
        return {key: value for key, value in settings.items() if key not in self.later or value != self.later[key]}

    @classmethod
    def versions(cls) -> dict[str, int]:
        """Return the version numbers of whatever decides the outcome; part of the run id."""
        return {"system": cls.version}

    def save(self, folder: Path) -> None:
        """Write all that `load` needs into an existing, empty folder."""
        content = {"system": self.config.name, "config": asdict(self.config), "state": self.state}
        (folder / _SAVED).write_text(json.dumps(content, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Rebuild what `save` wrote.

        Raises:
            UsageError: the folder holds another system, or none.
            DataError: its `system.json` is damaged.
        """
        content = read_checkpoint(folder, cls.Config)
        try:
            system = cls(build_settings(cls.Config, content["config"], "model."))
        except UsageError as problem:  # saved by another version, or edited
            told = f"its settings are not those of model '{content['system']}' ({problem})"
            raise DataError(told, folder / _SAVED) from problem
        system.state = content["state"]
        return system

    def try_out(self, device: str, named: str) -> None:  # noqa: B027 - most have nothing that can be damaged
        """Check, when loaded, that it can write a summary; nothing to check unless a system says otherwise.

        Args:
            device: where it will write.
            named: the checkpoint in messages.

        Raises:
            DataError: it cannot, because its checkpoint is damaged.
        """


def check_search(system: System, decode: Decoding) -> None:
    """Check that a system can search as asked.

    Raises:
        UsageError: it writes by decoding, but its decoder has no coverage to rank by.
    """
    if decode.coverage != "none" and "decode" in system.decided_by and not system.gives_attention:
        problem = f"model={system.config.name}, at least with these settings, cannot give the search its attention"
        raise UsageError(f"decode.coverage={decode.coverage}: {problem}: choose decode.coverage=none")


def read_checkpoint(folder: Path, config: type) -> dict[str, Any]:
    """Read a checkpoint's `system.json` and check that it belongs to the system with this `Config`.

    Raises:
        UsageError: there is no checkpoint, or it is another system's.
        DataError: the file is not readable.
    """
    content = read_saved(folder)
    found, expected = content["system"], next(item.default for item in fields(config) if item.name == "name")
    if found != expected:
        raise UsageError(f"{folder} is a checkpoint of '{found}', not of '{expected}': choose model={found}")
    return content


def read_saved(folder: Path) -> dict[str, Any]:
    """Read a checkpoint's `system.json`: the name of a system, its settings and its state.

    Raises:
        UsageError: there is no checkpoint.
        DataError: the file is damaged.
    """
    path = folder / _SAVED
    if not path.is_file():
        raise UsageError(f"{folder} is no checkpoint of this suite: it has no {_SAVED}")
    try:
        content: dict[str, Any] = read_json(path, _PARTS)
    except BadFile as error:
        raise DataError(f"not a checkpoint's {_SAVED} ({error}); save it again, or give another", path) from error
    return content
