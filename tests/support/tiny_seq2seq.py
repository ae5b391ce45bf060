"""Encoder-decoders of a few thousand random weights with a trained tokenizer, as `save_pretrained` writes them."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    BigBirdPegasusConfig,
    LEDConfig,
    LongT5Config,
    PegasusConfig,
    PegasusXConfig,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
    T5Config,
)

from longsumbench.modeling.tokenizer import train_tokenizer
from support.toys import ToySplit

SEPARATOR = "<doc-sep>"
_BART = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "max_position_embeddings": 64,
    "init_std": 0.5,  # large, so that other inputs give other outputs
}
_T5 = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "initializer_factor": 3.0}
_LED = {"max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 32, "attention_window": 8}
_LED |= {name: value for name, value in _BART.items() if name != "max_position_embeddings"}
_SPARSE = {"block_size": 4, "num_random_blocks": 1}
# name → configuration class and its sizes; names before "-" are model types
ARCHITECTURES: dict[str, tuple[type[PreTrainedConfig], dict[str, Any]]] = {
    "bart": (BartConfig, _BART),
    "pegasus": (PegasusConfig, _BART),
    "t5": (T5Config, _T5),
    "longt5-local": (LongT5Config, {**_T5, "encoder_attention_type": "local", "local_radius": 5}),
    "longt5-tglobal": (
        LongT5Config,
        {**_T5, "encoder_attention_type": "transient-global", "local_radius": 5, "global_block_size": 4},
    ),
    "led": (LEDConfig, _LED),
    "bigbird_pegasus": (BigBirdPegasusConfig, {**_BART, **_SPARSE}),
    "pegasus_x": (PegasusXConfig, {**_BART, "num_global_tokens": 4, "block_size": 8}),
}
_WITH_START = ("bart", "led")  # whose tokenizers put a start token before a text


def write_tokenizer(folder: Path, architecture: str) -> PreTrainedTokenizerBase:
    """Write a tokenizer with the special tokens of an architecture's own; return it."""
    tokenizer = train_tokenizer(ToySplit.of("train", 12), 320)
    template = "<s> $A </s>" if architecture in _WITH_START else "$A </s>"
    ids = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("<s>", "</s>")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=template, special_tokens=ids)
    tokenizer.add_tokens(["<n>"])
    tokenizer.add_special_tokens({"additional_special_tokens": [SEPARATOR]})
    tokenizer.save_pretrained(folder)
    return tokenizer


def write_seq2seq(folder: Path, architecture: str = "bart", **changes: Any) -> Path:
    """Write a model and its tokenizer to a folder; return it. `changes` are entries of the configuration."""
    kind, sizes = ARCHITECTURES[architecture]
    tokenizer = write_tokenizer(folder, architecture)
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "bos", "eos")}
    ids["decoder_start_token_id"] = ids["eos_token_id" if architecture in _WITH_START else "pad_token_id"]
    config = kind(**{"vocab_size": len(tokenizer), **sizes, **ids, **changes})
    with torch.random.fork_rng():
        torch.manual_seed(1)
        AutoModelForSeq2SeqLM.from_config(config).save_pretrained(folder)
    return folder


@cache
def tiny_checkpoint() -> str:
    """Return the folder of a tiny BART that all tests of a process share."""
    folder = tempfile.mkdtemp(prefix="longsumbench-bart-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(write_seq2seq(Path(folder), init_std=0.1, max_position_embeddings=512))
