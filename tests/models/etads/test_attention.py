"""Focus attention and saliency selection: against loops written from the paper's equations, and by hand."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from transformers import BartConfig

from longsumbench.modeling.nn.folded_attention import recorded_attention
from longsumbench.models.etads.attention import Focus, FocusAttention, SaliencyAttention

pytestmark = pytest.mark.usefixtures("float64")

WIDTH = 8  # of a head


def configured(heads: int) -> BartConfig:
    torch.manual_seed(0)
    config = BartConfig(d_model=heads * WIDTH, encoder_attention_heads=heads)
    config._attn_implementation = "sdpa"
    return config


def focusing(heads: int) -> FocusAttention:
    """Return a layer whose foci are neither all alike nor all in the middle."""
    attention = FocusAttention(configured(heads)).eval()
    for name, weight in attention.named_parameters():
        torch.nn.init.normal_(weight, std=1.5 if "focus.u" in name else WIDTH**-0.5)
    return attention


def selecting(heads: int) -> SaliencyAttention:
    """Return a layer whose saliencies are anything between 0 and 1."""
    options = {"is_decoder": True, "config": configured(heads), "layer_idx": 0}
    attention = SaliencyAttention(heads * WIDTH, heads, 0.0, **options).eval()
    for weight in attention.parameters():
        torch.nn.init.normal_(weight, std=0.6)
    return attention


def ragged(lengths: list[int], heads: int) -> tuple[Tensor, Tensor]:
    """Return states [R, L, D], and a mask [R, 1, 1, L] as the library hands it over."""
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(len(lengths), max(lengths), heads * WIDTH, generator=generator)
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return states, real[:, None, None]


def sigmoid(number: float) -> float:
    return 1 / (1 + math.exp(-number))


def projected(linear: torch.nn.Linear, states: Tensor) -> Tensor:
    """Return the vectors of the heads: [L, H, D / H]."""
    return (states @ linear.weight.T + linear.bias).view(len(states), -1, WIDTH)


@torch.no_grad()
def focus_by_loops(attention: FocusAttention, x: Tensor) -> Tensor:
    """Attend over one text's real tokens as ETADS's Eqs. 2 and 5–8 say, a number at a time."""
    length, focus = len(x), attention.focus
    q, k, v = (projected(getattr(attention, f"{name}_proj"), x) for name in "qkv")
    output = torch.zeros_like(q)
    for h in range(attention.num_heads):
        w_p, w_g = focus.w_p[h].T, focus.w_g[h].T  # as they are in Eq. 5: W Q
        g = sum(q[i, h] for i in range(length)) / length
        for i in range(length):
            hidden = torch.tanh(w_p @ q[i, h] + w_g @ g)
            centre = length * sigmoid(float(focus.u_c[h] @ hidden))
            scope = max(0.5, length * sigmoid(float(focus.u_d[h] @ hidden)))
            energies = [
                float(q[i, h] @ k[j, h]) / math.sqrt(WIDTH) - (j - centre) ** 2 / (scope**2 / 2)
                for j in range(length)
            ]
            weights = [math.exp(energy - max(energies)) for energy in energies]
            output[i, h] = sum(weight * v[j, h] for j, weight in enumerate(weights)) / sum(weights)
    return output.flatten(1) @ attention.out_proj.weight.T + attention.out_proj.bias


@torch.no_grad()
def saliency_by_loops(attention: SaliencyAttention, states: Tensor, source: Tensor) -> Tensor:
    """Attend from [T, D] to real source tokens [S, D] as ETADS's Eqs. 9–10 say, a number at a time."""
    q = projected(attention.q_proj, states)
    k, v = projected(attention.k_proj, source), projected(attention.v_proj, source)
    output = torch.zeros_like(q)
    for h, i in product(range(attention.num_heads), range(len(states))):
        w_h, w_s = attention.gate.w_h[h].T, attention.gate.w_s[h].T
        energies = [float(q[i, h] @ k[j, h]) / math.sqrt(WIDTH) for j in range(len(source))]
        total = sum(math.exp(energy - max(energies)) for energy in energies)
        for j, energy in enumerate(energies):
            saliency = sigmoid(float((w_h @ q[i, h]) @ (w_s @ k[j, h])))
            output[i, h] += saliency * math.exp(energy - max(energies)) / total * v[j, h]
    return output.flatten(1) @ attention.out_proj.weight.T + attention.out_proj.bias


RAGGED = list(product(([5], [1, 7], [12, 3, 12]), (1, 4)))


@pytest.mark.parametrize(("lengths", "heads"), [*RAGGED, ([40, 17], 4)])
def test_focus_equals_loops_over_the_equations(lengths: list[int], heads: int) -> None:
    """Of ragged batches and any number of heads, every real token's output is what the equations say."""
    attention, (states, mask) = focusing(heads), ragged(lengths, heads)
    actual = attention(states, attention_mask=mask)[0]
    # The library's other form of a mask.
    added = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
    assert torch.equal(attention(states, attention_mask=added)[0], actual)
    for row, length in enumerate(lengths):
        assert_close(actual[row, :length], focus_by_loops(attention, states[row, :length]))


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


@pytest.mark.parametrize(("lengths", "heads"), RAGGED)
def test_saliency_equals_loops_over_the_equations(lengths: list[int], heads: int) -> None:
    """Of ragged batches and any number of heads, the output is what the equations say."""
    attention, (source, mask) = selecting(heads), ragged(lengths, heads)
    states = torch.randn(len(lengths), 4, heads * WIDTH)
    actual = attention(states, key_value_states=source, attention_mask=mask)[0]
    for row, length in enumerate(lengths):
        assert_close(actual[row], saliency_by_loops(attention, states[row], source[row, :length]))


def test_saliency_tells_the_weights_before_the_gate() -> None:
    """Watched, it tells the softmax's weights, which sum to one: what the coverage of a search goes by."""
    attention, (source, mask) = selecting(2), ragged([6, 4], 2)
    with recorded_attention(attention) as message:
        attention(torch.randn(2, 3, 16), key_value_states=source, attention_mask=mask)
    assert_close(message[0].sum(-1), torch.ones(2, 2, 3))
