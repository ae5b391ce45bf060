"""Units read by encoders of transformers: their states, lengths and gradients."""

from pathlib import Path
from typing import Any

import pytest
import torch
from support.tiny_encoders import POSITIONS, TYPES, write_encoder
from transformers import AutoModel, AutoTokenizer, PegasusConfig

from longsumbench.modeling.nn.unit_encoder import PretrainedEncoder, UnitEncoder
from longsumbench.modeling.pretrained import Pretrained, stored_entries

TEXTS = ("kadan lofel. migor", "nuhit", "redan kafel logor mihit nudan. refel kagor")


def opened(folder: Path) -> tuple[Any, Any, PretrainedEncoder]:
    """Return the tokenizer, the network as transformers loads it, and the suite's encoder with its weights."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModel.from_pretrained(folder).eval()
    entries = stored_entries(Pretrained.saved(folder).encoder_config())
    start, end = [tokenizer.cls_token_id], [tokenizer.sep_token_id]
    encoder = PretrainedEncoder(entries, start, end, tokenizer.pad_token_id).eval()
    encoder.network.load_state_dict(network.state_dict(), strict=False)
    return tokenizer, network, encoder


def padded(tokenizer: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the texts as units without special tokens, and their mask."""
    batch = tokenizer(list(TEXTS), add_special_tokens=False, padding=True, return_tensors="pt")
    return batch["input_ids"], batch["attention_mask"].bool()


@pytest.mark.parametrize("kind", TYPES)
def test_a_units_states_are_those_of_the_text_alone(kind: str, tmp_path: Path) -> None:
    """In a batch with others, the states of a unit are transformers' of its text, without those of special tokens."""
    tokenizer, network, encoder = opened(write_encoder(tmp_path, kind))
    ids, mask = padded(tokenizer)
    states = encoder(ids, mask)
    for text, unit, real in zip(TEXTS, states, mask, strict=True):
        expected = network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 1:-1]
        torch.testing.assert_close(unit[real], expected, rtol=1e-4, atol=1e-5)


def test_units_as_long_as_the_positions(tmp_path: Path) -> None:
    """A unit fills the positions that special tokens leave."""
    encoder = opened(write_encoder(tmp_path))[2]
    assert encoder.longest == POSITIONS - 2
    ids = torch.full((1, encoder.longest), 7)
    assert encoder(ids, ids > 0).shape == (1, encoder.longest, 32)


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_checkpointing_gives_the_same_gradients(kind: str, tmp_path: Path) -> None:
    """Recomputed in pieces, an encoder's weights have the same gradients, dropout included."""
    tokenizer, _, encoder = opened(write_encoder(tmp_path, kind))
    ids, mask = padded(tokenizer)
    entries = {"network": stored_entries(encoder.network.config), "start": [2], "end": [3]}
    config = PegasusConfig(vocab_size=40, d_model=32, encoder_layers=2, pad_token_id=0)
    config.pretrained_encoder = entries
    gradients = []
    for checkpointing in (False, True):
        torch.manual_seed(0)
        units = UnitEncoder(config).train()
        units.pretrained.network.load_state_dict(encoder.network.state_dict())
        if checkpointing:
            getattr(units, "activation_checkpointing_enable", units.gradient_checkpointing_enable)()
        torch.manual_seed(1)
        units(ids[None], mask[None]).last_hidden_state.pow(3).sum().backward()
        gradients.append([weight.grad for weight in units.pretrained.parameters()])
    for plain, recomputed in zip(*gradients, strict=True):
        torch.testing.assert_close(recomputed, plain)
