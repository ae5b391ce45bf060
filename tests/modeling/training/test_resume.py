"""Trainings that are killed or interrupted and started again: no step is lost, and the outcome is the same."""

import math
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch
from support.toys import build_tiny, fit_context, refuses, tiny_recipe
from support.trainings import (
    TRAIN,
    assert_same_outcome,
    calling_after_step,
    calling_before,
    die,
    fit,
    restless,
)

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.interrupts import delayed_interrupts, sigterm_as_interrupt
from longsumbench.modeling.training import trainer
from longsumbench.models.seal.system import Trunc

UNLOCKING = {"unlock": 0.6, "batch_words": 120, "accumulation": 2, "max_steps": 14, "eval_steps": 2}
RECIPES = {
    "epochs": tiny_recipe(max_steps=15, eval_steps=5),  # five steps are an epoch of 40 rows
    "accumulation": tiny_recipe(max_steps=14, eval_steps=6, accumulation=2, keep_best=2),
    "unlocking": tiny_recipe(**UNLOCKING),
    "tokens": tiny_recipe(batch_tokens=120, accumulation=2, max_steps=14, eval_steps=2),
    "max_tokens": tiny_recipe(**{**UNLOCKING, "max_steps": 500}, max_tokens=2_000),
    "patience": restless(patience=2, max_steps=80),
    "keep_best": restless(keep_best=3),
    "average_weights": restless(average_weights=3, eval_steps=3),
}
Moment = Callable[
    [Callable[[], object]], AbstractContextManager[None]
]  # of an action in a training
MOMENTS: dict[str, Moment] = {
    "step 3": lambda act: calling_after_step(3, act),
    "step 6": lambda act: calling_after_step(6, act),
    "forward": lambda act: calling_before(Trunc.Model, "forward", 12, act),
    "validated": lambda act: calling_before(torch, "save", 2, act),
    "saved": lambda act: calling_before(shutil, "rmtree", 1, act),
    "trained": lambda act: calling_before(trainer, "mean_weights", 1, act),
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Any]]:
    """The same trainings, left alone; each is done once."""
    done: dict[str, tuple[Any, Any]] = {}

    def fitted(name: str) -> tuple[Any, Any]:
        if name not in done:
            done[name] = fit(ArtifactCache(tmp_path_factory.mktemp("undisturbed")), RECIPES[name])
        return done[name]

    return fitted


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt, as in the command."""
    with sigterm_as_interrupt():
        yield


KILLED = [("epochs", moment) for moment in MOMENTS]
KILLED += [("keep_best", moment) for moment in ("validated", "saved", "trained")]
KILLED += [("average_weights", "trained")]
KILLED += [(name, "forward") for name in RECIPES if name != "epochs"]


@pytest.mark.parametrize(("name", "moment"), KILLED)
def test_a_killed_training_ends_with_the_same_bits(
    name: str, moment: str, undisturbed: Callable[[str], tuple[Any, Any]], tmp_path: Path
) -> None:
    """Wherever it is killed, the same training started again has the same weights, losses and counts."""
    store = ArtifactCache(tmp_path)
    with MOMENTS[moment](die), pytest.raises(ZeroDivisionError):
        fit(store, RECIPES[name])
    assert_same_outcome(fit(store, RECIPES[name]), undisturbed(name))


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["step 3", "forward", "validated"])
@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_training_ends_with_the_same_bits(
    moment: str, sent: signal.Signals, undisturbed: Callable[[str], tuple[Any, Any]], tmp_path: Path
) -> None:
    """Whenever a signal comes, a checkpoint is saved, and the training continues to the same bits and counts."""
    store = ArtifactCache(tmp_path)
    with MOMENTS[moment](lambda: signal.raise_signal(sent)), pytest.raises(KeyboardInterrupt):
        fit(store, RECIPES["accumulation"])
    assert checkpoints(tmp_path)
    assert_same_outcome(fit(store, RECIPES["accumulation"]), undisturbed("accumulation"))


def checkpoints(root: Path) -> list[str]:
    """Return the names of the checkpoints of a training that is not finished."""
    return [path.name for path in root.glob("checkpoint/*.partial/trainer/checkpoint-*")]


@pytest.mark.usefixtures("interruptible")
def test_a_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    """The second Ctrl-C in a step ends the training within it: nothing is saved."""

    def twice() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with calling_before(Trunc.Model, "forward", 6, twice), pytest.raises(KeyboardInterrupt):
        fit(ArtifactCache(tmp_path), RECIPES["accumulation"])
    assert checkpoints(tmp_path) == []


@pytest.mark.usefixtures("interruptible")
def test_a_signal_is_delayed_and_not_lost() -> None:
    """A signal inside is raised at the end; SIGTERM after SIGINT, as torchrun sends it, is not a second interrupt."""

    def interrupted_twice() -> None:
        with delayed_interrupts() as interrupted:
            assert not interrupted
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            assert interrupted

    with pytest.raises(KeyboardInterrupt):
        interrupted_twice()
    assert (
        signal.getsignal(signal.SIGINT)
        is signal.getsignal(signal.SIGTERM)
        is signal.default_int_handler
    )


def test_a_file_that_is_not_finished_is_not_a_checkpoint(tmp_path: Path) -> None:
    """Killed while the first checkpoint is written, a training starts again, from the beginning."""

    def torn(content: Any, file: Any) -> None:
        file.write(b"torn")
        die()

    store = ArtifactCache(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "save", torn)
        with pytest.raises(ZeroDivisionError):
            fit(store, tiny_recipe(max_steps=2))
    assert checkpoints(tmp_path) == []
    assert fit(store, tiny_recipe(max_steps=2))[1].steps == 2


@pytest.mark.parametrize("loss", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("accumulation", "batch"), [(1, 3), (2, 5)]
)  # of the five in an epoch, two a step
def test_a_loss_that_is_not_finite_ends_training(
    loss: float, accumulation: int, batch: int, tmp_path: Path
) -> None:
    """One line names the step; the checkpoint before it is kept."""
    usual, calls = Trunc.Model.forward, [0]

    def broken(self: Any, **batch_: Any) -> Any:
        output = usual(self, **batch_)
        calls[0] += self.training
        output.loss = output.loss * (loss if calls[0] == batch else 1.0)
        return output

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trunc.Model, "forward", broken)
        message = rf"training: the loss is {loss} at step 3; lower train.learning_rate[^\n]*$"
        with refuses(message):
            fit(
                ArtifactCache(tmp_path),
                tiny_recipe(max_steps=6, eval_steps=2, accumulation=accumulation),
            )
    assert checkpoints(tmp_path) == ["checkpoint-2"]


def test_weights_that_are_not_finite_are_not_kept(tmp_path: Path) -> None:
    """Without a validation split, the weights after the last step are checked, too."""
    system = build_tiny("trunc")
    spoil = calling_after_step(1, lambda: system.model.lm_head.weight.data.fill_(math.nan))
    with spoil, refuses("training: a weight is nan at step 1; lower"):
        system.fit(fit_context(tmp_path, TRAIN, max_steps=1))
    assert not [path for path in tmp_path.glob("checkpoint/*") if path.suffix == ""]
