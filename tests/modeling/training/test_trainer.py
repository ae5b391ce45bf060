import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.toys import TINY, ToySplit, tiny_recipe
from support.trainings import TRAIN, VALIDATION, fit, training_batch, weights
from transformers import TrainerCallback

from longsumbench.api.config import Recipe
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.modeling.neural_system import read_report
from longsumbench.modeling.training import trainer as training
from longsumbench.modeling.training.batch_plan import WordBatches
from longsumbench.modeling.training.trainer import EpochSampler, learning_rate, newest_checkpoint
from longsumbench.models.seal.system import Trunc


def test_hand_worked_schedules() -> None:
    """Rates at chosen steps, from the papers' formulas by hand."""
    pagesum = learning_rate(Recipe(schedule="pagesum", learning_rate=2e-3, warmup_steps=10_000), 1024)
    assert pagesum(10_000) == pytest.approx(2e-3 * 10_000**-0.5) == pytest.approx(2e-5)
    assert pagesum(100) == pytest.approx(2e-3 * 100 * 1e-6)
    noam = learning_rate(Recipe(schedule="noam", learning_rate=2.0, warmup_steps=8000), 512)
    assert noam(8000) == pytest.approx(2 / math.sqrt(512) / math.sqrt(8000))
    assert noam(32_000) == pytest.approx(noam(8000) / 2)
    root = learning_rate(Recipe(schedule="sqrt_decay", learning_rate=0.01, warmup_steps=10_000), 1)
    assert (root(1), root(10_000), root(40_000)) == pytest.approx((0.01, 0.01, 0.005))
    linear = learning_rate(Recipe(schedule="linear", learning_rate=1.0, warmup_steps=10, max_steps=110), 1)
    assert (linear(5), linear(10), linear(60), linear(110)) == pytest.approx((0.5, 1.0, 0.5, 0.0))
    hold = learning_rate(Recipe(schedule="hold", learning_rate=2.0, warmup_steps=10, max_steps=200), 1)
    assert (hold(5), hold(10), hold(100), hold(150), hold(200)) == pytest.approx((1.0, 2.0, 2.0, 1.0, 0.0))


def test_the_schedule_reaches_the_optimizer(stages: ArtifactCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step n of the training uses the schedule's rate at n, counted from 1."""
    used: list[float] = []

    class Watch(TrainerCallback):
        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, optimizer: Any = None, **_: Any) -> None:
            used.append(optimizer.param_groups[0]["lr"])

    original = training.ShowProgress
    monkeypatch.setattr(training, "ShowProgress", lambda progress: _with(original(progress), Watch()))
    recipe = tiny_recipe(max_steps=5)
    fit(stages, recipe)
    rate = learning_rate(recipe, TINY["d_model"])
    assert used == pytest.approx([rate(step) for step in range(1, 6)])


def _with(shown: TrainerCallback, watch: TrainerCallback) -> TrainerCallback:
    shown.on_pre_optimizer_step = watch.on_pre_optimizer_step
    return shown


def test_the_loss_falls(stages: ArtifactCache) -> None:
    """Some steps on copying the first sentence lower the loss clearly."""
    _, report = fit(stages, tiny_recipe(max_steps=60, eval_steps=20))
    assert report.first_loss is not None
    assert report.last_loss is not None
    assert report.last_loss < 0.6 * report.first_loss


