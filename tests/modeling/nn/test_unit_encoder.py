import copy

import pytest
import torch
from hypothesis import given, strategies as st
from transformers import PegasusConfig
from transformers.models.pegasus.modeling_pegasus import PegasusEncoder

from longsumbench.modeling.nn.unit_encoder import PIECE_TOKENS, UnitEncoder, gather, pieces, spread_units

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
    ids = torch.nn.utils.rnn.pad_sequence(units, batch_first=True)[None]
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


def test_an_example_without_text_gives_one_empty_vector(encoder: UnitEncoder) -> None:
    """Nothing to read, alone or next to others, is one zero vector that can be attended to."""
    ids, mask = torch.ones(2, 1, 4, dtype=torch.long), torch.zeros(2, 1, 4, dtype=torch.bool)
    for there in (False, True):
        mask[1] = there
        memory = encoder(ids, mask)
        assert memory.mask[0].tolist() == [True] + [False] * (memory.mask.shape[1] - 1)
        assert not memory.last_hidden_state[0].any()


def test_many_units_are_encoded_piece_by_piece(encoder: UnitEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert list(pieces([4, 4, 2], limit=4)) == [(slice(0, 1), 4), (slice(1, 2), 4), (slice(2, 3), 2)]


def test_pieces_of_similar_length_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 16 tokens a piece, 4 being enough, and a quarter of padding: 8 7 | 5 5 | 2 1, for 2 alone is not enough."""
    monkeypatch.setattr("longsumbench.modeling.nn.unit_encoder.PIECE_TOKENS", 16)
    monkeypatch.setattr("longsumbench.modeling.nn.unit_encoder.ENOUGH_TOKENS", 4)
    assert list(pieces([8, 7, 5, 5, 2, 1], 0.25)) == [(slice(0, 2), 8), (slice(2, 4), 5), (slice(4, 6), 2)]
    assert list(pieces([8, 5, 5], 0.25)) == [(slice(0, 1), 8), (slice(1, 3), 5)]
    assert list(pieces([8, 5, 5])) == [(slice(0, 2), 8), (slice(2, 3), 5)]


@given(st.lists(st.integers(1, 40), max_size=40), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_pieces_hold_every_unit_once(lengths: list[int], padding: float) -> None:
    """Pieces follow one another, hold no more than their tokens, and no unit that is mostly padding without need."""
    most, enough = 64, 16
    lengths.sort(reverse=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longsumbench.modeling.nn.unit_encoder.PIECE_TOKENS", most)
        patch.setattr("longsumbench.modeling.nn.unit_encoder.ENOUGH_TOKENS", enough)
        dealt = list(pieces(lengths, padding))
    assert [at for rows, _ in dealt for at in range(rows.start, rows.stop)] == list(range(len(lengths)))
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
    mask, weight = torch.tensor([[True, True, True], [True, True, False]]), torch.randn(2, 3, 4, dtype=torch.double)
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


def test_absent_units_are_not_computed(encoder: UnitEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the real units of a batch enter the layers."""
    seen: list[int] = []
    monkeypatch.setattr(encoder.layers[0], "forward", lambda states, *a, **k: seen.append(len(states)) or states)
    mask = torch.zeros(4, 5, 3, dtype=torch.bool)
    mask[:, 0] = True
    mask[2, 1] = True
    encoder(torch.ones(4, 5, 3, dtype=torch.long), mask)
    assert seen == [5]


def test_gradients_reach_the_embeddings_through_the_packing(encoder: UnitEncoder) -> None:
    """Every real token's embedding gets a gradient; one that stands only under padding gets none."""
    ids, mask = torch.tensor([[[3, 4], [5, 9]], [[6, 9], [9, 9]]]), torch.ones(2, 2, 2, dtype=torch.bool)
    mask[0, 1, 1] = mask[1, 0, 1] = False
    mask[1, 1] = False
    encoder.zero_grad()
    memory = encoder(ids, mask)
    memory.last_hidden_state[memory.mask].pow(2).sum().backward()
    gradient = encoder.embed_tokens.weight.grad.to_dense().abs().sum(-1)  # sparse as long as nothing else adds to it
    assert all(gradient[token] > 0 for token in (3, 4, 5, 6))
    assert gradient[9] == 0
