"""T-DMCA's network: its attention by hand, its two losses, and its size."""

from typing import Any

import pytest
import torch
from support.reproduction.tdmca_networks import (
    BLOCK,
    END,
    PAD,
    START,
    WINDOW,
    batch,
    labels,
    network,
)
from torch import Tensor
from torch.nn import functional as F

from longsumbench.core import Truncation
from longsumbench.modeling.collate import make_unit_row
from longsumbench.modeling.model_builder import ModelBuilder
from longsumbench.modeling.nn.transformer_layer import sinusoid
from longsumbench.modeling.units import Units
from longsumbench_reproduction.models.tdmca import model as tdmca
from longsumbench_reproduction.models.tdmca.attention import CompressedAttention, LocalAttention
from longsumbench_reproduction.models.tdmca.config import TdmcaConfig
from longsumbench_reproduction.models.tdmca.model import (
    SourceCountingCollator,
    TdmcaForConditionalGeneration,
)

pytestmark = pytest.mark.usefixtures("float64")


def source(length: int) -> Units:
    """Return a source of so many tokens, all alike."""
    return Units(([5] * length,), (0,), (length,), Truncation(length, length, ()))


def attention_by_hand(
    attention: Any, asking: Tensor, rows: Tensor, seen: list[tuple[Tensor, Tensor]]
) -> Tensor:
    """Attend in loops.

    Args:
        attention: names the matrices.
        asking: [L, D], normed states of the tokens.
        rows: which of them, [L].
        seen: of each token, the keys and values that it sees, [M, D].

    Returns:
        [L, D].
    """
    outputs, width = [], attention.head_dim
    for index, (keys, values) in zip(rows.tolist(), seen, strict=True):
        query = attention.q_proj(asking[index])
        heads = []
        for start in range(0, len(query), width):
            of_head = slice(start, start + width)
            scores = torch.stack([query[of_head] @ key[of_head] for key in keys]) / width**0.5
            heads.append(
                sum(w * v[of_head] for w, v in zip(scores.softmax(0), values, strict=True))
            )
        outputs.append(attention.out_proj(torch.cat(heads)))
    return torch.stack(outputs) if outputs else asking


def windows_by_hand(attention: Any, states: Tensor, fill: bool) -> list[tuple[int, Tensor, Tensor]]:
    """Return (last token, key, value) of the first token and of every window of a pass; `fill` up a last one."""
    if not len(states):
        return []
    made = [(0, attention.k_proj(states[0]), attention.v_proj(states[0]))]
    for start in range(0, len(states), WINDOW):
        if start + WINDOW > len(states) and not fill:
            break
        pair = []
        for project, convolution in (
            (attention.k_proj, attention.key_compression),
            (attention.v_proj, attention.value_compression),
        ):
            vector = convolution.bias
            for offset, state in enumerate(states[start : start + WINDOW]):
                vector = vector + convolution.weight[:, :, offset] @ project(state)
            pair.append(vector)
        made.append((start + WINDOW - 1, *pair))
    return made


