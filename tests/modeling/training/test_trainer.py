import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.toys import TINY, ToySplit, tiny_recipe
from support.trainings import TRAIN, fit, mean_validation_loss, weights
from transformers import PreTrainedModel

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import FitContext, FitReport, Recipe
from longsumbench.files import read_json
from longsumbench.modeling.nn.unit_encoder import PIECE_TOKENS
from longsumbench.modeling.training import trainer
from longsumbench.modeling.training.optimization import learning_rate, recompute_activations
from longsumbench.models.seal.system import Trunc
from longsumbench.runs.environment import environment, peak_memory_gb, reset_peak_memory


def test_hand_worked_schedules() -> None:
    """Rates at chosen steps, from the papers' formulas by hand."""
    pagesum = learning_rate(
        Recipe(schedule="pagesum", learning_rate=2e-3, warmup_steps=10_000), 1024
    )
    assert pagesum(10_000) == pytest.approx(2e-3 * 10_000**-0.5) == pytest.approx(2e-5)
    assert pagesum(100) == pytest.approx(2e-3 * 100 * 1e-6)
    noam = learning_rate(Recipe(schedule="noam", learning_rate=2.0, warmup_steps=8000), 512)
    assert noam(8000) == pytest.approx(2 / math.sqrt(512) / math.sqrt(8000))
    assert noam(32_000) == pytest.approx(noam(8000) / 2)
    root = learning_rate(Recipe(schedule="sqrt_decay", learning_rate=0.01, warmup_steps=10_000), 1)
    assert (root(1), root(10_000), root(40_000)) == pytest.approx((0.01, 0.01, 0.005))
    linear = learning_rate(
        Recipe(schedule="linear", learning_rate=1.0, warmup_steps=10, max_steps=110), 1
    )
    assert (linear(5), linear(10), linear(60), linear(110)) == pytest.approx((0.5, 1.0, 0.5, 0.0))
    hold = learning_rate(
        Recipe(schedule="hold", learning_rate=2.0, warmup_steps=10, max_steps=200), 1
    )
    assert (hold(5), hold(10), hold(100), hold(150), hold(200)) == pytest.approx(
        (1.0, 2.0, 2.0, 1.0, 0.0)
    )


def test_counts_by_hand(stages: ArtifactCache) -> None:
    """Six steps of two passes of four: 48 examples; tokens are the rows' own, padding not counted."""
    train = ToySplit.of("train", 8)
    system, report = fit(
        stages, tiny_recipe(max_steps=6, batch_size=4, accumulation=2), train=train
    )
    assert (report.steps, report.examples, report.ended_by) == (6, 48, "max_steps")
    rows = [system.reader.row(example) for example in train]
    assert report.source_tokens == 6 * sum(row["length"] for row in rows)
    assert report.target_tokens == 6 * sum(len(row["labels"]) for row in rows)


def test_accumulation_weighs_every_token_the_same(tmp_path: Path) -> None:
    """One pass of eight and four passes of two are the same step, with any targets' lengths.

    With Adam's ε at 1 a step is proportional to the gradient, so the weights compare as gradients do.
    """
    same = {"max_steps": 2, "adam_epsilon": 1.0, "learning_rate": 0.1}
    train = [
        replace(one, references=((one.references[0][0][: 8 + 5 * (i % 4)],),))
        for i, one in enumerate(TRAIN)
    ]
    split = ToySplit("train", train)
    once = weights(
        fit(ArtifactCache(tmp_path / "a"), tiny_recipe(batch_size=8, **same), split, dropout=0.0)[0]
    )
    recipe = tiny_recipe(batch_size=2, accumulation=4, **same)
    parts = weights(fit(ArtifactCache(tmp_path / "b"), recipe, split, dropout=0.0)[0])
    for name, value in once.items():
        torch.testing.assert_close(parts[name], value, rtol=1e-4, atol=1e-5)


def test_the_validation_loss_is_the_mean_over_all_target_tokens(stages: ArtifactCache) -> None:
    """Equals the summed loss of examples taken one by one, divided by their tokens; no smoothing, no dropout."""
    system, report = fit(
        stages, tiny_recipe(max_steps=2, eval_steps=2, label_smoothing=0.1, batch_size=4)
    )
    assert report.validation_loss == pytest.approx(mean_validation_loss(system), rel=1e-5)


