"""The memory of a training step, counted without numbers."""

import weakref
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from longsumbench.core import Recipe, registry
from longsumbench.modeling.flops import count_step, count_training, made_batch
from longsumbench.modeling.training.optimization import build_optimizer, make_dense, recompute_activations

SIZES = {"vocabulary_size": 300, "d_model": 64, "d_ff": 128, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 2}
SYSTEMS: dict[str, dict[str, Any]] = {  # name → settings
    "seal": {**SIZES, "snippet_length": 64, "num_snippets": 12, "extractive_length": 128, "segment_length": 32},
    "pagesum": {**SIZES, "init": "random", "num_pages": 3, "page_size": 256},
    "etads": {**SIZES, "input_length": 300},
    "hierarchical_transformer": {**SIZES, "input_length": 900},
    "tdmca": {**{name: SIZES[name] for name in ("vocabulary_size", "d_model", "d_ff", "num_heads")}, "num_layers": 2},
}


class Layers(nn.Module):
    """Two linear layers with a ReLU between them, as a network that returns a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(128, 128, bias=False), nn.Linear(128, 128, bias=False)

    def forward(self, states: Tensor) -> Any:
        """Return the sum of the outputs: [N, 128] → a scalar."""
        return SimpleNamespace(loss=self.second(self.first(states).relu()).sum())


def test_hand_worked_peak() -> None:
    """64 rows of width 128, Adagrad, accumulated gradients: weights, gradients and sums, and the most of a pass.

    That is when the second layer's gradients are computed: the ReLU's output is there, its gradient is as large, and
    the gradient of the weights is not yet added. Scalars take 512 bytes each: a few.
    """
    model: Any = Layers()
    peak = count_step(model, model, {"states": torch.ones(64, 128)}, Recipe(optimizer="adagrad"), "cpu", bf16=False)
    weight, states = 4 * 128 * 128, 4 * 64 * 128
    assert peak == pytest.approx(3 * 2 * weight + 2 * states + weight, abs=8 * 512)
    assert model.first.weight.grad is None


class LiveTensors(TorchDispatchMode):
    """Counts the bytes of the tensors that a real run has at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[int, tuple[object, int]] = {}
        self.now = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in (leaf for leaf in tree_iter(result) if isinstance(leaf, Tensor)):
            parts = [tensor._indices(), tensor._values()] if tensor.is_sparse else [tensor]
            for storage in (part.untyped_storage() for part in parts):
                self.add(storage)
        return result

    def add(self, storage: torch.UntypedStorage) -> None:
        """Count a storage until it is freed."""
        if (key := storage._cdata) not in self.sizes:
            size = -(-storage.nbytes() // 512) * 512  # as in the count
            self.sizes[key] = weakref.ref(storage, lambda _: self.free(key)), size
            self.now += size
            self.peak = max(self.peak, self.now)

    def free(self, key: int) -> None:
        """Forget a storage."""
        self.now -= self.sizes.pop(key)[1]


def measured(system: Any, batch: Mapping[str, Any], recipe: Recipe) -> int:
    """Return the most bytes of tensors in the second step of a real training."""
    with LiveTensors() as tensors:
        model = system.builder.blank_model((0, 1, 2)).train()
        if recipe.gradient_checkpointing:
            recompute_activations(model)
        optimizer = build_optimizer(model, recipe)
        for _ in range(2):
            tensors.peak = 0
            model(**batch).loss.backward()
            make_dense(model.parameters())
            optimizer.step()
            model.zero_grad()
    return tensors.peak


@pytest.mark.parametrize("optimizer", ["adam", "adafactor"])
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_peak_is_that_of_a_real_step(name: str, checkpointing: bool, optimizer: Any) -> None:
    """Counted without numbers, it is that of the tensors of a step with numbers on a CPU."""
    config = registry.config_of(name)(name=name, **SYSTEMS[name])
    recipe = Recipe(optimizer=optimizer, gradient_checkpointing=checkpointing, accumulation=1)
    system, batch = made_batch(config, 4, 900, 60)
    counted = count_training(*made_batch(config, 4, 900, 60), recipe, "cpu", bf16=False)
    assert counted == pytest.approx(measured(system, batch, recipe), rel=0.03)


def seal_peak(texts: int, device: str = "cpu", bf16: bool = False, **recipe: Any) -> int:
    """Return the counted peak of SEAL."""
    made = made_batch(registry.config_of("seal")(name="seal", **SYSTEMS["seal"]), texts, 900, 60)
    return count_training(*made, Recipe(**recipe), device, bf16)


def test_what_grows_with_the_batch_doubles_with_it() -> None:
    """Four texts need twice as much more than two as two need more than one; recomputing and bfloat16 need less."""
    one, two, four = (seal_peak(texts) for texts in (1, 2, 4))
    assert four - two == pytest.approx(2 * (two - one), rel=0.1)
    assert seal_peak(4, gradient_checkpointing=True) < four
    assert seal_peak(4, "cuda", bf16=True) < seal_peak(4, "cuda")
    assert seal_peak(4, optimizer="adam") > four
