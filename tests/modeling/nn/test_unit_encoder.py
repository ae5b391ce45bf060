import copy

import pytest
import torch
from hypothesis import given, strategies as st
from transformers import PegasusConfig
from transformers.models.pegasus.modeling_pegasus import PegasusEncoder

from longsumbench.modeling.nn.device import on_host, to_device
from longsumbench.modeling.nn.unit_encoder import (
    GPU_PIECE_TOKENS,
    PIECE_TOKENS,
    UnitEncoder,
    gather,
    piece_tokens,
    pieces,
    spread_units,
)

pytestmark = pytest.mark.usefixtures("float64")

CONFIG = PegasusConfig(
    vocab_size=50,
    d_model=16,
    encoder_layers=2,
    encoder_attention_heads=2,
    encoder_ffn_dim=24,
    max_position_embeddings=32,
)


@pytest.fixture(scope="module")
def encoder() -> UnitEncoder:
    torch.manual_seed(0)
    return UnitEncoder(CONFIG).eval()


def encode(encoder: UnitEncoder, *units: torch.Tensor) -> torch.Tensor:
    """Return the joined states of one example's units: [S, D]."""
    ids = torch.nn.utils.rnn.pad_sequence(list(units), batch_first=True)[None]
    mask = torch.arange(ids.shape[2]) < torch.tensor([len(unit) for unit in units])[:, None]
    return encoder(ids, mask[None]).last_hidden_state[0]


def test_one_full_unit_is_the_library_encoder(encoder: UnitEncoder) -> None:
    """A single unit without padding gives the states of a stock encoder with the same weights."""
    stock = PegasusEncoder(CONFIG).eval()
    stock.load_state_dict(encoder.state_dict(), strict=False)  # ours has no table of positions
    ids = torch.randint(1, 50, (2, 1, 7))
    ours = encoder(ids, torch.ones_like(ids, dtype=torch.bool))
    torch.testing.assert_close(ours.last_hidden_state, stock(ids[:, 0]).last_hidden_state)
    assert ours.mask.all()


def test_units_do_not_see_each_other_and_absent_ones_change_nothing(encoder: UnitEncoder) -> None:
    """A unit's states are the same alone, next to others, behind padding and next to absent units."""
    first, second = torch.randint(1, 50, (3,)), torch.randint(1, 50, (5,))
    ids, mask = torch.zeros(2, 3, 6, dtype=torch.long), torch.zeros(2, 3, 6, dtype=torch.bool)
    ids[0, 0, :3], ids[0, 2, :5], ids[1, 1, :3] = first, second, first
    mask[0, 0, :3] = mask[0, 2, :5] = mask[1, 1, :3] = True
    together = encoder(ids, mask)
    assert together.mask.tolist() == [[True] * 8, [True] * 3 + [False] * 5]
    alone = torch.cat([encode(encoder, first), encode(encoder, second)])
    torch.testing.assert_close(together.last_hidden_state[0], alone)
    torch.testing.assert_close(together.last_hidden_state[1, :3], alone[:3])


def test_many_units_are_encoded_piece_by_piece(
    encoder: UnitEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of a few tokens, or of equal lengths alone, give the states of one big piece.

    Under checkpointing they give the same gradients.
    """
    torch.manual_seed(3)
    units = [torch.randint(1, 50, (size,)) for size in (4, 1, 7, 7, 2, 5)]
    whole = encode(encoder, *units)
    gradients = []
    monkeypatch.setattr("longsumbench.modeling.nn.unit_encoder.ENOUGH_TOKENS", 1)
    for limit, padding, checkpointing in (
        (PIECE_TOKENS, 1, False),
        (PIECE_TOKENS, 0, False),
        (8, 1, False),
        (8, 1, True),
    ):
        monkeypatch.setattr("longsumbench.modeling.nn.unit_encoder.PIECE_TOKENS", limit)
        monkeypatch.setattr(UnitEncoder, "padding", padding)
        model = copy.deepcopy(encoder).train()
        model.dropout = 0.0
        for layer in model.layers:
            layer.dropout = 0.0
        if checkpointing:
            getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)()
        states = encode(model, *units)
        torch.testing.assert_close(states, whole)
        states.pow(2).sum().backward()
        gradients.append(model.embed_tokens.weight.grad.to_dense())
    torch.testing.assert_close(gradients[1], gradients[0])
    torch.testing.assert_close(gradients[2], gradients[0])
    torch.testing.assert_close(gradients[3], gradients[2], rtol=0, atol=0)


def test_pieces_by_hand() -> None:
    """At 8 tokens a piece, units of 9, 4, 4, 2, 1, 1 and 1 tokens make 9 | 4 4 | 2 1 1 1."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longsumbench.modeling.nn.unit_encoder.PIECE_TOKENS", 8)
        dealt = list(pieces([9, 4, 4, 2, 1, 1, 1]))
    assert dealt == [(slice(0, 1), 9), (slice(1, 3), 4), (slice(3, 7), 2)]
    assert list(pieces([4, 4, 2], limit=4)) == [
        (slice(0, 1), 4),
        (slice(1, 2), 4),
        (slice(2, 3), 2),
    ]


