"""Starting from a checkpoint: a tiny BART, written by the library, takes the place of those of the hub."""

from pathlib import Path
from typing import Any

import pytest
import torch
from support.pagesum_networks import DECODINGS, PAD, START, batch, stock
from support.tiny_seq2seq import checkpoint_of
from support.toys import ToySplit, refuses, settings_of, tiny_recipe
from torch import Tensor
from transformers import (
    BartForConditionalGeneration,
    BartModel,
)

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import FitContext
from longsumbench.errors import SuiteError
from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.models.pagesum.config import PageSumConfig
from longsumbench.models.pagesum.model import PageSumForConditionalGeneration
from longsumbench.models.pagesum.system import PageSum

CONFIDENCE = {"confidence.weight", "confidence.bias"}
TRAIN = ToySplit.of("train", 12)
TINY = {"page_size": 16, "num_pages": 3, "decode_length": 24}  # all else is the checkpoint's


def write_bart(folder: Path, **changes: Any) -> Path:
    """Write a tiny BART and a tokenizer to a folder, as `save_pretrained` does; return it."""
    tokenizer = train_tokenizer(TRAIN, 320)
    ids = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "bos", "eos")
    }
    ids["decoder_start_token_id"] = tokenizer.eos_token_id
    stock(vocab_size=len(tokenizer), **{**ids, **changes}).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny BART."""
    return write_bart(tmp_path_factory.mktemp("bart"))


def fitted(init: Path | str, cache: ArtifactCache, steps: int = 2, **changes: Any) -> PageSum:
    """Return a PageSum after a few steps from a checkpoint."""
    system = PageSum(PageSumConfig(**{**TINY, "init": str(init), **changes}))
    system.fit(FitContext(TRAIN, None, tiny_recipe(max_steps=steps, learning_rate=1e-4), cache))
    return system


def opened(folder: Path, **changes: Any) -> Any:
    """Return PageSum's network as it starts from a folder's checkpoint."""
    no_reader: Any = None
    return PageSum(PageSumConfig(**{**TINY, "init": str(folder), **changes})).builder.initial_model(
        no_reader
    )


def of_stock(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return pages of one an example as a stock BART reads them."""
    return {
        "input_ids": inputs["input_ids"][:, 0],
        "attention_mask": inputs["unit_mask"][:, 0].long(),
    }


def plain(ids: Tensor) -> list[list[int]]:
    """Return rows of ids without padding."""
    return [[token for token in row if token != PAD] for row in ids.tolist()]


@pytest.mark.parametrize(
    "how",
    [
        {"num_beams": 1, "no_repeat_ngram_size": 2},
        {"num_beams": 4, "length_penalty": 2.0, "no_repeat_ngram_size": 3, "min_new_tokens": 6},
    ],
)
@pytest.mark.parametrize("decoding", DECODINGS)
def test_summaries_of_one_page_are_stock_barts(
    decoding: str, how: dict[str, Any], tmp_path: Path
) -> None:
    """From the same folder, with the same arguments, greedy and beam-4 search of one page each write the same ids."""
    stock().save_pretrained(tmp_path)
    model, bart = (
        opened(tmp_path, decoding=decoding).eval(),
        BartForConditionalGeneration.from_pretrained(tmp_path),
    )
    inputs = batch((8,), (5,), (1,))
    always = {"max_new_tokens": 14, "forced_bos_token_id": START, "do_sample": False}
    found = plain(model.generate(**inputs, **how, **always))
    assert found == plain(bart.generate(**of_stock(inputs), **how, **always))
    assert len({tuple(ids) for ids in found}) > 1


def test_only_the_confidence_is_new(tmp_path: Path) -> None:
    """Of all weights, those of the confidence layer alone are not in a BART's checkpoint; its own are read back."""
    stock().save_pretrained(tmp_path / "bart")
    read = PageSumForConditionalGeneration.from_pretrained
    model, loaded = read(tmp_path / "bart", output_loading_info=True)
    assert set(loaded["missing_keys"]) == CONFIDENCE
    assert not loaded["unexpected_keys"]
    assert not loaded["mismatched_keys"]
    for name, weight in stock().state_dict().items():
        assert torch.equal(model.state_dict()[name], weight), name
    model.save_pretrained(tmp_path / "pagesum")
    again, loaded = read(tmp_path / "pagesum", output_loading_info=True)
    assert not loaded["missing_keys"]
    assert torch.equal(again.confidence.weight, model.confidence.weight)


