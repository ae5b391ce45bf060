"""T-DMCA's network: its attention by hand, causality in both passes, its two losses, and writing with a cache."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from longsumbench.core import Truncation
from longsumbench.modeling.collate import row_of_units
from longsumbench.modeling.model_builder import ModelBuilder
from longsumbench.modeling.nn.device import to_device
from longsumbench.modeling.nn.penalties import Penalties
from longsumbench.modeling.nn.positions import sinusoid
from longsumbench.modeling.units import Units
from longsumbench.models.tdmca import model as tdmca
from longsumbench.models.tdmca.attention import CompressedAttention, LocalAttention, Past
from longsumbench.models.tdmca.config import TdmcaConfig
from longsumbench.models.tdmca.model import (
    SourceCountingCollator,
    TdmcaForConditionalGeneration,
    TdmcaModelConfig,
)

pytestmark = pytest.mark.usefixtures("float64")

PAD, START, END = 0, 1, 2
BLOCK, WINDOW = 4, 3
SIZES = {
    "vocab_size": 40,
    "d_model": 16,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "dropout": 0.0,
    "block_length": BLOCK,
    "compression": WINDOW,
    "pad_token_id": PAD,
    "bos_token_id": START,
    "eos_token_id": END,
    "decoder_start_token_id": START,
    "forced_eos_token_id": None,
}


def network(**changes: Any) -> Any:
    """Return a network whose weights are the same every time, none of them zero or one."""
    torch.manual_seed(0)
    model = TdmcaForConditionalGeneration(TdmcaModelConfig(**{**SIZES, **changes})).eval()
    for name, weight in model.named_parameters():
        scale = (
            0.05 if weight.dim() == 1 else 0.5 if "layers" in name else 0.15
        )  # else it would repeat its last token
        weight.data += scale * torch.randn_like(weight)
    return model


def tokens(*lengths: int, seed: int = 7) -> tuple[Tensor, Tensor]:
    """Return rows of so many tokens, padded, and where these are."""
    generator = torch.Generator().manual_seed(seed)
    longest = max(1, *lengths)
    ids = torch.randint(3, 40, (len(lengths), longest), generator=generator)
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    return ids.masked_fill(~mask, PAD), mask


def batch(*lengths: int) -> dict[str, Tensor]:
    """Return a batch of sources of so many tokens."""
    ids, mask = tokens(*lengths)
    return {"input_ids": ids[:, None], "unit_mask": mask[:, None]}


def labels(*lengths: int) -> Tensor:
    """Return targets of so many tokens."""
    ids, mask = tokens(*lengths, seed=11)
    return ids.masked_fill(~mask, -100)


def source(length: int) -> Units:
    """Return a source of so many tokens, all alike."""
    return Units(([5] * length,), (0,), (length,), Truncation(length, length, ()))


def changed(ids: Tensor, place: int) -> int:
    """Put another token in a place of a text, and return the one that was there."""
    before = int(ids[place])
    ids[place] = before + 1 if before < 39 else 3
    return before


def alone(inputs: dict[str, Tensor], index: int, length: int) -> dict[str, Tensor]:
    """Return one example of a batch, without padding."""
    return {name: value[index : index + 1, :, : max(1, length)] for name, value in inputs.items()}


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


def influences(function: Any, length: int) -> list[set[int]]:
    """Return, of each output token, the tokens of the input that it depends on."""
    states = torch.randn(1, length, 16, generator=torch.Generator().manual_seed(5))
    found: Tensor = torch.autograd.functional.jacobian(function, states)
    return [set(row.gt(1e-6).nonzero().flatten().tolist()) for row in found.abs().sum((0, 2, 3, 5))]


def test_windows_by_hand() -> None:
    """With windows of 3, tokens 2 to 4 see the first one, token 5 the second one, too, and all see token 0.

    Tokens 0 and 1 see nothing else, so that their own states do not matter.
    """
    attention = CompressedAttention(TdmcaModelConfig(**SIZES), 1, WINDOW)
    every = torch.ones(1, 7, dtype=torch.bool)

    def over_source(states: Tensor) -> Tensor:
        return attention.over_source(states, attention.remember(states, every))

    def over_target(states: Tensor) -> Tensor:
        nothing = attention.remember(torch.zeros(1, 1, 16), torch.zeros(1, 1, dtype=torch.bool))
        return attention.over_target(states, nothing, Past())

    first, second = {0, 1, 2}, {0, 1, 2, 3, 4, 5}
    expected = [{0}, {0}, first, first | {3}, first | {4}, second, second | {6}]
    assert influences(over_source, 7) == expected
    assert influences(over_target, 7) == expected


def test_a_later_token_changes_nothing_earlier() -> None:
    """Whatever token of source or target is another one, all states before it stay as they were."""
    model, given, target = network().train(), batch(11), labels(9)

    def states() -> tuple[Tensor, Tensor]:
        found = model(**given, decoder_input_ids=target)
        return model.model.encoder(**given).last_hidden_state, found.logits

    with torch.no_grad():
        before = states()
        for place in range(11):
            kept = changed(given["input_ids"][0, 0], place)
            after = states()
            assert torch.equal(after[0][:, :place], before[0][:, :place])
            assert not torch.allclose(after[0][:, place], before[0][:, place])
            assert not torch.allclose(after[1], before[1])
            given["input_ids"][0, 0, place] = kept
        for place in range(9):
            kept = changed(target[0], place)
            after = states()
            torch.testing.assert_close(after[1][:, :place], before[1][:, :place])
            assert not torch.allclose(after[1][:, place], before[1][:, place])
            target[0, place] = kept


@pytest.mark.parametrize("training", [True, False])
def test_alone_as_in_a_batch(training: bool) -> None:
    """An example gives the same logits alone and next to longer ones, be its source empty or short of a window."""
    model, sizes, target = (
        network(source_loss=training).train(training),
        (23, 0, 2, 9),
        labels(6, 11, 3, 9),
    )
    together = batch(*sizes)
    every = model(**together, labels=target).logits
    for index, size in enumerate(sizes):
        found = model(**alone(together, index, size), labels=target[index : index + 1]).logits
        torch.testing.assert_close(every[index : index + 1], found)


@pytest.mark.parametrize("sizes", [[1] * 13, [2, 1, 4, 6], [13]])
def test_step_by_step_as_all_at_once(sizes: list[int]) -> None:
    """However many tokens a step adds to the cache, it gives the logits of all at once, with beams or without."""
    model, given = network(), batch(10, 0, 5)
    for beams in (1, 2):
        ids, _ = tokens(*[13] * 3 * beams)
        cache, found = model.new_cache(), []
        with torch.no_grad():
            reading = model.model.encoder(**given)
            for some in torch.split(ids, sizes, 1):
                step = model(
                    decoder_input_ids=some,
                    encoder_outputs=reading,
                    past_key_values=cache,
                    use_cache=True,
                )
                found.append(step.logits)
            expected = model(decoder_input_ids=ids, encoder_outputs=reading).logits
        torch.testing.assert_close(torch.cat(found, 1), expected)


def test_a_reordered_cache_is_that_of_the_chosen_beams() -> None:
    """After beams were reordered, the next logits are those of the chosen beams' own tokens."""
    model, given = network(), batch(10, 5)
    ids, _ = tokens(*[9] * 6)
    chosen = torch.tensor([2, 2, 0, 4, 3, 4])
    with torch.no_grad():
        reading, cache = model.model.encoder(**given), model.new_cache()
        model(
            decoder_input_ids=ids[:, :8],
            encoder_outputs=reading,
            past_key_values=cache,
            use_cache=True,
        )
        cache.reorder_cache(chosen)
        step = model(
            decoder_input_ids=ids[:, 8:],
            encoder_outputs=reading,
            past_key_values=cache,
            use_cache=True,
        )
        whole = torch.cat([ids[chosen, :8], ids[:, 8:]], 1)
        expected = model(decoder_input_ids=whole, encoder_outputs=reading).logits[:, -1:]
    torch.testing.assert_close(step.logits, expected)