def by_hand(model: Any, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the states behind the last norm of all tokens of a source [S, D] and a target [T, D], in loops."""
    stack = model.model.encoder
    positions = sinusoid(torch.arange(len(source) + len(target)), model.config.d_model).to(
        model.dtype
    )
    states = stack.embed_tokens(torch.cat([source, target])) * model.config.d_model**0.5 + positions
    parts = [states[: len(source)], states[len(source) :]]
    for index, layer in enumerate(stack.layers):
        attention, normed = layer.self_attn, [layer.self_attn_layer_norm(part) for part in parts]
        if index % 2:
            sides = [
                windows_by_hand(attention, normed[0], True),
                windows_by_hand(attention, normed[1], False),
            ]
        for which, part in enumerate(normed):
            seen = []
            for place in range(len(part)):
                if index % 2:
                    own = [one for one in sides[which] if one[0] <= place]
                    found = [one[1:] for one in (sides[0] if which else []) + own]
                else:
                    block = part[place // BLOCK * BLOCK : place + 1]
                    found = [(attention.k_proj(state), attention.v_proj(state)) for state in block]
                seen.append(
                    (
                        torch.stack([key for key, _ in found]),
                        torch.stack([value for _, value in found]),
                    )
                )
            after = parts[which] + attention_by_hand(attention, part, torch.arange(len(part)), seen)
            parts[which] = after + layer.fc2(layer.fc1(layer.final_layer_norm(after)).relu())
    return stack.layer_norm(parts[0]), stack.layer_norm(parts[1])


@pytest.mark.parametrize(("sources", "targets"), [(0, 5), (1, 1), (2, 4), (3, 3), (8, 9), (13, 10)])
def test_it_computes_what_its_docstring_says(sources: int, targets: int) -> None:
    """In double precision, states of source and target are those of loops over tokens, heads, blocks and windows."""
    model = network().double()
    ids, given = labels(targets)[0], batch(sources)
    found = model.train()(**given, decoder_input_ids=ids[None])
    read = model.model.encoder(**given)
    with torch.no_grad():
        of_source, of_target = by_hand(model, given["input_ids"][0, 0, :sources], ids)
    torch.testing.assert_close(read.last_hidden_state[0, :sources], of_source)
    torch.testing.assert_close(found.logits[0], of_target @ model.lm_head.weight.T)
    torch.testing.assert_close(
        model.eval()(**given, decoder_input_ids=ids[None]).logits, found.logits
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_source_s_loss_is_a_plain_mean_of_cross_entropies(
    smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What training adds is the mean over all source tokens of predicting the next, the separator last; in pieces."""
    monkeypatch.setattr(tdmca, "_PIECE_TOKENS", 4)
    model, given, target = (
        network(label_smoothing=smoothing).train(),
        batch(11, 0, 1, 6),
        labels(5, 7, 2, 3),
    )
    following = []
    for ids, real in zip(given["input_ids"][:, 0], given["unit_mask"][:, 0], strict=True):
        following.append(
            torch.cat([ids[real][1:], torch.tensor([START])]) if real.any() else ids[:0]
        )
    states = model.model.encoder(**given).last_hidden_state[given["unit_mask"][:, 0]]
    expected = F.cross_entropy(
        model.lm_head(states), torch.cat(following), label_smoothing=smoothing
    )
    loss = model(**given, labels=target).loss
    model.config.source_loss = False
    torch.testing.assert_close(loss - model(**given, labels=target).loss, expected)


def test_accumulated_as_one_batch() -> None:
    """Two half batches, given the counts of both, have the losses that add up to the whole batch's."""
    model = network().train()
    collate = SourceCountingCollator(PAD)
    rows = [make_unit_row(source(3 + index), [7] * (2 + 3 * index)) for index in range(4)]
    whole = collate(rows)
    assert int(whole["num_source_tokens"]) == 3 + 4 + 5 + 6
    assert "num_source_tokens" not in collate([make_unit_row(source(2))])
    counts = {"num_source_tokens": whole["num_source_tokens"], "num_items_in_batch": 2 + 5 + 8 + 11}
    halves = sum(model(**{**collate(half), **counts}).loss for half in (rows[:2], rows[2:]))
    torch.testing.assert_close(halves, model(**whole).loss)


def test_weights_at_the_paper_s_size() -> None:
    """35.3 million: 32,000 · 512 + 5 layers + 2 · 2 convolutions + the last norm.

    A layer has 4 · (512² + 512) weights for attention, 2 · 512 · 2,048 + 2,048 + 512 for the feed-forward, and 2 norms
    of 2 · 512; a convolution has 3 · 512² + 512.
    """
    with torch.device("meta"):
        model = TdmcaForConditionalGeneration(
            ModelBuilder(TdmcaConfig(), TdmcaForConditionalGeneration).model_config(
                32_000, (PAD, START, END)
            )
        )
    layer = 4 * (512**2 + 512) + 2 * 512 * 2048 + 2048 + 512 + 2 * 2 * 512
    convolutions = 2 * 2 * (3 * 512**2 + 512)
    expected = 32_000 * 512 + 5 * layer + convolutions + 2 * 512
    assert sum(weight.numel() for weight in model.parameters()) == expected == 35_294_720
    for index, one in enumerate(model.model.encoder.layers):
        assert isinstance(one.self_attn, CompressedAttention if index % 2 else LocalAttention)
