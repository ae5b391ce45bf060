"""The whole network: what must not matter, what must, and how it writes."""

from typing import Any

import pytest
import torch
from support.hierarchical_networks import batch, network
from torch import Tensor
from torch.testing import assert_close

from longsumbench.modeling.nn.transformer_layer import sinusoid
from longsumbench.models.hierarchical_transformer.model import (
    HierarchicalTransformerForConditionalGeneration,
    HierarchicalTransformerModelConfig,
    smoothed_as_released,
)

pytestmark = pytest.mark.usefixtures("float64")


def memory(model: Any, given: dict[str, Tensor]) -> Tensor:
    """Return the states of all tokens of the first example."""
    states: Tensor = model.model.encoder(**given).last_hidden_state[0]
    return states


def test_a_rank_keeps_its_number() -> None:
    """With an absent one before it, a paragraph has the position of its rank; without PP its place does not matter."""
    first, second = batch([4, 0]), batch([0, 4])
    second["input_ids"][0, 1] = first["input_ids"][0, 0]
    model, without = network(), network(paragraph_positions=False)
    assert not torch.allclose(memory(model, first), memory(model, second), atol=1e-3)
    assert_close(memory(without, first), memory(without, second))


def test_positions_join_rank_and_token() -> None:
    """The first half tells the rank, the second the token (Eq. 9), each in half of the columns."""
    encoder = network().model.encoder
    found = encoder.positions(torch.tensor([0, 3]), 5)
    halves = sinusoid(torch.arange(5), 16, interleaved=True)
    assert_close(found[1, :, :16], halves[3].expand(5, -1))
    assert_close(found[1, :, 16:], halves)


def test_one_paragraph_without_global_layers_is_a_plain_encoder() -> None:
    """The Flat Transformer is the same network: one unit, no global layer, no paragraph's position."""
    flat = network(global_layers=0, paragraph_positions=False)
    given = batch([9])
    encoder = flat.model.encoder
    states = encoder.embed_alone(given["input_ids"][:, 0]) + sinusoid(
        torch.arange(9), 32, interleaved=True
    )
    for one in encoder.layers:
        states = one(states, None)
    assert_close(memory(flat, given), encoder.last_norm(states)[0])


def test_the_releases_smoothing_by_hand() -> None:
    """Of four tokens, one the padding, ε = 0.2 leaves 0.8 for the target and 0.1 for each of the two others."""
    logits = torch.tensor([[[0.0, 1.0, 2.0, 3.0]]])
    logs = logits.log_softmax(-1)[0, 0].tolist()
    target = {2: 0.8, 1: 0.1, 3: 0.1}
    expected = sum(
        share * (torch.tensor(share).log().item() - logs[token]) for token, share in target.items()
    )
    found = smoothed_as_released(logits, torch.tensor([[2]]), None, 0.2, pad=0)
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_the_count_of_weights() -> None:
    """As released, 6 + 2 encoder layers and 1 decoder layer have 15,343,952 weights at 32,000 pieces."""
    sizes: dict[str, Any] = {
        "vocab_size": 32_000,
        "d_model": 256,
        "encoder_layers": 6,
        "decoder_layers": 1,
    }
    sizes |= {f"{stack}_ffn_dim": 1024 for stack in ("encoder", "decoder")}
    sizes |= {f"{stack}_attention_heads": 8 for stack in ("encoder", "decoder")}
    with torch.device("meta"):
        model: Any = HierarchicalTransformerForConditionalGeneration(
            HierarchicalTransformerModelConfig(**sizes, official=True)
        )
    assert sum(weight.numel() for weight in model.parameters()) == 15_343_952
