"""ETADS's network: its size, the invariances of its reading, and its writing with and without a cache."""

from typing import Any

import pytest
import torch
from support.etads_networks import network

from longsumbench.modeling.model_builder import ModelBuilder
from longsumbench.models.etads.attention import FocusAttention, SaliencyAttention
from longsumbench.models.etads.config import EtadsConfig
from longsumbench.models.etads.model import EtadsForConditionalGeneration

pytestmark = pytest.mark.usefixtures("float64")


def test_null_means_all_layers_whatever_their_number() -> None:
    """Null follows the depth, an empty list stays empty, and the order of a list does not matter."""
    config = EtadsConfig(encoder_layers=6, focus_layers=None, saliency_layers=[])
    assert config.focus_layers == [1, 2, 3, 4, 5, 6]
    assert config.saliency_layers == []
    assert EtadsConfig(focus_layers=[3, 1]) == EtadsConfig(focus_layers=[1, 3])


def at_paper_size(**changes: Any) -> EtadsForConditionalGeneration:
    """Return the network at the paper's size, its weights never made."""
    own = ModelBuilder(
        EtadsConfig(**{"focus_layers": [], "saliency_layers": [], **changes}),
        EtadsForConditionalGeneration,
    )
    with torch.device("meta"):
        return EtadsForConditionalGeneration(own.model_config(50_000, (0, 1, 2)))


def millions(model: EtadsForConditionalGeneration, stack: str) -> float:
    """Count the weights of a stack with its embeddings, without positions, as the paper's Table 4 must have done."""
    named = getattr(model.model, stack).named_parameters()
    return sum(weight.numel() for name, weight in named if "embed_positions" not in name) / 1e6


@pytest.mark.parametrize(
    ("layers", "encoder", "decoder"), [(2, 31.90, 34.01), (4, 38.21, 42.42), (6, 44.51, 50.82)]
)
def test_stacks_have_as_many_weights_as_in_table_4(
    layers: int, encoder: float, decoder: float
) -> None:
    """Embeddings and 2, 4 or 6 layers of a stack (ETADS, Table 4, whose decoders also have an output bias, 0.05M)."""
    model = at_paper_size(encoder_layers=layers, decoder_layers=layers)
    assert millions(model, "encoder") == pytest.approx(encoder, abs=0.006)
    assert millions(model, "decoder") == pytest.approx(decoder, abs=0.006)


def test_all_that_the_paper_adds_is_small() -> None:
    """Focus in a layer adds 2 · 8 · 64² + 2 · 8 · 64 weights, saliency 2 · 8 · 64²; source, target and output share."""

    def count(model: EtadsForConditionalGeneration) -> int:
        return sum(weight.numel() for weight in model.parameters())

    basic = count(at_paper_size())
    assert count(at_paper_size(focus_layers=[1, 2, 3])) - basic == 3 * (2 * 8 * 64**2 + 2 * 8 * 64)
    assert count(at_paper_size(saliency_layers=[4])) - basic == 2 * 8 * 64**2
    model = network()
    shared = model.model.shared.weight
    assert all(part.weight is shared for part in (model.lm_head, model.model.encoder.embed_tokens))
    assert model.model.decoder.embed_tokens.weight is shared


def test_layers_are_counted_from_one() -> None:
    """The lists name which encoder layers focus and which decoder layers select; the others are the library's."""
    model = network(encoder_layers=3, decoder_layers=3, focus_layers=[1, 3], saliency_layers=[2])
    focus = [isinstance(layer.self_attn, FocusAttention) for layer in model.model.encoder.layers]
    saliency = [
        isinstance(layer.encoder_attn, SaliencyAttention) for layer in model.model.decoder.layers
    ]
    assert focus == [True, False, True]
    assert saliency == [False, True, False]


def test_what_a_checkpoint_lacks_starts_as_it_should(tmp_path: Any) -> None:
    """Opened with layers that focus and select, a basic checkpoint: its new weights are Xavier's, not garbage."""
    network().save_pretrained(tmp_path)
    model = EtadsForConditionalGeneration.from_pretrained(
        tmp_path, focus_layers=[1, 2], saliency_layers=[1, 2]
    )
    for name, weight in model.named_parameters():
        if "focus." in name or "gate." in name:
            assert (
                0.01
                < weight.abs().max().item()
                <= (6 / (16 + (16 if weight.dim() == 3 else 1))) ** 0.5
            ), name
