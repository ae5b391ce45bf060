"""Tokenizers with languages and tokenizers written in Python: what is read, written and learned is as the library's."""

from pathlib import Path
from typing import Any

import pytest
import torch
from support.tiny_seq2seq import open_seq2seq, write_seq2seq
from support.toys import example, refuses, settings_of
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from longsumbench.core import Decoding
from longsumbench.modeling.generation import generate_texts

GREEDY = Decoding(max_length=8, device="cpu")
TEST = [example(number) for number in range(3)]
LANGUAGES = "source_language=fr_XX target_language=de_DE"
CASES = {  # tokenizer → model and settings
    "byt5": ("t5", ""),
    "prophetnet": ("prophetnet", ""),
    "mbart": ("mbart", LANGUAGES),
    "mbart-50": ("mbart-50", LANGUAGES),
    "nllb": ("m2m_100", "target_language=fra_Latn"),
}


@pytest.mark.parametrize("name", CASES)
def test_inputs_outputs_and_targets_are_the_librarys(name: str, tmp_path: Path) -> None:
    """Input and target are what the tokenizer makes of a text in these languages, and so is the output's start."""
    architecture, words = CASES[name]
    settings = settings_of(words)
    folder = write_seq2seq(tmp_path / "model", architecture, name, max_position_embeddings=128)
    system = open_seq2seq(folder, input_length=60, **settings)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if settings:
        tokenizer.src_lang = settings.get("source_language", tokenizer.src_lang)
        tokenizer.tgt_lang = settings["target_language"]
    assert tokenizer.is_fast == bool(settings)
    texts = [" ".join(one.sentences()) for one in TEST]
    encoded = tokenizer(
        texts, text_target=["kadan."] * 3, max_length=60, truncation=True, padding=True
    )
    assert [system.reader.units(one).ids[0] for one in TEST] == tokenizer(
        texts, max_length=60, truncation=True
    ).input_ids
    ids = system.reader.encode_target("kadan.").ids
    end = [] if tokenizer.eos_token_id is not None else [tokenizer.sep_token_id]
    assert system.reader.target(ids)[: len(encoded["labels"][0])] == encoded["labels"][0]
    assert (tokenizer.eos_token_id or end[0]) in system.reader.target(ids)

    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    start: dict[str, Any] = {"forced_bos_token_id": None, "forced_eos_token_id": None}
    if settings:
        language = tokenizer.convert_tokens_to_ids(settings["target_language"])
        start |= {"decoder_start_token_id" if name == "mbart" else "forced_bos_token_id": language}
    inputs = {key: torch.tensor(encoded[key]) for key in ("input_ids", "attention_mask")}
    expected = model.generate(**inputs, max_new_tokens=8, do_sample=False, **start)[:, 1:].tolist()
    stop = model.generation_config.eos_token_id
    written = [list(one.ids) for one in generate_texts(system.model, system.reader, TEST, GREEDY)]
    assert written == [row[: row.index(stop)] if stop in row else row for row in expected]


UNKNOWN = {  # a tokenizer and a language → what the line says
    "mbart-50 target_language=german": "target_language=german is no language of .*as en_XX",
    "mbart-50 source_language=xx": r"source_language=xx is no language of model\.checkpoint=",
    "byt5 target_language=de_DE": "target_language=de_DE is no language of .*leave it out",
}


@pytest.mark.parametrize("words", UNKNOWN)
def test_an_unknown_language_is_refused(words: str, tmp_path: Path) -> None:
    """A language that the tokenizer does not have is wrong usage."""
    name, language = words.split()
    folder = write_seq2seq(tmp_path / "model", CASES[name][0], name)
    with refuses(UNKNOWN[words]):
        open_seq2seq(folder, input_length=60, **settings_of(language))
