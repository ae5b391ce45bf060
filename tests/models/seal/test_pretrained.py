"""Trunc, EA and SEAL, started from an encoder of transformers."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.json_files import change_json
from support.tiny_causal import write_causal
from support.tiny_encoders import write_encoder
from support.toys import ToySplit, build_tiny, fit_context, refuses, settings_of
from transformers import AutoModel

from longsumbench.core import Decoding
from longsumbench.errors import SuiteError
from longsumbench.modeling.unit_reader import collate_units

TRAIN, TEST = ToySplit.of("train", 16), ToySplit.of("test", 4, start=500)
EXTRACT = Decoding(mode="extract", device="cpu", extract_length="6")
FREE = {"d_model": None, "encoder_layers": None, "input_length": 20}


def fitted(name: str, folder: Path, init: Path, steps: int = 3, **settings: Any) -> Any:
    """Return a small system that starts from an encoder, after a few steps of its scorer, or of all of Trunc."""
    known = build_tiny(name).config.__dataclass_fields__
    free = {key: value for key, value in FREE.items() if key in known}
    system = build_tiny(name, **{**free, "init": str(init), **settings})
    only = "all" if name == "trunc" else "scorer"
    system.fit(fit_context(folder, TRAIN, max_steps=steps, only=only, label_smoothing=0.0))
    return system


def scores(system: Any) -> torch.Tensor:
    """Return the scores of the snippets of the test examples, those of absent ones 0."""
    units = [system.reader.units(example) for example in TEST]
    batch = collate_units(system.reader, units)
    model = system.model.eval()
    with torch.inference_mode():
        reading = model.model.encoder(**batch)
        found = model.scores_to_extract(reading, batch["input_ids"])
    return found.masked_fill(~reading.real, 0.0)


@pytest.mark.parametrize("name", ["ea", "seal"])
def test_a_trained_scorer_needs_its_start_no_more(name: str, tmp_path: Path) -> None:
    """The scorer trains with the encoder; saved, it has the same scores and extracts without the encoder's folder."""
    start = write_encoder(tmp_path / "start")
    untrained = fitted(name, tmp_path / "cache", start, steps=0)
    system = fitted(name, tmp_path / "cache", start)
    assert not torch.equal(scores(system), scores(untrained))
    system.save(tmp_path / "saved")
    extracts = [summary.text for summary in system.summarize(list(TEST), EXTRACT)]
    shutil.rmtree(start)
    loaded = type(system).load(tmp_path / "saved")
    assert torch.equal(scores(loaded), scores(system))
    assert [summary.text for summary in loaded.summarize(list(TEST), EXTRACT)] == extracts
    assert all(extracts)


def test_it_starts_with_the_encoders_weights_and_words(tmp_path: Path) -> None:
    """Before training the encoder's weights are the checkpoint's, and its words' embeddings also the decoder's.

    Words of another width than the encoder's are not the decoder's. The head for another task is left out.
    """
    for kind in ("bert", "electra"):
        folder = write_encoder(tmp_path / kind, kind, with_head=True)
        model = fitted("trunc", tmp_path / "cache", folder, steps=0).model
        network = AutoModel.from_pretrained(folder)
        weights = dict(model.model.encoder.pretrained.network.named_parameters())
        assert weights
        for name, weight in weights.items():
            assert torch.equal(weight, network.get_parameter(name)), name
        words, table = network.get_input_embeddings().weight, model.lm_head.weight
        assert table.data_ptr() == model.model.decoder.embed_tokens.weight.data_ptr()
        assert table.shape == (len(words), 32)
        assert (kind == "bert") == torch.equal(words, table)


def test_trunc_writes_and_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    """Trunc trains as a whole, and a checkpoint of it is a start with the same weights."""
    system = fitted("trunc", tmp_path / "cache", write_encoder(tmp_path / "start"))
    summaries = list(system.summarize(list(TEST), Decoding(max_length=8, device="cpu")))
    assert len(summaries) == len(TEST)
    system.save(tmp_path / "saved")
    again = fitted("trunc", tmp_path / "cache", tmp_path / "saved", steps=0)
    expected = system.model.state_dict()
    for name, weight in again.model.state_dict().items():
        assert torch.equal(weight, expected[name]), name


def test_snippets_have_no_special_tokens(tmp_path: Path) -> None:
    """Special tokens of the encoder are in no unit, so the ledger counts words of the source alone."""
    system = fitted("ea", tmp_path / "cache", write_encoder(tmp_path / "start"), steps=0)
    units = system.reader.units(TEST[0])
    special = set(system.tokenizer.all_special_ids) - {system.tokenizer.unk_token_id}
    assert not any(special.intersection(ids) for ids in units.ids)
    assert units.truncation.tokens == sum(map(len, units.ids))


def without_padding(folder: Path) -> Path:
    write_encoder(folder)
    change_json(folder / "tokenizer_config.json", pad_token=None)
    return folder


REFUSED = {  # a system and settings that do not fit an encoder → what the line says
    "ea snippet_length=23": r"model\.snippet_length=23: .* only 22",
    "seal segment_length=23": r"model\.segment_length=23: .* only 22",
    "trunc input_length=23": r"model\.input_length=23: .* only 22",
    "hierarchical_transformer paragraph_length=23": r"model\.paragraph_length=23: .* only 22",
    "ea d_model=48": r"d_model=48, but .* has 32: .* model\.d_model=null",
    "ea encoder_layers=5": r"=5, but .* has 2: .* model\.encoder_layers=null$",
    "ea num_heads=5": r"d_model=32 cannot be shared .*num_heads=5",
    "hierarchical_transformer pooling_heads=3": r"equally by model\.pooling_heads=3",
    "ca": "is not a checkpoint of this suite",
}
OTHERS = {
    write_causal: r"writes text \('qwen2'\): give an encoder",
    without_padding: "lacks a padding",
}


@pytest.mark.parametrize(
    ("write", "words", "message"),
    [
        *((write_encoder, words, message) for words, message in REFUSED.items()),
        *((write, "ea", message) for write, message in OTHERS.items()),
    ],
)
def test_starts_that_do_not_fit(
    write: Callable[[Path], Path], words: str, message: str, tmp_path: Path
) -> None:
    """Another kind of model or size, too long units, or a tokenizer without padding is one line that says what to do."""
    name, _, settings = words.partition(" ")
    folder = write(tmp_path / "start")
    with refuses(message, SuiteError):
        fitted(name, tmp_path / "cache", folder, **settings_of(settings))
