"""Short trainings of a tiny system, and ways to break them off."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from longsumbench.cache.artifacts import CHECKSUMS, ArtifactCache
from longsumbench.core import FitContext, FitReport, TrainConfig
from longsumbench.modeling.collate import UnitCollator
from longsumbench.models.seal.system import Trunc
from longsumbench.progress import Progress, watching_progress
from support.toys import TINY, ToySplit, tiny_recipe

TRAIN, VALIDATION = ToySplit.of("train", 40), ToySplit.of("validation", 9, start=900)
OUTCOME = (
    "steps",
    "examples",
    "source_tokens",
    "target_tokens",
    "best_step",
    "validation_losses",
    "ended_by",
    "first_loss",
    "last_loss",
    "kept",
    "averaged",
)


def fit(
    cache: ArtifactCache, recipe: TrainConfig, train: ToySplit = TRAIN, **settings: Any
) -> tuple[Trunc, FitReport]:
    system = Trunc(Trunc.Config(**{**TINY, "dropout": 0.1, **settings}))
    return system, system.fit(FitContext(train, VALIDATION, recipe, cache))


def weights(system: Trunc) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in system.model.state_dict().items()}


def mean_validation_loss(system: Trunc) -> float:
    """Return the summed loss of the validation examples, taken one by one, divided by their tokens."""
    system.model.eval()
    collate = UnitCollator(system.tokenizer.pad_token_id)
    batches = [collate([system.reader.row(example)]) for example in VALIDATION]
    sums = sum(
        float(system.model(**batch, num_items_in_batch=1).loss.detach()) for batch in batches
    )
    return sums / sum(int(batch["labels"].ne(-100).sum()) for batch in batches)


def restless(**changes: Any) -> TrainConfig:
    """Return a recipe whose validation loss falls and rises again."""
    steps = {"max_steps": 14, "eval_steps": 2, "warmup_steps": 8}
    return tiny_recipe(**{**steps, "learning_rate": 0.3, "schedule": "constant", **changes})


def files(folder: Path) -> dict[str, bytes]:
    """Return the content of all files below a folder, except how long training took and when they were written."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in sorted(found.items())
        if name not in ("fit.json", CHECKSUMS)
    }


def assert_same_outcome(fitted: tuple[Trunc, FitReport], expected: tuple[Trunc, FitReport]) -> None:
    """Check that two trainings ended with the same bits, losses and counts."""
    assert [getattr(fitted[1], name) for name in OUTCOME] == [
        getattr(expected[1], name) for name in OUTCOME
    ]
    assert files(fitted[0].checkpoint) == files(expected[0].checkpoint)


@contextmanager
def calling_after_step(step: int, action: Callable[[], object]) -> Iterator[None]:
    """Call a function at the end of a training step, before its validation."""

    def watch(progress: Progress) -> None:
        if progress.unit == "steps" and progress.done == step:
            action()

    with watching_progress(watch):
        yield


@contextmanager
def calling_before(
    owner: Any, name: str, number: int, action: Callable[[], object]
) -> Iterator[None]:
    """Call a function before the n-th call of a method of an object, class or module."""
    usual, calls = getattr(owner, name), [0]

    def changed(*args: Any, **others: Any) -> Any:
        calls[0] += 1
        if calls[0] == number:
            action()
        return usual(*args, **others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, changed)
        yield


def die() -> None:
    """End a training from inside."""
    raise ZeroDivisionError
