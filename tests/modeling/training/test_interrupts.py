"""Ctrl-C and SIGTERM in a training, and checkpoints by the clock: no step is lost, and the outcome is the same."""

import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from support.toys import TINY, heed_interrupts, tiny_overrides, tiny_recipe, write_jsonl
from support.trainings import TRAIN, files, fit, restless, weights

from longsumbench.api.config import Recipe
from longsumbench.api.system import FitContext
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.errors import UsageError
from longsumbench.interrupts import delayed_interrupts, sigterm_as_interrupt
from longsumbench.modeling.training import callbacks as training_callbacks
from longsumbench.modeling.training import trainer as training
from longsumbench.modeling.training.trainer import newest_checkpoint
from longsumbench.models.seal.system import Trunc

RECIPE = tiny_recipe(max_steps=14, eval_steps=6, accumulation=2, keep_best=2)  # five steps are an epoch of 40 rows
COUNTED = ("steps", "examples", "source_tokens", "target_tokens", "best_step", "validation_losses", "kept", "ended_by")
DURING = {  # what a training does → how often, but for what follows its last step
    "compute_loss": 24,
    "get_batch_samples": 14,
    "evaluate": 3,
    "_save_checkpoint": 3,
    "_save_rng_state": 3,
}


@pytest.fixture(autouse=True)
def heeded() -> Iterator[None]:
    """Let SIGINT and SIGTERM raise KeyboardInterrupt, as in the command, also where a shell lets SIGINT be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with sigterm_as_interrupt():
        yield
    signal.signal(signal.SIGINT, before)


def moments(size: int, seed: int) -> list[tuple[str, int, signal.Signals]]:
    """Return what a training does, which time, and the signal that comes then: seeded."""
    chance, kinds = random.Random(seed), list(DURING)
    names = [*kinds, *chance.choices(kinds, k=size)][:size]
    return [(name, chance.randint(1, DURING[name]), chance.choice([signal.SIGINT, signal.SIGTERM])) for name in names]


def sending(name: str, time_: int, sent: signal.Signals, times: int = 1) -> Callable[..., Any]:
    """Return a trainer's method that sends this process a signal before it does its work for the n-th time."""
    usual, calls = getattr(training.BudgetTrainer, name), [0]

    def send(self: Any, *args: Any, **others: Any) -> Any:
        calls[0] += 1
        if calls[0] == time_:
            for _ in range(times):
                signal.raise_signal(sent)
        return usual(self, *args, **others)

    return send