@pytest.mark.parametrize("beams", [1, 2, 5])
def test_cached_as_uncached(beams: int) -> None:
    """Writing with a cache gives the tokens of writing without, greedily and with beams that a length norm ranks."""
    model, given = network(), batch(23, 0, 9, 2)
    options = {"pad_token_id": PAD, "max_new_tokens": 14, "min_new_tokens": 6, "num_beams": beams}
    with torch.inference_mode(), model.ranked_by(Penalties("wu", 0.4)):
        found = [
            model.generate(**given, **options, use_cache=use_cache) for use_cache in (True, False)
        ]
    assert torch.equal(*found)
    assert len({tuple(row) for row in found[0].tolist()}) > 1


@pytest.mark.parametrize("source_loss", [True, False])
def test_every_weight_learns(source_loss: bool) -> None:
    """The loss has a gradient for every weight, with the source's part and without."""
    model = network(source_loss=source_loss).train()
    model(**batch(20, 12), labels=labels(5, 8)).loss.backward()
    without = [
        name
        for name, weight in model.named_parameters()
        if weight.grad is None or not weight.grad.any()
    ]
    assert not without


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
    gradients = []
    for of_source in (expected, loss):
        model.zero_grad()
        of_source.backward(retain_graph=True)
        gradients.append(model.lm_head.weight.grad.clone())
    model.zero_grad()
    model(**given, labels=target).loss.backward()
    torch.testing.assert_close(gradients[0] + model.lm_head.weight.grad, gradients[1])