@pytest.mark.parametrize("optimizer", ["adam", "adafactor", "adagrad"])
def test_same_seed_same_weights(tmp_path: Path, optimizer: str) -> None:
    """Two trainings with the same settings give the same bits; another seed gives others."""
    one, two, other = (
        weights(fit(ArtifactCache(tmp_path / name), tiny_recipe(optimizer=optimizer, seed=seed))[0])
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


BY_TOKENS = {"batch_tokens": 120, "accumulation": 2, "max_steps": 14, "eval_steps": 2}
UNLOCKING = {"unlock": 0.6, "batch_words": 120, "accumulation": 2, "max_steps": 14, "eval_steps": 2}


@pytest.mark.parametrize("killed_at", [3, 6, 11])
@pytest.mark.parametrize(
    "recipe",
    [tiny_recipe(max_steps=14, eval_steps=2), tiny_recipe(**UNLOCKING), tiny_recipe(**BY_TOKENS)],
    ids=["epochs", "unlocking", "tokens"],
)
def test_a_resumed_training_ends_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: Recipe, killed_at: int
) -> None:
    """Broken off within an epoch or in a later one and started again, training ends as if undisturbed."""
    undisturbed, whole = fit(ArtifactCache(tmp_path / "a"), recipe)

    def die(self: Any, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == killed_at:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(training.ShowProgress, "on_step_end", die)
        with pytest.raises(KeyboardInterrupt):
            fit(ArtifactCache(tmp_path / "b"), recipe)
    resumed, pieces = fit(ArtifactCache(tmp_path / "b"), recipe)
    assert all(torch.equal(value, weights(resumed)[name]) for name, value in weights(undisturbed).items())
    counted = ("steps", "examples", "source_tokens", "target_tokens", "best_step", "validation_loss")
    assert [getattr(whole, name) for name in counted] == [getattr(pieces, name) for name in counted]
    assert whole.validation_losses == pieces.validation_losses
    assert [step for step, _ in whole.validation_losses] == list(range(2, 15, 2))
    assert dict(whole.validation_losses)[whole.best_step] == whole.validation_loss


KILLED_LATE = {
    "max_steps": tiny_recipe(max_steps=14, eval_steps=2),
    "end of an epoch": tiny_recipe(max_steps=15, eval_steps=5),
    "max_tokens": tiny_recipe(max_steps=500, max_tokens=2_000),
    "patience": tiny_recipe(max_steps=80, eval_steps=2, learning_rate=0.3, schedule="constant", patience=2),
    "max_steps, unlocking": tiny_recipe(**UNLOCKING),
    "max_tokens, unlocking": tiny_recipe(**{**UNLOCKING, "max_steps": 500}, max_tokens=2_000),
}


@pytest.mark.parametrize("recipe", KILLED_LATE.values(), ids=KILLED_LATE)
def test_killed_behind_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: Recipe) -> None:
    """A training that had ended when it was killed is not trained further: same bits, same counts, same end."""
    undisturbed, whole = fit(ArtifactCache(tmp_path / "a"), recipe)
    with monkeypatch.context() as patched:
        patched.setattr(training, "_report", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fit(ArtifactCache(tmp_path / "b"), recipe)
    resumed, pieces = fit(ArtifactCache(tmp_path / "b"), recipe)
    assert all(torch.equal(value, weights(resumed)[name]) for name, value in weights(undisturbed).items())
    counted = ("steps", "examples", "source_tokens", "target_tokens", "best_step", "validation_loss", "ended_by")
    assert [getattr(whole, name) for name in counted] == [getattr(pieces, name) for name in counted]


def test_a_torn_report_is_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk while the report is written leaves none, and the next run finishes the stage."""
    import errno

    from longsumbench.modeling import neural_system as neural

    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = ArtifactCache(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(neural, "write_atomically", full)
        with pytest.raises(OSError, match="No space"):
            fit(store, tiny_recipe(max_steps=2))
    _, report = fit(store, tiny_recipe(max_steps=2))
    assert report.steps == 2


def test_counts_by_hand(stages: ArtifactCache) -> None:
    """Six steps of two passes of four: 48 examples; tokens are the rows' own, padding not counted."""
    train = ToySplit.of("train", 8)
    system, report = fit(stages, tiny_recipe(max_steps=6, batch_size=4, accumulation=2), train=train)
    assert (report.steps, report.examples, report.ended_by) == (6, 48, "max_steps")
    rows = [system.row(example) for example in train]
    assert report.source_tokens == 6 * sum(row["length"] for row in rows)
    assert report.target_tokens == 6 * sum(len(row["labels"]) for row in rows)


def test_every_system_learns_from_the_same_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches go by the source's words: a system that reads less of it sees the same examples at the same steps."""
    recipe = tiny_recipe(**UNLOCKING)
    targets: list[list[Any]] = []
    count = training.Budget.count

    def watch(self: training.Budget, batch: dict[str, torch.Tensor]) -> None:
        targets[-1].append(batch["labels"].tolist())
        count(self, batch)

    monkeypatch.setattr(training.Budget, "count", watch)
    sizes = []
    for name, input_length in (("all", 48), ("little", 8)):
        targets.append([])
        _, report = fit(ArtifactCache(tmp_path / name), recipe, input_length=input_length)
        sizes.append((report.examples, report.source_tokens))
    batches = list(WordBatches(TRAIN.source_words, recipe))
    assert targets[0] == targets[1]
    assert [len(labels) for labels in targets[0]] == [len(batch) for batch in batches]
    assert sizes[0][0] == sizes[1][0] == sum(map(len, batches))
    assert sizes[0][1] > 2 * sizes[1][1]


def test_accumulation_weighs_every_token_the_same(tmp_path: Path) -> None:
    """One pass of eight and four passes of two are the same step, whatever the targets' lengths.

    With Adam's ε at 1 a step is proportional to the gradient, so the weights compare as gradients do.
    """
    same = {"max_steps": 2, "adam_epsilon": 1.0, "learning_rate": 0.1}
    train = [replace(one, references=((one.references[0][0][: 8 + 5 * (i % 4)],),)) for i, one in enumerate(TRAIN)]
    split = ToySplit("train", train)
    once = weights(fit(ArtifactCache(tmp_path / "a"), tiny_recipe(batch_size=8, **same), split, dropout=0.0)[0])
    recipe = tiny_recipe(batch_size=2, accumulation=4, **same)
    parts = weights(fit(ArtifactCache(tmp_path / "b"), recipe, split, dropout=0.0)[0])
    for name, value in once.items():
        torch.testing.assert_close(parts[name], value, rtol=1e-4, atol=1e-5)


def test_the_validation_loss_is_the_mean_over_all_target_tokens(stages: ArtifactCache) -> None:
    """Equals the summed loss of examples taken one by one, divided by their tokens; no smoothing, no dropout."""
    system, report = fit(stages, tiny_recipe(max_steps=2, eval_steps=2, label_smoothing=0.1, batch_size=4))
    system.model.eval()
    sums = tokens = 0.0
    for example in VALIDATION:
        batch = training_batch(system, example)
        sums += float(system.model(**batch, num_items_in_batch=1).loss.detach())
        tokens += int(batch["labels"].ne(-100).sum())
    assert report.validation_loss == pytest.approx(sums / tokens, rel=1e-5)


def test_the_best_weights_are_kept(stages: ArtifactCache) -> None:
    """A rate so high that training gets worse: the weights of the lowest validation loss come back, not the last."""
    recipe = tiny_recipe(max_steps=24, eval_steps=2, learning_rate=3.0, schedule="constant", warmup_steps=24)
    system, report = fit(stages, recipe)
    assert report.best_step < report.steps
    system.model.eval()
    batches = [training_batch(system, example) for example in VALIDATION]
    sums = sum(float(system.model(**batch, num_items_in_batch=1).loss.detach()) for batch in batches)
    tokens = sum(int(batch["labels"].ne(-100).sum()) for batch in batches)
    assert sums / tokens == pytest.approx(report.validation_loss, rel=1e-5)


def test_token_and_minute_budgets_end_training(tmp_path: Path) -> None:
    """Whichever budget comes first ends it, and the report says which."""
    _, tokens = fit(ArtifactCache(tmp_path / "a"), tiny_recipe(max_steps=500, max_tokens=2_000))
    assert tokens.ended_by == "max_tokens"
    assert tokens.source_tokens + tokens.target_tokens >= 2_000
    assert tokens.steps < 20
    _, minutes = fit(ArtifactCache(tmp_path / "b"), tiny_recipe(max_steps=100_000, max_minutes=1 / 60))
    assert minutes.ended_by == "max_minutes"
    assert minutes.steps < 5_000


def test_patience_ends_training(stages: ArtifactCache) -> None:
    """Validations that do not get better end it."""
    recipe = tiny_recipe(max_steps=80, eval_steps=2, learning_rate=0.3, schedule="constant", patience=2)
    _, report = fit(stages, recipe)
    assert report.ended_by == "patience"
    assert report.steps < 80


def test_no_steps_is_no_training(stages: ArtifactCache) -> None:
    """max_steps=0 keeps the initial weights, which is how a checkpoint is scored as it is."""
    _, report = fit(stages, tiny_recipe(max_steps=0))
    assert (report.steps, report.ended_by) == (0, "max_steps")
    assert report.parameters > 0


def test_without_validation_the_last_weights_are_used(stages: ArtifactCache) -> None:
    """No validation split: no validation loss, and the best step is the last."""
    system = Trunc(Trunc.Config(**TINY))
    report = system.fit(TRAIN, None, tiny_recipe(max_steps=5), stages.root, stages)
    assert (report.validation_loss, report.best_step) == (None, 5)


def test_the_newest_whole_checkpoint_is_chosen(tmp_path: Path) -> None:
    """A checkpoint whose state is missing or torn was killed while being saved, and is passed over."""
    for step, state in ((2, "{}"), (10, json.dumps({"global_step": 10})), (12, '{"global'), (14, None)):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        if state is not None:
            (folder / "trainer_state.json").write_text(state)
    assert newest_checkpoint(tmp_path) == str(tmp_path / "checkpoint-10")
    assert newest_checkpoint(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("files", "message"), [(["rng_state.pth"], ""), (["rng_state_0.pth", "rng_state_1.pth"], "2 started")]
)
def test_a_changed_number_of_processes_is_printed(
    files: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One process that continues a training of two prints a note."""
    (checkpoint := tmp_path / "checkpoint-4").mkdir()
    for name in ("trainer_state.json", *files):
        (checkpoint / name).write_text("{}", encoding="utf-8")
    assert training.found_checkpoint(tmp_path) == str(checkpoint)
    printed = capsys.readouterr().err
    assert message in printed
    assert bool(message) == bool(printed)


def test_an_epoch_is_a_permutation_that_seed_and_epoch_decide() -> None:
    """Every row once an epoch, another order each epoch, the same one again when asked again."""
    sampler = EpochSampler(4, lengths=list(range(30)), seed=3)
    orders = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
    assert sorted(orders[0]) == list(range(30))
    assert orders[0] == orders[2] != orders[1]


def test_a_finished_training_is_found(stages: ArtifactCache) -> None:
    """The same training again is not done again: the report and the weights come from the stage."""
    first, report = fit(stages, tiny_recipe(max_steps=3))
    folder = stages.used["checkpoint"]
    before = (folder / "model.safetensors").stat().st_mtime_ns
    second, again = fit(stages, tiny_recipe(max_steps=3))
    assert again == report == read_report(folder)
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    assert all(torch.equal(value, weights(second)[name]) for name, value in weights(first).items())
    assert not (folder / "trainer").exists()


def test_targets_that_are_cut_are_counted(stages: ArtifactCache) -> None:
    """With room for three tokens and the end, every longer target is cut, and the ledger balances."""
    _, report = fit(stages, tiny_recipe(max_steps=1), decode_length=4)
    assert report.targets is not None
    assert report.targets_cut == len(TRAIN)
    assert report.targets.tokens_seen == 3 * len(TRAIN)
    assert [cut.cause for cut in report.targets.cuts] == ["decode_length"]


def test_gradient_checkpointing_changes_nothing(tmp_path: Path) -> None:
    """It saves memory, not accuracy."""
    plain = weights(fit(ArtifactCache(tmp_path / "a"), tiny_recipe(max_steps=2), dropout=0.0)[0])
    recipe = tiny_recipe(max_steps=2, gradient_checkpointing=True)
    saved = weights(fit(ArtifactCache(tmp_path / "b"), recipe, dropout=0.0)[0])
    for name, value in plain.items():
        torch.testing.assert_close(saved[name], value, rtol=1e-5, atol=1e-6)


def test_bfloat16_when_asked(stages: ArtifactCache) -> None:
    """train.bf16=true computes in bfloat16, and the report says so."""
    _, report = fit(stages, tiny_recipe(max_steps=2, bf16=True))
    assert report.precision == "bfloat16"
    assert report.last_loss is not None
    assert math.isfinite(report.last_loss)
