from collections.abc import Iterator
from typing import Any

import pytest
import torch
from support.toys import settings_of
from transformers import (
    EncoderNoRepeatNGramLogitsProcessor,
    GenerationConfig,
    PegasusConfig,
    PegasusForConditionalGeneration,
)

from longsumbench.core import Decoding
from longsumbench.modeling import generation
from longsumbench.modeling.generation import SourceNgrams, decode

CONFIG = PegasusConfig(
    vocab_size=40,
    d_model=16,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=16,
    decoder_ffn_dim=16,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
    forced_eos_token_id=None,
    init_std=0.5,
)


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(3)
    return PegasusForConditionalGeneration(CONFIG).eval()


def inputs() -> dict[str, torch.Tensor]:
    torch.manual_seed(4)
    ids = torch.randint(3, 40, (3, 8))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}


def test_a_model_is_moved_outside_inference_mode(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights that move to another device in inference mode could not be trained afterwards."""
    modes: list[bool] = []
    monkeypatch.setattr(model, "to", lambda device: modes.append(torch.is_inference_mode_enabled()))
    decode(model, inputs(), Decoding(), limit=2)
    assert modes == [False]


ORACLES = {  # settings, and the library's arguments like them
    "repetition penalty": ("repetition_penalty=1.8", "repetition_penalty=1.8"),
    "n-grams in beams": (
        "encoder_no_repeat_ngram=2 no_repeat_ngram=2 num_beams=3",
        "encoder_no_repeat_ngram_size=2 no_repeat_ngram_size=2 num_beams=3",
    ),
    "early stopping": ("num_beams=4 length_penalty=4.0 early_stopping=true",) * 2,
    "forced end": ("forced_eos=true max_length=6", "forced_eos_token_id=2 max_length=7"),
    # The library counts the start token.
    "lengths": ("min_length=5 max_length=8 num_beams=2", "min_length=6 max_length=9 num_beams=2"),
    "sampling": (
        "temperature=0.7 top_p=0.9 seed=5",
        "do_sample=true temperature=0.7 top_p=0.9 top_k=0",
    ),
    "new tokens": ("min_length=4 max_length=7", "min_new_tokens=4 max_new_tokens=7"),
}
BIAS = {"early stopping": 8.0}  # of the end token's logit: beams end at different steps
UNLIKE = {
    "num_beams": 2,
    "no_repeat_ngram_size": 1,
    "min_length": 9,
    "max_length": 11,
    "repetition_penalty": 3.0,
}


@pytest.fixture
def ending(model: Any, kind: str) -> Iterator[Any]:
    """Return the model with the kind's bias of the end token."""
    model.final_logits_bias[0, 2] = BIAS.get(kind, 0.0)
    yield model
    model.final_logits_bias[0, 2] = 0.0


@pytest.mark.parametrize("kind", ORACLES)
def test_settings_are_those_of_the_library(
    kind: str, ending: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every setting writes what `generate` writes with its own arguments, whatever a checkpoint's defaults are."""
    ours, theirs = map(settings_of, ORACLES[kind])
    batch = {name: value for name, value in inputs().items() if name != "labels"}
    torch.manual_seed(5)
    with torch.inference_mode():
        expected = ending.generate(**batch, **{"max_length": 13, **theirs})[:, 1:].tolist()
    monkeypatch.setattr(
        ending, "generation_config", GenerationConfig(**UNLIKE, forced_eos_token_id=2)
    )
    before = ending.generation_config.to_dict()
    written, _ = decode(ending, inputs(), Decoding(**ours), limit=12)
    assert written == [ids[: ids.index(2)] if 2 in ids else ids for ids in expected]
    assert ending.generation_config.to_dict() == before


def test_an_output_that_is_cut_is_not_complete(model: Any) -> None:
    """A forced end token does not make a summary complete; one that the model ends before is."""
    for length in range(1, 12):
        free, free_complete = decode(model, inputs(), Decoding(max_length=length), limit=60)
        forced, complete = decode(
            model, inputs(), Decoding(max_length=length, forced_eos=True), limit=60
        )
        for one, other, ended, itself in zip(free, forced, free_complete, complete, strict=True):
            assert other == one[: length - 1]
            assert itself == (ended and len(one) < length - 1)


def test_n_grams_of_units() -> None:
    """n-grams lie in one unit, padding is in none, and every beam is compared with its own source."""
    ids = torch.tensor([[[3, 4, 0], [5, 6, 7]], [[4, 3, 0], [0, 0, 0]]])
    written = torch.tensor([[1, 3], [1, 5], [1, 4], [1, 3]])  # two beams of two examples
    allowed = SourceNgrams(2, ids, ids != 0)(written, torch.zeros(4, 8))
    assert allowed.isneginf().nonzero().tolist() == [[0, 4], [1, 6], [2, 3]]


@pytest.mark.parametrize("factor", [0, 1, generation._HASH_FACTOR])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_n_grams_are_those_of_the_library(
    size: int, factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table forbids what the library's processor forbids, also where different n-grams have the same hash."""
    monkeypatch.setattr(generation, "_HASH_FACTOR", factor)
    drawn = torch.Generator().manual_seed(size)
    source = torch.randint(5, (2, 30), generator=drawn)
    ours = SourceNgrams(size, source, torch.ones_like(source))
    theirs = EncoderNoRepeatNGramLogitsProcessor(size, source)
    scores = torch.randn(6, 6, generator=drawn)
    for length in range(1, 9):
        written = torch.randint(5, (6, length), generator=drawn)
        assert torch.equal(ours(written, scores), theirs(written, scores))


def test_precision_is_that_of_the_search_alone(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With bf16 the products are in bfloat16, and after the search everything is as before."""
    dtypes: list[torch.dtype] = []
    project = model.model.decoder.layers[0].fc1.register_forward_hook(
        lambda *outputs: dtypes.append(outputs[-1].dtype)
    )
    usual = decode(model, inputs(), Decoding(), limit=5)
    decode(model, inputs(), Decoding(precision="bf16"), limit=5)
    assert decode(model, inputs(), Decoding(), limit=5) == usual
    project.remove()
    assert dict.fromkeys(dtypes) == dict.fromkeys([torch.float32, torch.bfloat16])
    assert dtypes[0] == dtypes[-1] == torch.float32