def test_accumulated_as_one_batch() -> None:
    """Two half batches, given the counts of both, have the losses that add up to the whole batch's."""
    model = network().train()
    collate = SourceCountingCollator(PAD)
    rows = [row_of_units(source(3 + index), [7] * (2 + 3 * index)) for index in range(4)]
    whole = collate(rows)
    assert int(whole["num_source_tokens"]) == 3 + 4 + 5 + 6
    assert "num_source_tokens" not in collate([row_of_units(source(2))])
    counts = {"num_source_tokens": whole["num_source_tokens"], "num_items_in_batch": 2 + 5 + 8 + 11}
    halves = sum(model(**{**collate(half), **counts}).loss for half in (rows[:2], rows[2:]))
    torch.testing.assert_close(halves, model(**whole).loss)


def test_a_checkpoint_gives_back_the_network(tmp_path: Any) -> None:
    """Saved and opened by the library alone, it gives the same logits, and shares source, target and output matrix."""
    model, given, target = network(), batch(11, 5), labels(4, 7)
    model.save_pretrained(tmp_path)
    opened = TdmcaForConditionalGeneration.from_pretrained(tmp_path).eval().double()
    torch.testing.assert_close(
        opened(**given, labels=target).logits, model.double()(**given, labels=target).logits
    )
    assert opened.lm_head.weight is opened.model.encoder.embed_tokens.weight


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
    kinds = [type(one.self_attn) for one in model.model.encoder.layers]
    assert kinds == [
        LocalAttention,
        CompressedAttention,
        LocalAttention,
        CompressedAttention,
        LocalAttention,
    ]


def test_a_step_reads_nothing_from_the_device() -> None:
    """Where the source is padded is known on the CPU; a tensor of the meta device that is read raises an error."""
    (ids, mask), (labels, _), meta = tokens(9, 6), tokens(4, 4, seed=8), torch.device("meta")
    given = {"input_ids": ids[:, None], "unit_mask": mask[:, None], "labels": labels}
    model = network().to(meta).train()
    model(
        **{name: to_device(value, meta) for name, value in given.items()}, num_source_tokens=15
    ).loss.backward()
    assert all(weight.grad is not None for weight in model.parameters())
