from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.toys import ToySplit, tiny_recipe
from support.trainings import TRAIN, fit, restless, weights
from transformers import PreTrainedModel

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import TrainConfig
from longsumbench.modeling.nn.unit_encoder import PIECE_TOKENS
from longsumbench.modeling.training import trainer
from longsumbench.modeling.training.trainer import learning_rate, recompute_activations
from longsumbench.runs.environment import environment, peak_memory_gb, reset_peak_memory


@pytest.mark.parametrize(
    ("schedule", "rate", "width", "expected"),
    [
        ("pagesum", 2.0, 1, {10: 2 * 10**-0.5, 1: 2 * 10**-1.5}),
        ("noam", 2.0, 4, {10: 10**-0.5, 40: 40**-0.5}),
        ("sqrt_decay", 0.01, 1, {1: 0.01, 10: 0.01, 40: 0.005}),
        ("linear", 1.0, 1, {5: 0.5, 10: 1.0, 60: 0.5, 110: 0.0}),
        ("hold", 2.0, 1, {5: 1.0, 10: 2.0, 55: 2.0, 82.5: 1.0, 110: 0.0}),
    ],
)
def test_hand_worked_schedules(
    schedule: str, rate: float, width: int, expected: dict[int, float]
) -> None:
    """Rates at chosen steps of 110, with 10 warm-up steps, from the papers' formulas by hand."""
    recipe = TrainConfig(schedule=schedule, learning_rate=rate, warmup_steps=10, max_steps=110)
    rates = {step: learning_rate(recipe, width)(step) for step in expected}
    assert rates == pytest.approx(expected)


@pytest.mark.parametrize(
    "schedule", ["pagesum", "noam", "sqrt_decay", "linear", "hold", "constant"]
)
def test_a_single_step_trains(schedule: str) -> None:
    """Its rate is above 0, with any warm-up."""
    for warmup in (0, 1, 10):
        recipe = TrainConfig(schedule=schedule, warmup_steps=warmup, max_steps=1)
        assert learning_rate(recipe, 64)(1) > 0


def test_counts_by_hand(cache: ArtifactCache) -> None:
    """Six steps of two passes of four: 48 examples; tokens are the rows' own, padding not counted."""
    train = ToySplit.of("train", 8)
    system, report = fit(cache, tiny_recipe(max_steps=6, batch_size=4, accumulation=2), train=train)
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


def test_budgets_and_patience_end_training(tmp_path: Path) -> None:
    """Whichever budget comes first ends it, or validations that do not get better, and the report says which."""
    _, tokens = fit(ArtifactCache(tmp_path / "a"), tiny_recipe(max_steps=500, max_tokens=2_000))
    assert tokens.ended_by == "max_tokens"
    assert tokens.source_tokens + tokens.target_tokens >= 2_000
    assert tokens.steps < 20
    _, minutes = fit(
        ArtifactCache(tmp_path / "b"), tiny_recipe(max_steps=100_000, max_minutes=1 / 600)
    )
    assert minutes.ended_by == "max_minutes"
    assert minutes.steps < 5_000
    _, patient = fit(ArtifactCache(tmp_path / "c"), restless(patience=2, max_steps=80))
    assert patient.ended_by == "patience"
    assert patient.steps < 80


def test_targets_that_are_cut_are_counted(cache: ArtifactCache) -> None:
    """With room for three tokens and the end, every longer target is cut, and the ledger balances."""
    _, report = fit(cache, tiny_recipe(max_steps=1), decode_length=4)
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


def test_bfloat16_when_asked(cache: ArtifactCache) -> None:
    """train.bf16=true computes in bfloat16, on a CPU too; losses have its precision, and the report says so."""
    (_, half), (_, single) = (
        fit(cache, tiny_recipe(max_steps=2, bf16=bf16), dropout=0.0) for bf16 in (True, False)
    )
    assert (half.precision, single.precision) == ("bfloat16", "float32")
    assert half.last_loss != single.last_loss
    assert half.last_loss == pytest.approx(single.last_loss, rel=2**-8)


def test_on_a_cpu_no_gpu_is_touched(cache: ArtifactCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """With device=cpu a machine's GPU is not opened: for checkpoints, random states, peak memory, the environment."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: pytest.fail("a CUDA context"))
    reset_peak_memory()
    fit(cache, tiny_recipe(max_steps=2, device="cpu"))
    assert peak_memory_gb() > 0
    facts = environment(["cpu", "cpu"])
    assert (facts.gpu, facts.piece_tokens) == (None, PIECE_TOKENS)
    with pytest.raises(pytest.fail.Exception, match="a CUDA context"):
        environment(["cpu", "auto"])
