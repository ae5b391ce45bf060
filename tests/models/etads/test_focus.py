"""Focus attention: against loops written from the paper's equations, and by hand."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor
from transformers import BartConfig

from longsumbench.models.etads.attention import Focus, FocusAttention, FocusWindows, focus_attention

pytestmark = pytest.mark.usefixtures("float64")

LENGTHS = ([5], [1, 7], [12, 3, 12], [40, 17])
HEADS = (1, 4)


def layer(heads: int, width: int = 8, seed: int = 0) -> FocusAttention:
    """Return a layer whose foci are neither all alike nor all in the middle."""
    torch.manual_seed(seed)
    config = BartConfig(d_model=heads * width, encoder_attention_heads=heads)
    attention = FocusAttention(config).eval()
    for name, weight in attention.named_parameters():
        torch.nn.init.normal_(weight, std=1.5 if "focus.u" in name else width**-0.5)
    return attention


def batch(lengths: list[int], width: int, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Return states [R, L, D], and a mask [R, 1, 1, L] as the library hands it over."""
    generator = torch.Generator().manual_seed(seed)
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


@pytest.mark.parametrize(("lengths", "heads", "seed"), list(product(LENGTHS, HEADS, (0, 1))))
def test_it_equals_loops_over_the_equations(lengths: list[int], heads: int, seed: int) -> None:
    """Of ragged batches and any number of heads, every real token's output is what the equations say."""
    attention = layer(heads, seed=seed)
    states, mask = batch(lengths, heads * 8)
    found = attention(states, attention_mask=mask)[0]
    for row, length in enumerate(lengths):
        expected = loop(attention, states[row], length)
        torch.testing.assert_close(found[row, :length].double(), expected)


def difference(one: Tensor, other: Tensor) -> float:
    """Return the largest difference, as a share of the largest value."""
    return float((one - other).abs().max()) / max(float(other.abs().max()), 1e-4)


@pytest.mark.parametrize("heads", HEADS)
def test_padding_changes_nothing(heads: int) -> None:
    """A text gives the same alone, in the library's other form of a mask, and next to longer ones."""
    attention = layer(heads)
    states, mask = batch([12, 5], heads * 8)
    together = attention(states, attention_mask=mask)[0]
    alone = attention(states[1:, :5])[0]
    added = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
    torch.testing.assert_close(together[1, :5], alone[0])
    assert torch.equal(attention(states, attention_mask=added)[0], together)
    longer = torch.cat([states, torch.randn(2, 30, heads * 8)], 1)
    wider = torch.nn.functional.pad(mask, (0, 30))
    torch.testing.assert_close(attention(longer, attention_mask=wider)[0][1, :5], alone[0])


def test_centres_and_widths_stay_in_the_text() -> None:
    """Centres lie between 0 and m, widths between half a token and m, however large the weights are."""
    focus = Focus(2, 8)
    for weight in focus.parameters():
        torch.nn.init.normal_(weight, std=30)
    real = torch.arange(20) < torch.tensor([[20], [7]])
    windows = focus(torch.randn(2, 2, 20, 8), real)
    lengths = torch.tensor([20.0, 7.0])[:, None, None]
    assert ((windows.centres >= 0) & (windows.centres <= lengths)).all()
    assert ((windows.widths >= 0.5) & (windows.widths <= lengths)).all()


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


def test_three_tokens_by_hand() -> None:
    """One head of width 1, three tokens, W_p = W_g = 0, U = 0: so centre and width are 3 · sigmoid(0) = 1.5.

    The bias of key j is −(j − 1.5)² / (1.5² / 2) = −2, −2/9, −2/9. With queries of 0 the weights are e^−2, e^−2/9,
    e^−2/9 over their sum: 0.0779, 0.4610, 0.4610. The values are 1, 2, 4, so every output is 2.844.
    """
    windows = FocusWindows(torch.full((1, 1, 3), 1.5), torch.full((1, 1, 3), 1.5))
    values = torch.tensor([1.0, 2.0, 4.0]).view(1, 1, 3, 1)
    nothing, real = torch.zeros(1, 1, 3, 1), torch.ones(1, 3, dtype=torch.bool)
    a, b = math.exp(-2), math.exp(-2 / 9)
    expected = (a + 6 * b) / (a + 2 * b)
    assert expected == pytest.approx(2.844, abs=5e-4)
    torch.testing.assert_close(
        focus_attention(nothing, nothing, values, windows, real), torch.full((1, 1, 3, 1), expected)
    )
    zero = Focus(1, 1)
    for weight in zero.parameters():
        torch.nn.init.zeros_(weight)
    assert torch.equal(zero(torch.ones(1, 1, 3, 1), real).centres, windows.centres)
    assert torch.equal(zero(torch.ones(1, 1, 3, 1), real).widths, windows.widths)
