"""Pooling, what relates paragraphs, and graphs, against the equations written out."""

import math
from typing import Any

import pytest
import torch
from support.hierarchical_networks import SIZES
from torch import Tensor
from torch.testing import assert_close

from longsumbench.models.hierarchical_transformer.global_layer import (
    GlobalLayer,
    PackedParagraphs,
    ParagraphAttention,
    PerHead,
    Piece,
    normalized,
)
from longsumbench.models.hierarchical_transformer.model import HierarchicalTransformerModelConfig

pytestmark = pytest.mark.usefixtures("float64")

WIDTH, HEADS = 8, 2
LENGTHS = ((3, 0, 5, 1), (2, 4))  # of the paragraphs of two examples; one is absent


def packed() -> tuple[Tensor, PackedParagraphs, list[list[Tensor]]]:
    """Return states one behind the other, whose they are, and the same paragraph by paragraph."""
    generator = torch.Generator().manual_seed(5)
    sizes = [size for one in LENGTHS for size in one if size]
    states = torch.randn(sum(sizes), WIDTH, generator=generator)
    parts = iter(states.split(sizes))
    nothing = torch.zeros(0, WIDTH)
    listed = [[next(parts) if size else nothing for size in one] for one in LENGTHS]
    longest = max(map(len, LENGTHS))
    table = torch.tensor([[*one, *[0] * (longest - len(one))] for one in LENGTHS])
    real, flat = table > 0, table[table > 0]
    starts = flat.cumsum(0) - flat
    pieces = tuple(
        Piece(
            torch.tensor([row]),
            (starts[row] + torch.arange(int(flat[row])))[None],
            torch.ones(1, int(flat[row])) > 0,
        )
        for row in range(len(flat))
    )
    owners = torch.arange(len(flat)).repeat_interleave(flat)
    return states, PackedParagraphs(real, owners, pieces), listed


def shaken(module: Any) -> Any:
    """Return a module in double precision, its weights neither zero nor one."""
    torch.manual_seed(3)
    for weight in module.parameters():
        weight.data += 0.3 * torch.randn_like(weight)
    return module.eval()


def linear(states: Tensor, part: Any, head: int) -> Tensor:
    """Multiply by a head's own matrix, or by the one of all heads."""
    return states @ part.weight[head] if isinstance(part, PerHead) else part(states)


@torch.no_grad()
def by_loops(
    attention: ParagraphAttention, listed: list[list[Tensor]], graph: Tensor | None = None
) -> list[Tensor]:
    """Return every real paragraph's context, Eqs. 13–21 and 24 one after the other."""
    pooling, contexts = attention.pooling, []
    width = WIDTH // HEADS
    for example, paragraphs in enumerate(listed):
        there = [index for index, tokens in enumerate(paragraphs) if len(tokens)]
        of_heads: dict[int, list[Any]] = {index: [] for index in there}
        for head in range(HEADS):
            vectors = {}
            for index in there:
                tokens = paragraphs[index]
                scores = [float(pooling.scores(token)[head]) for token in tokens]
                total = sum(math.exp(score) for score in scores)
                values = [
                    pooling.values(token)[head * width : (head + 1) * width] for token in tokens
                ]
                sums = sum(
                    math.exp(score) / total * value
                    for score, value in zip(scores, values, strict=True)
                )
                vectors[index] = pooling.norm(linear(sums, pooling.outputs, head))
            for index in there:
                query = linear(vectors[index], attention.query, head)
                keys = {other: linear(vectors[other], attention.key, head) for other in there}
                weights = {
                    other: math.exp(float(query @ keys[other]) / math.sqrt(width))
                    for other in there
                }
                if graph is not None and head == 0:
                    weights = {other: float(graph[example, index, other]) for other in there}
                total = sum(weights.values())
                of_heads[index].append(
                    sum(
                        weights[other] / total * linear(vectors[other], attention.value, head)
                        for other in there
                    )
                )
        contexts += [attention.out_proj(torch.cat(of_heads[index])) for index in there]
    return contexts


@pytest.mark.parametrize("with_graph", [False, True])
@pytest.mark.parametrize("official", [False, True])
def test_contexts_are_the_equations(official: bool, with_graph: bool) -> None:
    """Every paragraph's context is that of loops over heads, paragraphs and tokens, with a graph and without."""
    attention = shaken(ParagraphAttention(WIDTH, HEADS, official))
    states, paragraphs, listed = packed()
    graph = torch.rand(2, 4, 4, generator=torch.Generator().manual_seed(9)) if with_graph else None
    rows = None if graph is None else normalized(graph, paragraphs.real)
    context, weights = attention(states, paragraphs, rows)
    assert_close(context, torch.stack(by_loops(attention, listed, graph)))
    sums = weights.transpose(1, 2)[paragraphs.real].sum(-1)
    assert_close(sums, torch.ones_like(sums))


def layer(official: bool) -> Any:
    """Return a small layer."""
    config = HierarchicalTransformerModelConfig(
        **{**SIZES, "d_model": WIDTH, "encoder_attention_heads": HEADS}
    )
    return shaken(GlobalLayer(config, HEADS, official))


def test_a_layer_as_printed() -> None:
    """The residual is the token without its context: LN(W₂ ReLU(W₁(x + c)) + x), Eqs. 22–23."""
    one, (states, paragraphs, listed) = layer(official=False), packed()
    contexts = torch.stack(by_loops(one.self_attn, listed))[paragraphs.owners]
    expected = one.final_layer_norm(one.fc2(torch.relu(one.fc1(states + contexts))) + states)
    assert_close(one(states, paragraphs, None), expected)


def test_a_layer_as_released() -> None:
    """The residual keeps the context: y = x + c, made of LN(x), then y + FF(LN(y))."""
    one, (states, paragraphs, _) = layer(official=True), packed()
    normal = one.self_attn_layer_norm(states)
    listed = [
        [
            normal[paragraphs.owners == 0],
            normal[:0],
            normal[paragraphs.owners == 1],
            normal[paragraphs.owners == 2],
        ]
    ]
    listed += [[normal[paragraphs.owners == 3], normal[paragraphs.owners == 4]]]
    informed = states + torch.stack(by_loops(one.self_attn, listed))[paragraphs.owners]
    expected = informed + one.fc2(torch.relu(one.fc1(one.final_layer_norm(informed))))
    assert_close(one(states, paragraphs, None), expected)


def test_a_graph_by_hand() -> None:
    """Rows are shared out over the real paragraphs; one without edges attends to itself; an absent one is no key."""
    graph = torch.tensor([[[1.0, 3.0, 4.0], [0.0, 0.0, 5.0], [1.0, 1.0, 1.0]]])
    real = torch.tensor([[True, True, False]])
    expected = torch.tensor([[0.25, 0.75, 0.0], [0.0, 1.0, 0.0]])
    assert_close(normalized(graph, real)[0, :2], expected)
