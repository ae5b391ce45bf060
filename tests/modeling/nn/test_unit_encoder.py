import copy

import pytest
import torch
from hypothesis import given, strategies as st
from torch.testing import assert_close
from transformers import PegasusConfig

from longsumbench.modeling.nn.unit_encoder import PIECE_TOKENS, UnitEncoder, pieces

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
        assert_close(states, whole)
        states.pow(2).sum().backward()
        gradients.append(model.embed_tokens.weight.grad.to_dense())
    assert_close(gradients[1], gradients[0])
    assert_close(gradients[2], gradients[0])
    assert_close(gradients[3], gradients[2], rtol=0, atol=0)


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