def test_a_gpu_reads_larger_pieces() -> None:
    """A CPU's pieces fit its cache; a GPU gets 65,536 tokens, and may start a new piece after 4,096 instead of 256."""
    assert piece_tokens(torch.device("cpu")) == PIECE_TOKENS == 4_096
    assert piece_tokens(torch.device("cuda", 1)) == GPU_PIECE_TOKENS == 65_536
    lengths = [512] * 10 + [256] * 10
    assert [rows for rows, _ in pieces(lengths, 0.15, PIECE_TOKENS)] == [
        slice(0, 8),
        slice(8, 10),
        slice(10, 20),
    ]
    assert [rows for rows, _ in pieces(lengths[2:], 0.15, GPU_PIECE_TOKENS)] == [
        slice(0, 8),
        slice(8, 18),
    ]
    assert [rows for rows, _ in pieces(lengths[3:], 0.15, GPU_PIECE_TOKENS)] == [
        slice(0, 8),
        slice(8, 17),
    ]


def test_encoding_reads_nothing_from_the_device(
    encoder: UnitEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the mask was copied there, where units are is known on the CPU: equal to what an encoding there computes.

    The meta device has no numbers, so that each of its tensors that is read raises an error.
    """
    monkeypatch.setattr("longsumbench.modeling.nn.unit_encoder.PIECE_TOKENS", 8)
    lengths = torch.tensor([[3, 0, 5], [6, 1, 0]])
    mask = torch.arange(6) < lengths[..., None]
    ids, meta = torch.randint(1, 50, mask.shape), torch.device("meta")
    copied = to_device(mask, meta)
    assert (copied.device, on_host(copied) is mask, on_host(mask) is mask) == (meta, True, True)
    table, there = (
        encoder.encode(ids, mask),
        copy.deepcopy(encoder).to(meta).train().encode(ids.to(meta), copied),
    )
    assert torch.equal(on_host(there.lengths), table.lengths)
    assert torch.equal(on_host(there.starts), table.starts)
    assert torch.equal(table.lengths, lengths)
    assert (
        there.memory().last_hidden_state.shape
        == table.memory().last_hidden_state.shape
        == (2, 8, 16)
    )
    there.last_hidden_state.sum().backward()


@given(st.lists(st.integers(1, 40), max_size=40), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_pieces_hold_every_unit_once(lengths: list[int], padding: float) -> None:
    """Pieces follow one another, hold no more than their tokens, and no unit that is mostly padding without need."""
    most, enough = 64, 16
    lengths.sort(reverse=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longsumbench.modeling.nn.unit_encoder.PIECE_TOKENS", most)
        patch.setattr("longsumbench.modeling.nn.unit_encoder.ENOUGH_TOKENS", enough)
        dealt = list(pieces(lengths, padding))
    assert [at for rows, _ in dealt for at in range(rows.start, rows.stop)] == list(
        range(len(lengths))
    )
    for rows, longest in dealt:
        held = lengths[rows]
        assert longest == held[0]
        assert len(held) * longest <= max(most, longest)
        needed = -(-enough // longest)  # units without which the piece would be too small
        assert all(length >= (1 - padding) * longest for length in held[needed:])


def test_spread_by_hand() -> None:
    """Two tokens of the unit at row 5 and one of the unit at row 9: rows 5, 6, 9."""
    positions, mask, units, offsets = spread_units(
        torch.tensor([[5, 0, 9], [1, 0, 0]]), torch.tensor([[2, 0, 1], [1, 0, 0]])
    )
    assert positions.tolist() == [[5, 6, 9], [1, 0, 0]]
    assert mask.tolist() == [[True] * 3, [True, False, False]]
    assert units[0].tolist() == [0, 0, 2]
    assert offsets[0].tolist() == [0, 1, 0]


def test_gathering_is_a_product_with_a_one_hot_matrix() -> None:
    """Taking rows by their numbers gives the values and gradients of the paper's matrix product."""
    torch.manual_seed(0)
    states, positions = torch.randn(6, 4, dtype=torch.double), torch.tensor([[4, 1, 1], [0, 5, 0]])
    mask, weight = (
        torch.tensor([[True, True, True], [True, True, False]]),
        torch.randn(2, 3, 4, dtype=torch.double),
    )
    results = []
    for gathered in (
        lambda table: gather(table, positions, mask).last_hidden_state,
        lambda table: torch.nn.functional.one_hot(positions, 6).double() @ table,
    ):
        table = states.clone().requires_grad_()
        memory = gathered(table)
        (memory * weight)[mask].sum().backward()
        results.append((memory[mask], table.grad))
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)
