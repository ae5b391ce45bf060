"""What the four networks of the family have in common, and what each adds."""

import math
from typing import Any

import pytest
import torch
from support.seal_networks import RAGGED, batch, network, shifted, targets
from torch import Tensor
from torch.nn import functional as F
from torch.testing import assert_close
from transformers.models.bart.modeling_bart import BartDecoderLayer
from transformers.models.pegasus.modeling_pegasus import PegasusDecoderLayer

from longsumbench.modeling.nn.transformer_layer import sinusoid
from longsumbench.modeling.nn.unit_encoder import Memory
from longsumbench.models.seal.config import CAConfig, EAConfig, SealConfig, TruncConfig
from longsumbench.models.seal.selection import AttentionPooling, select
from longsumbench.models.seal.system import CA, EA, Seal, Trunc

pytestmark = pytest.mark.usefixtures("float64")

WITH_SCORER = ["ea", "seal"]


def test_seal_with_one_segment_is_ea() -> None:
    """With the segment as long as the summary, and EA's weights, SEAL has EA's logits, loss and summaries, exactly."""
    ea, seal, inputs, labels = (
        network("ea"),
        network("seal", segment_length=20),
        batch(*RAGGED),
        targets(20, 7, 13),
    )
    missing = seal.load_state_dict(ea.state_dict(), strict=False).missing_keys
    assert all("encoder_attn" in name and "scorer" in name for name in missing)
    expected, actual = ea(**inputs, labels=labels), seal(**inputs, labels=labels)
    assert torch.equal(actual.logits, expected.logits)
    assert torch.equal(actual.loss, expected.loss)
    for beams in (1, 3):
        # No token twice, for that an untrained network does too well.
        search = {"num_beams": beams, "max_new_tokens": 20, "no_repeat_ngram_size": 1}
        assert torch.equal(seal.generate(**inputs, **search), ea.generate(**inputs, **search))
    shorter = network("seal", segment_length=6)
    shorter.load_state_dict(ea.state_dict(), strict=False)
    assert not torch.allclose(shorter(**inputs, labels=labels).logits, expected.logits)


def multiply(states: Tensor, positions: Tensor, mask: Tensor) -> Memory:
    """Select by the paper's product of a sorting mask and the encoded snippets."""
    return Memory(F.one_hot(positions, len(states)).to(states.dtype) @ states, mask)


