"""The whole network: what must not matter, what must, and how it writes."""

from typing import Any

import pytest
import torch
from support.hierarchical_networks import PAD, batch, labels, network
from torch import Tensor

from longsumbench.modeling.nn.device import to_device
from longsumbench.modeling.nn.encoder_decoder import token_cross_entropy
from longsumbench.modeling.nn.positions import sinusoid
from longsumbench.models.hierarchical_transformer.model import (
    HierarchicalTransformerForConditionalGeneration,
    HierarchicalTransformerModelConfig,
    smoothed_as_released,
)

pytestmark = pytest.mark.usefixtures("float64")

EXAMPLES = [[5, 3, 0, 7], [2, 6], [4]]


def close(actual: Tensor, expected: Tensor) -> None:
    """Compare what single precision can tell apart."""
    torch.testing.assert_close(actual, expected)


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
    close(memory(without, first), memory(without, second))


def test_encoding_reads_nothing_from_the_device() -> None:
    """Which paragraphs are real is known on the CPU; a tensor of the meta device that is read raises an error."""
    given, meta = batch(*EXAMPLES), torch.device("meta")
    states = network().model.encoder(**given).last_hidden_state
    there = (
        network()
        .to(meta)
        .train()
        .model.encoder(**{name: to_device(value, meta) for name, value in given.items()})
    )
    assert there.last_hidden_state.shape == states.shape
    there.last_hidden_state.sum().backward()


def test_positions_join_rank_and_token() -> None:
    """The first half tells the rank, the second the token (Eq. 9), interleaved sines and cosines of 16 columns each."""
    encoder = network().model.encoder
    found = encoder.positions(torch.tensor([0, 3]), 5)
    halves = sinusoid(torch.arange(5), 16, interleaved=True)
    torch.testing.assert_close(found[1, :, :16], halves[3].expand(5, -1))
    torch.testing.assert_close(found[1, :, 16:], halves)
    angles = 2 / 10_000 ** (torch.arange(0, 16, 2) / 16)
    torch.testing.assert_close(halves[2, 0::2], angles.sin())
    torch.testing.assert_close(halves[2, 1::2], angles.cos())


def test_paragraphs_inform_each_other_through_global_layers_alone() -> None:
    """Another second paragraph changes the states of the first; without global layers it does not."""
    given = batch([5, 4])
    other = {**given, "input_ids": given["input_ids"].clone()}
    other["input_ids"][0, 1] = torch.tensor([9, 8, 7, 6, PAD])
    model, without = network(), network(global_layers=0)
    assert (memory(model, given)[:5] - memory(model, other)[:5]).abs().max() > 1e-3
    assert torch.equal(memory(without, given)[:5], memory(without, other)[:5])


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
    close(memory(flat, given), encoder.last_norm(states)[0])


def test_what_a_checkpoint_lacks_starts_as_it_should(tmp_path: Any) -> None:
    """Opened with global layers, a checkpoint without any: its new matrices of heads are Xavier's, not garbage."""
    network(global_layers=0).save_pretrained(tmp_path)
    model = HierarchicalTransformerForConditionalGeneration.from_pretrained(
        tmp_path, global_layers=1
    )
    heads = {
        name: one
        for name, one in model.named_parameters()
        if "global_layers" in name and one.dim() == 3
    }
    assert len(heads) == 4
    assert all(0.3 < one.abs().max().item() <= (6 / 16) ** 0.5 for one in heads.values())


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


def test_smoothing_is_the_suites_but_for_the_release() -> None:
    """In training fidelity=paper spreads ε over every column, as all systems do; in validation nothing is spread."""
    model = network(label_smoothing=0.1).train()
    given, target = batch(*EXAMPLES), labels(5, 8, 4)
    output = model(**given, labels=target)
    close(output.loss, token_cross_entropy(output.logits, target, smoothing=0.1))
    close(model.eval()(**given, labels=target).loss, token_cross_entropy(output.logits, target))


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
