"""FLOPs that are counted without computing are those of a computed pass."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from longsumbench.core import registry
from longsumbench.modeling import flops
from longsumbench.modeling.flops import count_forward

SMALL = {"vocabulary_size": 300, "d_model": 32, "d_ff": 64, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 2}
SNIPPETS = {**SMALL, "snippet_length": 32, "num_snippets": 6, "decode_length": 40}
SYSTEMS: dict[str, dict[str, Any]] = {  # name → settings
    "trunc": {**SNIPPETS, "input_length": 100},
    "ca": {**SNIPPETS, "extractive_length": 64},
    "ea": {**SNIPPETS, "extractive_length": 64},
    "seal": {**SNIPPETS, "extractive_length": 64, "segment_length": 16},
    "pagesum": {**SMALL, "init": "random", "num_pages": 3, "page_size": 64, "decode_length": 40},
    "etads": {**SMALL, "input_length": 100, "decode_length": 40},
    "hierarchical_transformer": {**SMALL, "input_length": 300, "decode_length": 40},
    "flat_transformer": {**SMALL, "input_length": 100, "decode_length": 40},
    "tdmca": {"vocabulary_size": 300, "d_model": 32, "d_ff": 64, "num_heads": 2, "input_length": 300, "num_layers": 2},
}
WORDS, TARGET = 320, 30  # of the source, cut by most of the systems; of the summary


def settings_of(name: str) -> Any:
    return registry.config_of(name)(name=name, **SYSTEMS[name])


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_count_without_numbers_is_that_of_a_computed_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors that have only shapes give the same parameters, tokens, FLOPs and memory as tensors with numbers."""
    counted = count_forward(settings_of(name), WORDS, TARGET)
    monkeypatch.setattr(flops, "_ShapesOfFloats", nullcontext)
    computed = count_forward(settings_of(name), WORDS, TARGET)
    assert counted.saved_bytes == pytest.approx(computed.saved_bytes, rel=0.1)  # copies of views are not counted
    assert counted._replace(saved_bytes=0) == computed._replace(saved_bytes=0)


@pytest.mark.parametrize("name", ["seal", "pagesum", "etads", "hierarchical_transformer"])
def test_a_training_step_costs_three_forward_passes(name: str) -> None:
    """The FLOPs of a computed forward and backward pass are three times the count, within a factor of two."""
    settings = settings_of(name)
    counted = count_forward(settings, WORDS, TARGET)
    example = flops._made_example(WORDS, TARGET, multi_document=False)
    system = registry.systems.load(name)(flops._without_other_models(settings))
    batch = flops._batch_of(system.reader, example)
    model = system.Model(system.builder.model_config(300, (0, 1, 2))).train()
    labels = torch.full((1, counted.target_tokens), 4)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(**batch, labels=labels).loss.backward()
    assert counted.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert 1 / 2 < counter.get_total_flops() / (3 * counted.flops) < 2


def test_flops_of_a_decoder_are_those_by_hand() -> None:
    """Twice the decoder's layers add twice the products of one layer: 2 × weights × tokens, and attention."""
    one, two = (
        count_forward(registry.config_of("trunc")(**SYSTEMS["trunc"] | {"decoder_layers": n}), WORDS, TARGET)
        for n in (1, 2)
    )
    width, inner, source, target = 32, 64, 100, 31  # a target ends with its end token
    projections = (
        2 * width * width * (4 * target + 2 * target + 2 * source)
    )  # self; cross: queries and outputs; keys and values
    feed_forward = 2 * 2 * width * inner * target
    attention = 2 * 2 * width * target * (target + source)
    assert two.flops - one.flops == projections + feed_forward + attention