def test_the_best_weights_are_kept(stages: ArtifactCache) -> None:
    """A rate so high that training gets worse: the weights of the lowest validation loss come back, not the last."""
    recipe = tiny_recipe(
        max_steps=24, eval_steps=2, learning_rate=3.0, schedule="constant", warmup_steps=24
    )
    system, report = fit(stages, recipe)
    assert report.best_step < report.steps
    assert report.validation_loss == pytest.approx(mean_validation_loss(system), rel=1e-5)


def test_token_and_minute_budgets_end_training(tmp_path: Path) -> None:
    """Whichever budget comes first ends it, and the report says which."""
    _, tokens = fit(ArtifactCache(tmp_path / "a"), tiny_recipe(max_steps=500, max_tokens=2_000))
    assert tokens.ended_by == "max_tokens"
    assert tokens.source_tokens + tokens.target_tokens >= 2_000
    assert tokens.steps < 20
    _, minutes = fit(
        ArtifactCache(tmp_path / "b"), tiny_recipe(max_steps=100_000, max_minutes=1 / 60)
    )
    assert minutes.ended_by == "max_minutes"
    assert minutes.steps < 5_000


def test_patience_ends_training(stages: ArtifactCache) -> None:
    """Validations that do not get better end it."""
    recipe = tiny_recipe(
        max_steps=80, eval_steps=2, learning_rate=0.3, schedule="constant", patience=2
    )
    _, report = fit(stages, recipe)
    assert report.ended_by == "patience"
    assert report.steps < 80


def test_without_validation_the_last_weights_are_used(stages: ArtifactCache) -> None:
    """No validation split: no validation loss, and the best step is the last."""
    system = Trunc(Trunc.Config(**TINY))
    report = system.fit(FitContext(TRAIN, None, tiny_recipe(max_steps=5), stages))
    assert (report.validation_loss, report.best_step) == (None, 5)


def test_a_finished_training_is_found(stages: ArtifactCache) -> None:
    """The same training again is not done again: the report and the weights come from the stage."""
    first, report = fit(stages, tiny_recipe(max_steps=3))
    folder = stages.folders["checkpoint"]
    before = (folder / "model.safetensors").stat().st_mtime_ns
    second, again = fit(stages, tiny_recipe(max_steps=3))
    assert again == report == read_json(folder / "fit.json", FitReport)
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


def test_gradient_checkpointing_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Activations are computed again if asked; the weights are those of a training that keeps them."""
    recomputed: list[torch.nn.Module] = []

    def recompute(model: PreTrainedModel) -> None:
        recompute_activations(model)
        recomputed.extend(
            module for module in model.modules() if getattr(module, "gradient_checkpointing", False)
        )

    monkeypatch.setattr(trainer, "recompute_activations", recompute)
    plain = weights(fit(ArtifactCache(tmp_path / "a"), tiny_recipe(max_steps=2), dropout=0.0)[0])
    recipe = tiny_recipe(max_steps=2, gradient_checkpointing=True)
    assert not recomputed
    saved = weights(fit(ArtifactCache(tmp_path / "b"), recipe, dropout=0.0)[0])
    assert recomputed
    for name, value in plain.items():
        torch.testing.assert_close(saved[name], value, rtol=1e-5, atol=1e-6)


def test_bfloat16_when_asked(stages: ArtifactCache) -> None:
    """train.bf16=true computes in bfloat16, on a CPU too; losses have its precision, and the report says so."""
    (_, half), (_, single) = (
        fit(stages, tiny_recipe(max_steps=2, bf16=bf16), dropout=0.0) for bf16 in (True, False)
    )
    assert (half.precision, single.precision) == ("bfloat16", "float32")
    assert half.last_loss != single.last_loss
    assert half.last_loss == pytest.approx(single.last_loss, rel=2**-8)


def test_on_a_cpu_no_gpu_is_touched(stages: ArtifactCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """With device=cpu a machine's GPU is not opened: for checkpoints, random states, peak memory, the environment."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: pytest.fail("a CUDA context"))
    reset_peak_memory()
    fit(stages, tiny_recipe(max_steps=2, device="cpu"))
    assert peak_memory_gb() > 0
    facts = environment(["cpu", "cpu"])
    assert (facts.gpu, facts.piece_tokens) == (None, PIECE_TOKENS)
    with pytest.raises(pytest.fail.Exception, match="a CUDA context"):
        environment(["cpu", "auto"])
