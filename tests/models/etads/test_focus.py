"""Focus attention: against loops written from the paper's equations, and by hand."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor
from transformers import BartConfig

from longsumbench.models.etads.attention import Focus, FocusAttention

pytestmark = pytest.mark.usefixtures("float64")

LENGTHS = ([5], [1, 7], [12, 3, 12], [40, 17])
HEADS = (1, 4)


def layer(heads: int, width: int = 8) -> FocusAttention:
    """Return a layer whose foci are neither all alike nor all in the middle."""
    torch.manual_seed(0)
    config = BartConfig(d_model=heads * width, encoder_attention_heads=heads)
    attention = FocusAttention(config).eval()
    for name, weight in attention.named_parameters():
        torch.nn.init.normal_(weight, std=1.5 if "focus.u" in name else width**-0.5)
    return attention


def batch(lengths: list[int], width: int) -> tuple[Tensor, Tensor]:
    """Return states [R, L, D], and a mask [R, 1, 1, L] as the library hands it over."""
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(len(lengths), max(lengths), width, generator=generator)
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return states, real[:, None, None]


def sigmoid(number: float) -> float:
    return 1 / (1 + math.exp(-number))


def loop(attention: FocusAttention, states: Tensor, length: int) -> Tensor:
    """Attend over one text's real tokens as ETADS's Eqs. 2 and 5–8 say, a number at a time, in double precision."""
    heads, width = attention.num_heads, attention.head_dim
    focus = attention.focus
    x = states[:length].double()

    def projected(linear: torch.nn.Linear) -> Tensor:
        return (x @ linear.weight.double().T + linear.bias.double()).view(length, heads, width)

    q, k, v = projected(attention.q_proj), projected(attention.k_proj), projected(attention.v_proj)
    output = torch.zeros(length, heads, width, dtype=torch.float64)
    for h in range(heads):
        w_p, w_g = focus.w_p[h].double().T, focus.w_g[h].double().T  # as they are in Eq. 5: W Q
        g = sum(q[i, h] for i in range(length)) / length
        for i in range(length):
            hidden = torch.tanh(w_p @ q[i, h] + w_g @ g)
            centre = length * sigmoid(float((focus.u_c[h].double() @ hidden).detach()))
            scope = max(0.5, length * sigmoid(float((focus.u_d[h].double() @ hidden).detach())))
            energies = [
                float((q[i, h] @ k[j, h]).detach()) / math.sqrt(width)
                - (j - centre) ** 2 / (scope**2 / 2)
                for j in range(length)
            ]
            top = max(energies)
            weights = [math.exp(energy - top) for energy in energies]
            output[i, h] = sum(weight * v[j, h] for j, weight in enumerate(weights)) / sum(weights)
    flat = output.reshape(length, heads * width)
    return flat @ attention.out_proj.weight.double().T + attention.out_proj.bias.double()


@pytest.mark.parametrize(("lengths", "heads"), list(product(LENGTHS, HEADS)))
def test_it_equals_loops_over_the_equations(lengths: list[int], heads: int) -> None:
    """Of ragged batches and any number of heads, every real token's output is what the equations say."""
    attention = layer(heads)
    states, mask = batch(lengths, heads * 8)
    found = attention(states, attention_mask=mask)[0]
    # The library's other form of a mask.
    added = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
    assert torch.equal(attention(states, attention_mask=added)[0], found)
    for row, length in enumerate(lengths):
        expected = loop(attention, states[row], length)
        torch.testing.assert_close(found[row, :length].double(), expected)


def test_centres_do_not_count_in_twos_under_autocast() -> None:
    """Where the network computes in bfloat16, foci do not: a centre near token 380 keeps its fraction."""
    torch.manual_seed(0)
    focus, queries = Focus(1, 8).float(), torch.randn(1, 1, 400, 8, dtype=torch.float32)
    real = torch.ones(1, 400, dtype=torch.bool)
    with torch.autocast("cpu", torch.bfloat16):
        inside = focus(queries, real)
    outside = focus(queries, real)
    assert torch.equal(inside.centres, outside.centres)
    assert inside.centres.dtype == torch.float32