def break_off(store: ArtifactCache, method: Callable[..., Any], name: str, patch: pytest.MonkeyPatch) -> None:
    """Train until the trainer's method, put in the place of its own, interrupts that."""
    with patch.context() as patched:
        patched.setattr(training.BudgetTrainer, name, method)
        with pytest.raises(KeyboardInterrupt):
            fit(store, RECIPE)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The same training, left alone."""
    return fit(ArtifactCache(tmp_path_factory.mktemp("undisturbed")), RECIPE)


def check_continues(
    moment: tuple[str, int, signal.Signals], undisturbed: tuple[Any, Any], folder: Path, patch: pytest.MonkeyPatch
) -> None:
    """Interrupt a training at a moment, continue it, and compare it with the other one."""
    store = ArtifactCache(folder)
    break_off(store, sending(*moment), moment[0], patch)
    (trainer,) = folder.glob("checkpoint/*.partial/trainer")
    assert newest_checkpoint(trainer) is not None
    system, pieces = fit(store, RECIPE)
    assert [getattr(pieces, name) for name in COUNTED] == [getattr(undisturbed[1], name) for name in COUNTED]
    assert files(system.checkpoint) == files(undisturbed[0].checkpoint)


@pytest.mark.parametrize("moment", moments(6, seed=1), ids=str)
def test_an_interrupted_training_ends_with_the_same_bits(
    moment: tuple[str, int, signal.Signals],
    undisturbed: tuple[Any, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whenever a signal comes, a checkpoint is saved, and the same training continues to the same bits and counts."""
    check_continues(moment, undisturbed, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("moment", moments(60, seed=2)[len(DURING) :], ids=str)
def test_many_interrupted_trainings_end_with_the_same_bits(
    moment: tuple[str, int, signal.Signals],
    undisturbed: tuple[Any, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same at many more moments."""
    check_continues(moment, undisturbed, tmp_path, monkeypatch)


def test_no_step_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Interrupted in its third step, before any validation, a training is resumed behind that step, and says so."""
    store = ArtifactCache(tmp_path)
    break_off(store, sending("compute_loss", 5, signal.SIGINT), "compute_loss", monkeypatch)
    assert "saves a checkpoint after this step" in capfd.readouterr().err
    fit(store, RECIPE)
    assert "training: resumed at step 3\n" in capfd.readouterr().err


def test_a_second_interrupt_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second Ctrl-C in a step ends the training within it: nothing is saved."""
    twice = sending("compute_loss", 5, signal.SIGINT, times=2)
    break_off(ArtifactCache(tmp_path), twice, "compute_loss", monkeypatch)
    assert not list(tmp_path.glob("checkpoint/*.partial/trainer/checkpoint-*"))


def test_a_signal_is_delayed_and_not_lost() -> None:
    """One that comes inside is raised at the end; SIGTERM after SIGINT, as torchrun sends it, is no second one."""
    seen = []

    def work() -> None:
        with delayed_interrupts() as interrupted:
            seen.append(bool(interrupted))
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            seen.append(bool(interrupted))

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen == [False, True]
    assert signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGTERM) is signal.default_int_handler


def test_handlers_of_others_stay() -> None:
    """A SIGTERM handler that a launcher has set, as submitit does, is neither replaced nor delayed."""
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        with sigterm_as_interrupt(), delayed_interrupts() as interrupted:
            signal.raise_signal(signal.SIGTERM)
            assert (seen, bool(interrupted)) == ([signal.SIGTERM], False)
    finally:
        signal.signal(signal.SIGTERM, before)


BY_THE_CLOCK = {
    "keep_best": restless(keep_best=3),
    "average_weights": restless(average_weights=3, eval_steps=3),
    "patience": restless(patience=2, max_steps=60),
    "epochs": tiny_recipe(max_steps=14, eval_steps=4),
}


@pytest.mark.parametrize("recipe", BY_THE_CLOCK.values(), ids=BY_THE_CLOCK)
def test_saving_by_the_clock_changes_nothing(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a checkpoint at every step, training ends with the same weights as with those of validations alone."""
    without, whole = fit(ArtifactCache(tmp_path / "a"), recipe)
    monkeypatch.setattr(training_callbacks, "_SECONDS_BETWEEN_SAVES", 0.0)
    each, saved = fit(ArtifactCache(tmp_path / "b"), recipe)
    assert [getattr(saved, name) for name in COUNTED] == [getattr(whole, name) for name in COUNTED]
    assert files(each.checkpoint) == files(without.checkpoint)


def test_a_killed_training_continues_from_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in step 5, before any validation, it continues from step 4, to the same bits."""
    monkeypatch.setattr(training_callbacks, "_SECONDS_BETWEEN_SAVES", 0.0)
    other, _ = fit(ArtifactCache(tmp_path / "a"), RECIPE)

    def die(self: Any, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == 5:
            raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(training.ShowProgress, "on_step_end", die)
        with pytest.raises(ZeroDivisionError):
            fit(ArtifactCache(tmp_path / "b"), RECIPE)
    (trainer,) = tmp_path.glob("b/checkpoint/*.partial/trainer")
    assert Path(newest_checkpoint(trainer) or "").name == "checkpoint-4"
    resumed, _ = fit(ArtifactCache(tmp_path / "b"), RECIPE)
    assert all(torch.equal(value, weights(resumed)[name]) for name, value in weights(other).items())


@pytest.mark.parametrize("loss", [math.nan, math.inf])
@pytest.mark.parametrize(("accumulation", "batch"), [(1, 3), (2, 5)])  # of the five in an epoch, two a step
def test_a_loss_that_is_no_number_ends_training(
    loss: float, accumulation: int, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line names the step; the checkpoint before it is kept, and none of weights that learned from it is there."""
    usual, calls = training.BudgetTrainer.compute_loss, [0]

    def broken(self: Any, *args: Any, **others: Any) -> Any:
        calls[0] += 1
        return usual(self, *args, **others) * (loss if calls[0] == batch else 1.0)

    monkeypatch.setattr(training.BudgetTrainer, "compute_loss", broken)
    with pytest.raises(
        UsageError, match=rf"training: the loss is {loss} at step 3; lower train.learning_rate"
    ) as caught:
        fit(ArtifactCache(tmp_path), tiny_recipe(max_steps=6, eval_steps=2, accumulation=accumulation))
    assert "\n" not in str(caught.value)
    (saved,) = tmp_path.glob("checkpoint/*.partial/trainer/checkpoint-*")
    assert saved.name == "checkpoint-2"


def test_a_validation_loss_that_is_no_number_ends_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such weights are never the best: nothing is saved of them, those of `train.keep_best` included."""
    monkeypatch.setattr(training, "of_all", lambda sums: [(math.nan, 1.0)])
    with pytest.raises(UsageError, match="training: the validation loss is nan at step 2; lower"):
        fit(ArtifactCache(tmp_path), tiny_recipe(max_steps=6, eval_steps=2, keep_best=2))
    assert not list(tmp_path.glob("checkpoint/*.partial/trainer/*"))


def test_weights_that_are_no_numbers_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a validation, what the last step made of the weights is checked, too."""

    def spoil(self: Any, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        next(model.parameters()).data[0, 0] = math.nan

    monkeypatch.setattr(training.ShowProgress, "on_step_end", spoil)
    with pytest.raises(UsageError, match="training: a weight is nan at step 1; lower"):
        Trunc(Trunc.Config(**TINY)).fit(FitContext(TRAIN, None, tiny_recipe(max_steps=1), ArtifactCache(tmp_path)))
    assert not [path for path in tmp_path.glob("checkpoint/*") if path.suffix == ""]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_a_killed_command_writes_the_same(number: int, tmp_path: Path) -> None:
    """SIGINT or SIGTERM at a random time ends the command with 130; the same one then writes the same predictions."""
    chance = random.Random(number)
    folder = write_jsonl(tmp_path / "toy", train=21)
    words = ["run", *tiny_overrides(folder, steps=60), "train.eval_steps=50", "baselines=false"]

    def command(name: str) -> dict[str, Any]:
        own = {"LONGSUMBENCH_CACHE": str(tmp_path / name / "cache"), "OMP_NUM_THREADS": "1"}
        line = [sys.executable, "-m", "longsumbench", *words, f"results_dir={tmp_path / name / 'results'}"]
        return {"args": line, "env": {**os.environ, **own}, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

    process = subprocess.Popen(**command("killed"), preexec_fn=heed_interrupts)
    while not list(tmp_path.glob("killed/cache/checkpoint/*.partial/inputs.json")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    time.sleep(chance.uniform(0.2, 3.0))
    process.send_signal(chance.choice([signal.SIGINT, signal.SIGTERM]))
    _, error = process.communicate(timeout=300)
    assert process.returncode in (0, 130), error
    assert b"Traceback" not in error
    for name in ("killed", "undisturbed"):
        subprocess.run(**command(name), check=True)
    one, other = (tmp_path / name / "results" for name in ("killed", "undisturbed"))
    (written,), (expected,) = (list(each.glob("runs/*/*/*/predictions.jsonl")) for each in (one, other))
    assert written.read_bytes() == expected.read_bytes()
