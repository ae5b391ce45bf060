import pytest
import torch
from transformers import PegasusConfig
from transformers.models.pegasus.modeling_pegasus import PegasusEncoder

from longsumbench.nn.unit_encoder import UnitEncoder, joined_mask

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


def test_one_full_unit_is_the_library_encoder(encoder: UnitEncoder) -> None:
    """A single unit without padding gives the states of a stock encoder with the same weights."""
    stock = PegasusEncoder(CONFIG).eval()
    stock.load_state_dict(encoder.state_dict())
    ids = torch.randint(1, 50, (2, 1, 7))
    ours = encoder(ids, torch.ones_like(ids, dtype=torch.bool)).last_hidden_state
    torch.testing.assert_close(ours, stock(ids[:, 0]).last_hidden_state)


def test_units_do_not_see_each_other_and_absent_ones_change_nothing(encoder: UnitEncoder) -> None:
    """A unit's states are the same alone, beside others, behind padding and beside absent units."""
    first, second = torch.randint(1, 50, (5,)), torch.randint(1, 50, (3,))
    ids, mask = torch.zeros(1, 3, 6, dtype=torch.long), torch.zeros(1, 3, 6, dtype=torch.bool)
    ids[0, 0, :5], ids[0, 1, :3] = first, second
    mask[0, 0, :5] = mask[0, 1, :3] = True
    together = encoder(ids, mask).last_hidden_state  # [1, 18, 16]
    alone = encoder(first[None, None], torch.ones(1, 1, 5, dtype=torch.bool)).last_hidden_state
    torch.testing.assert_close(together[0, :5], alone[0], rtol=1e-5, atol=1e-5)
    assert not together[0, 12:].any()  # the absent unit
    assert joined_mask(mask).shape == together.shape[:2]


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
    encoder(ids, mask).last_hidden_state[joined_mask(mask)].pow(2).sum().backward()
    gradient = encoder.embed_tokens.weight.grad.abs().sum(-1)
    assert all(gradient[token] > 0 for token in (3, 4, 5, 6))
    assert gradient[9] == 0