def test_what_a_checkpoint_does_not_decide(tmp_path: Path) -> None:
    """Dropout, decoding and what training feeds are the user's; the first token is `<s>`, whatever it says of that."""
    stock().save_pretrained(tmp_path)
    model, bart = opened(tmp_path, dropout=0.25, decoding="global", fidelity="official"), stock()
    config = model.config
    assert (config.dropout, config.decoding, config.official) == (0.25, "global", True)
    assert model.generation_config.forced_bos_token_id == START
    assert bart.generation_config.forced_bos_token_id is None
    for name in ("d_model", "encoder_ffn_dim", "max_position_embeddings", "decoder_start_token_id"):
        assert getattr(model.config, name) == getattr(bart.config, name)


@pytest.mark.parametrize("kind", [BartForConditionalGeneration, BartModel])
def test_checkpoints_as_the_hub_has_them(kind: Any, tmp_path: Path) -> None:
    """Half precision is computed in full, and a BART without its projection, as the base ones, is a whole one."""
    bart = stock().half()
    (bart if kind is BartForConditionalGeneration else bart.model).save_pretrained(tmp_path)
    model = opened(tmp_path)
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    for name, weight in bart.named_parameters():
        assert torch.equal(model.get_parameter(name), weight.float()), name


def test_training_from_a_checkpoint(checkpoint: Path, cache: ArtifactCache) -> None:
    """Fitted from a folder it has its tokenizer, sizes and weights, and learns on."""
    start, system = fitted(checkpoint, cache, steps=0), fitted(checkpoint, cache, steps=4)
    assert start.tokenizer.get_vocab() == system.tokenizer.get_vocab()
    bart = BartForConditionalGeneration.from_pretrained(checkpoint)
    for name, weight in bart.named_parameters():
        assert torch.equal(weight, start.model.get_parameter(name)), name
    shared = "model.shared.weight"
    assert not torch.equal(bart.get_parameter(shared), system.model.get_parameter(shared))


def without_start(folder: Path, start: str | None = None) -> Path:
    """Write a BART whose tokenizer has no token that starts a text, or one that ends it, too."""
    write_bart(folder)
    tokenizer = train_tokenizer(TRAIN, 320)
    tokenizer.bos_token = start
    tokenizer.save_pretrained(folder)
    return folder


REFUSED = {  # an architecture and settings → what the line says
    "mbart": "is a checkpoint of 'mbart', not of bart or longsumbench-pagesum",
    "t5": "is a checkpoint of 't5', not of bart or longsumbench-pagesum",
    "bart page_size=65": r"model\.page_size=65: model\.init=.* has only 64 positions",
    "bart d_model=8 num_heads=2 d_ff=8": r"add model\.d_model=null model\.d_ff=null$",
}


@pytest.mark.parametrize("words", REFUSED)
def test_checkpoints_that_cannot_be_meant(words: str, cache: ArtifactCache) -> None:
    """Another architecture, other sizes or too few positions end in one line that says which."""
    architecture, _, settings = words.partition(" ")
    with refuses(REFUSED[words], SuiteError):
        fitted(checkpoint_of(architecture), cache, **settings_of(settings))


@pytest.mark.parametrize("start", [None, "</s>"])
def test_a_tokenizer_without_a_start_token(
    start: str | None, tmp_path: Path, cache: ArtifactCache
) -> None:
    """No page can begin without one: the checkpoint's tokenizer is refused, or any other, that has none of its own."""
    folder = without_start(tmp_path / "start", start)
    for settings in ({"init": folder}, {"init": "random", "tokenizer": str(folder)}):
        with refuses("has no start token"):
            fitted(cache=cache, **settings)


def test_texts_with_the_names_of_special_tokens(tmp_path: Path, cache: ArtifactCache) -> None:
    """They are read as text, `<mask>`, too, for which facebook/bart-large-cnn has a token, but no embedding."""
    folder = write_bart(tmp_path / "start")
    tokenizer = train_tokenizer(TRAIN, 320)
    tokenizer.add_special_tokens({"mask_token": "<mask>"})
    tokenizer.save_pretrained(folder)
    system = fitted(folder, cache, steps=0)
    named = "BERT fills in <mask> until </s>."
    (encoded,) = system.reader.encode([named])
    assert system.tokenizer.decode(encoded.ids, skip_special_tokens=True).strip() == named
