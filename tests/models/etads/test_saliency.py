"""Saliency selection: against loops written from the paper's equations, and by hand."""

import math
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import BartConfig

from longsumbench.modeling.nn.folded_attention import FoldedAttention, recorded_attention
from longsumbench.models.etads.attention import SaliencyAttention

pytestmark = pytest.mark.usefixtures("float64")


def layer(heads: int, width: int = 8, kind: type[FoldedAttention] = SaliencyAttention) -> Any:
    """Return a layer whose saliencies are anything between 0 and 1."""
    torch.manual_seed(0)
    config = BartConfig(d_model=heads * width, encoder_attention_heads=heads)
    config._attn_implementation = "sdpa"
    attention = kind(heads * width, heads, 0.0, is_decoder=True, config=config, layer_idx=0).eval()
    for weight in attention.parameters():
        torch.nn.init.normal_(weight, std=0.6)
    return attention


def texts(lengths: list[int], targets: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return target states [R, T, D], source states [R, S, D] and a mask [R, 1, 1, S]."""
    generator = torch.Generator().manual_seed(3)
    states = torch.randn(len(lengths), targets, width, generator=generator)
    source = torch.randn(len(lengths), max(lengths), width, generator=generator)
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return states, source, real[:, None, None]


def loop(attention: Any, states: Tensor, source: Tensor) -> Tensor:
    """Attend from [T, D] to real source tokens [S, D] as ETADS's Eqs. 9–10 say, a number at a time, in doubles."""
    heads, width = attention.num_heads, attention.head_dim

    def projected(linear: torch.nn.Linear, x: Tensor) -> Tensor:
        return (
            (x.double() @ linear.weight.double().T + linear.bias.double())
            .view(len(x), heads, width)
            .detach()
        )

    q, k, v = (
        projected(attention.q_proj, states),
        projected(attention.k_proj, source),
        projected(attention.v_proj, source),
    )
    output = torch.zeros(len(states), heads, width, dtype=torch.float64)
    for h, i in product(range(heads), range(len(states))):
        w_h, w_s = (
            attention.gate.w_h[h].double().T.detach(),
            attention.gate.w_s[h].double().T.detach(),
        )
        energies = [float(q[i, h] @ k[j, h]) / math.sqrt(width) for j in range(len(source))]
        total = sum(math.exp(energy - max(energies)) for energy in energies)
        for j, energy in enumerate(energies):
            saliency = 1 / (1 + math.exp(-float((w_h @ q[i, h]) @ (w_s @ k[j, h]))))
            output[i, h] += saliency * math.exp(energy - max(energies)) / total * v[j, h]
    flat = output.reshape(len(states), heads * width)
    return flat @ attention.out_proj.weight.double().T + attention.out_proj.bias.double()


@pytest.mark.parametrize(("heads", "lengths"), list(product((1, 4), ([5], [1, 7], [9, 3, 9]))))
def test_it_equals_loops_over_the_equations(heads: int, lengths: list[int]) -> None:
    """Of ragged batches and any number of heads, the output is what the equations say."""
    attention = layer(heads)
    states, source, mask = texts(lengths, 4, heads * 8)
    found = attention(states, key_value_states=source, attention_mask=mask)[0]
    for row, length in enumerate(lengths):
        expected = loop(attention, states[row], source[row, :length])
        torch.testing.assert_close(found[row].double(), expected)


def test_it_tells_the_weights_before_the_gate() -> None:
    """Watched, it tells the softmax's weights, which sum to one: what the coverage of a search goes by."""
    attention = layer(2)
    states, source, mask = texts([6, 4], 3, 16)
    with recorded_attention(attention) as message:
        attention(states, key_value_states=source, attention_mask=mask)
    torch.testing.assert_close(message[0].sum(-1), torch.ones(2, 2, 3))