@pytest.mark.parametrize("name", WITH_SCORER)
def test_gathering_equals_the_one_hot_product(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loss and gradients, which every weight has, are those of the paper's matrix product (SEAL §3.4)."""
    inputs, labels = batch(*RAGGED), targets(20, 7, 13)
    proxies = torch.rand(3, 4 if name == "seal" else 1, 9)
    results = []
    for product in (False, True):
        model = network(name).train()
        if product:
            monkeypatch.setattr("longsumbench.models.seal.model.gather", multiply)
        loss = model(**inputs, labels=labels, proxy_labels=proxies).loss
        loss.backward()
        assert all(weight.grad is not None for weight in model.parameters())
        results.append((loss, {key: weight.grad for key, weight in model.named_parameters()}))
    assert_close(results[1][0], results[0][0])
    assert_close(results[1][1], results[0][1])


def test_the_extractive_loss_by_hand() -> None:
    """Scores 1, 2 | 3, 4 against 1, 0 | 0, 4 give (0 + 4 + 9 + 0) / 4; absent snippets and segments do not count."""
    model, inputs = network("seal", segment_length=2), batch((3, 3, 3), (2, 2))
    reading = model.model.encoder(**inputs)
    scores = torch.tensor([[1.0, 2, 9], [3, 4, 9]]).repeat(2, 1, 1)
    proxies = torch.tensor([[1.0, 0, 0], [0, 4, 0]]).repeat(2, 1, 1)
    labels = torch.tensor([[5, 6, 7, 2], [5, 2, -100, -100]])

    errors, count = model.extractive_errors(scores, proxies, reading, labels)
    # The first example has three snippets, the second two, and only one segment.
    assert (float(errors), int(count)) == (13 + 2 * 81 + 4, 6 + 2)


def test_the_loss_is_the_sum_of_both_in_training_alone() -> None:
    """In training it is l_a + l_e; validation looks at l_a, the perplexity; under accumulation a step is one batch."""
    model, inputs, labels, proxies = (
        network("seal"),
        batch(*RAGGED),
        targets(20, 7, 13),
        torch.rand(3, 4, 9),
    )
    abstractive = model(**inputs, labels=labels).loss
    assert torch.equal(model(**inputs, labels=labels, proxy_labels=proxies).loss, abstractive)
    model.train()
    reading = model.model.encoder(**inputs)
    scores = model.select(reading, shifted(labels))[0]
    errors, count = model.extractive_errors(scores, proxies, reading, labels)
    both = model(**inputs, labels=labels, proxy_labels=proxies).loss
    assert_close(both, abstractive + errors / count)
    of_a_step = {"num_items_in_batch": torch.tensor(80), "num_proxy_labels": 2 * count}
    half = model(**inputs, labels=labels, proxy_labels=proxies, **of_a_step).loss
    assert_close(half, both / 2)


def test_ca_keeps_a_few_vectors_of_each_group() -> None:
    """Three groups give nine vectors, whose order of tokens matters, and absent groups give none."""
    model, inputs = network("ca"), batch((8, 5, 3), (4,))
    memory = model.model.encoder(**inputs)
    assert memory.last_hidden_state.shape == (2, 9, 32)
    assert memory.mask.sum(-1).tolist() == [9, 3]
    turned = {**inputs, "input_ids": inputs["input_ids"].clone()}
    turned["input_ids"][1, 0, :4] = turned["input_ids"][1, 0, :4].flip(0)
    assert not torch.allclose(
        model.model.encoder(**turned).last_hidden_state[1, :3], memory.last_hidden_state[1, :3]
    )


LAYER = (
    8 * (512**2 + 512) + (2 * 512 * 512 + 2 * 512) + 3 * 1024
)  # attention twice, feed-forward, three norms
SCORER = LAYER + 512**2 + 512 + 1024 + 513  # one layer, pooling, last norm, linear


@pytest.mark.parametrize(
    ("system", "parameters"),
    [
        (Trunc(TruncConfig()), 35_717_120),
        (Trunc(TruncConfig(size="223m")), 223_650_816),
        (CA(CAConfig()), 35_717_120 + 512 * 18),
        (EA(EAConfig()), 35_717_120 + SCORER - 4 * (512**2 + 512) - 1024),
        (Seal(SealConfig()), 35_717_120 + SCORER),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else value.config.name,
)
def test_parameter_counts(system: Any, parameters: int) -> None:
    """By hand for d 512, f 512: V·d 16,781,312 + 2·1,577,984 + 6·2,629,632 + last norms 2,048 = 35,717,120.

    A layer is 4 (encoder) or 8 (decoder) projections d²+d, the feed-forward 2df+f+d, and 2 or 3 norms of 2d. CA has
    ⌊1024 / 56⌋ = 18 learned vectors; EA's scorer has no cross-attention; SEAL's brings it to 39M, the stated sizes.
    """
    with torch.device("meta"):
        model = system.Model(system.builder.model_config(vocabulary=32_776, special=(0, 1, 2)))
    assert sum(weight.numel() for weight in model.parameters()) == parameters


def test_the_gate_against_a_loop() -> None:
    """Equals sorting and cutting one snippet after the other in plain Python."""
    generator = torch.Generator().manual_seed(0)
    for limit in range(1, 20):
        lengths = torch.randint(0, 5, (1, 7), generator=generator)
        scores = torch.randint(0, 4, (1, 7), generator=generator).float()  # many ties
        starts = lengths.cumsum(-1) - lengths
        expected: list[int] = []
        for unit in sorted(range(7), key=lambda index: (-scores[0, index].item(), index)):
            expected += range(int(starts[0, unit]), int(starts[0, unit] + lengths[0, unit]))
        chosen = select(scores, starts, lengths, limit)
        assert chosen.positions[chosen.mask].tolist() == expected[:limit]
        assert int(chosen.counts.sum()) == len(expected[:limit])


def test_attention_pooling_by_hand() -> None:
    """With W = 1 and v = 2, energies are 2·tanh h: states 0 and 1 weigh 1 : e^(2 tanh 1); padding weighs nothing."""
    pooling = AttentionPooling(1)
    with torch.no_grad():
        pooling.projection.weight.fill_(1)
        pooling.direction.weight.fill_(2)
    pooled = pooling(torch.tensor([[[0.0], [1.0], [9.0]]]), torch.tensor([[True, True, False]]))
    weight = math.exp(2 * math.tanh(1))
    assert pooled.item() == pytest.approx(weight / (1 + weight))


def test_autocast_does_not_round_scores() -> None:
    """Near ties decide what is selected, so scores of the same states are those of single precision, to the bit."""
    scorer = network("seal").float().model.encoder.scorer
    states, mask = torch.randn(1, 5, 32, dtype=torch.float), torch.ones(1, 5).bool()

    def scores() -> Tensor:
        pooled = scorer.pooling(states, mask)[None]
        snippets = scorer.place(states + pooled, torch.zeros(1, 5).long(), mask)
        found: Tensor = scorer(snippets, mask, states[:, :2], mask[:, :2])
        return found

    with torch.autocast("cpu", torch.bfloat16):
        found = scores()
        assert scorer.score(states).dtype == torch.bfloat16
    assert torch.equal(found, scores())


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_deep_scorer_is_a_stack_of_decoder_layers(norm: str) -> None:
    """Two layers that look back are the library's decoder layers without a causal mask, norm and linear behind them."""
    model = network("seal", norm=norm, scorer_layers=2, decoder_attention_heads=2)
    scorer, config = model.model.encoder.scorer, model.config
    library = PegasusDecoderLayer if norm == "pre" else BartDecoderLayer
    stack = [library(config, layer_idx=index).eval() for index in range(2)]
    for layer, stock in zip(scorer.layers, stack, strict=True):
        stock.load_state_dict(layer.state_dict())
    pooled, history = torch.randn(2, 5, 32), torch.randn(2, 3, 32)
    mask, there = torch.rand(2, 5) > 0.2, torch.tensor([[True, True, False], [True, False, False]])
    mask[:, 0] = True
    documents = torch.tensor([[0, 0, 1, 1, 9]]).expand(2, 5)
    states = (
        pooled + sinusoid(torch.arange(5), 32) + scorer.documents.weight[documents.clamp(max=3)]
    )
    for stock in stack:
        states = stock(states, mask[:, None, None], history, there[:, None, None])
    expected = scorer.score(scorer.layer_norm(states)).squeeze(-1)
    actual = scorer(scorer.place(pooled, documents, mask), mask, history, there)
    assert_close(actual[mask], expected[mask])
