"""Encoder-decoders of a few thousand random weights with a trained tokenizer, configured as on the hub."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    BigBirdPegasusConfig,
    ByT5Tokenizer,
    EncoderDecoderConfig,
    LEDConfig,
    LongT5Config,
    M2M100Config,
    MarianConfig,
    MBart50Tokenizer,
    MBartConfig,
    MBartTokenizer,
    MT5Config,
    NllbTokenizer,
    PegasusConfig,
    PegasusXConfig,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
    ProphetNetConfig,
    ProphetNetTokenizer,
    T5Config,
    T5Gemma2Config,
    T5GemmaConfig,
    UMT5Config,
)

from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.models.seq2seq.system import Seq2Seq
from support.built_once import built_once
from support.json_files import write_json
from support.toys import ToySplit, build_tiny, fit_context

SEPARATOR = "<doc-sep>"


def _of_both(**sizes: int) -> dict[str, int]:
    """Return sizes of the encoder and of the decoder, which are the same."""
    of_both: dict[str, int] = {}
    for name, size in sizes.items():
        of_both |= {f"encoder_{name}": size, f"decoder_{name}": size}
    return of_both


# `init_std` and the like are large, so that other inputs give other outputs.
_POSITIONS = {"max_position_embeddings": 64}
_WITHOUT_POSITIONS: dict[str, Any] = {
    "d_model": 16,
    **_of_both(layers=2, ffn_dim=24, attention_heads=2),
    "init_std": 0.5,
}
_BART = {**_WITHOUT_POSITIONS, **_POSITIONS}
_T5: dict[str, Any] = {
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 24,
    "num_layers": 2,
    "num_heads": 2,
    "initializer_factor": 3.0,
}
_GATED = {
    **_T5,
    "initializer_factor": 1.0,
    "feed_forward_proj": "gated-gelu",
    "num_decoder_layers": 2,
    "tie_word_embeddings": False,
}
_LOCAL = {**_T5, "encoder_attention_type": "local", "local_radius": 5}
_GLOBAL = {**_LOCAL, "encoder_attention_type": "transient-global", "global_block_size": 4}
_LED = {
    **_WITHOUT_POSITIONS,
    "max_encoder_position_embeddings": 64,
    "max_decoder_position_embeddings": 32,
    "attention_window": 8,
}
_STACK: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "initializer_range": 0.5,
    **_POSITIONS,
}
_BERT = {**_STACK, "model_type": "bert", "vocab_size": 320}
_GEMMA = {
    **_STACK,
    "head_dim": 8,
    "num_key_value_heads": 1,
    "vocab_size": 322,
    "sliding_window": 64,
    "query_pre_attn_scalar": 8,
    "bos_token_id": 1,
    "pad_token_id": 0,
}
# As on the card of google/t5gemma-2-270m-270m, whose stacks alternate between two kinds of layers and which has an
# encoder of images.
_GEMMA_2 = {
    **_GEMMA,
    "eos_token_id": 2,
    "sliding_window": 8,
    "layer_types": ["sliding_attention", "full_attention"],
}
_IMAGES = {
    "model_type": "siglip_vision_model",
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "image_size": 32,
}
_PROPHET = {
    "hidden_size": 16,
    **_of_both(ffn_dim=24),
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "num_encoder_attention_heads": 2,
    "num_decoder_attention_heads": 2,
    "init_std": 0.5,
    **_POSITIONS,
}
_DECODER = {"is_decoder": True}
_PAIR = {"encoder": _BERT, "decoder": {**_BERT, **_DECODER, "add_cross_attention": True}}
# name → configuration class and its sizes; names before "-" are model types
ARCHITECTURES: dict[str, tuple[type[PreTrainedConfig], dict[str, Any]]] = {
    "bart": (BartConfig, _BART),
    "pegasus": (PegasusConfig, _BART),
    "t5": (T5Config, _T5),
    "t5-flan": (T5Config, _GATED),
    "mt5": (MT5Config, _GATED),
    "umt5": (UMT5Config, _GATED),
    "longt5-local": (LongT5Config, _LOCAL),
    "longt5-tglobal": (LongT5Config, _GLOBAL),
    "led": (LEDConfig, _LED),
    "bigbird_pegasus": (BigBirdPegasusConfig, {**_BART, "block_size": 4, "num_random_blocks": 1}),
    "pegasus_x": (PegasusXConfig, {**_BART, "num_global_tokens": 4, "block_size": 8}),
    "mbart": (MBartConfig, _BART),
    "mbart-50": (MBartConfig, _BART),
    "m2m_100": (M2M100Config, _BART),
    "marian": (MarianConfig, {**_BART, "init_std": 1.5}),
    "prophetnet": (ProphetNetConfig, _PROPHET),
    "encoder-decoder": (EncoderDecoderConfig, _PAIR),
    "t5gemma": (T5GemmaConfig, {"encoder": _GEMMA, "decoder": {**_GEMMA, **_DECODER}}),
    "t5gemma2": (
        T5Gemma2Config,
        {"encoder": {"text_config": _GEMMA_2, "vision_config": _IMAGES}, "decoder": _GEMMA_2},
    ),
}
# The special tokens on the cards of the hub: the others are in no file. Of a start token: what it is.
_ALL = {"pad": "pad", "bos": "bos", "eos": "eos", "decoder_start": "eos"}
_OF_T5 = {"pad": "pad", "eos": "eos", "decoder_start": "pad"}
_ON_CARDS = {
    **{name: _ALL for name in ("bart", "led", "mbart-50", "m2m_100", "prophetnet")},
    **{
        name: _OF_T5
        for name in ("t5", "t5-flan", "mt5", "umt5", "longt5-local", "longt5-tglobal", "pegasus")
    },
    "pegasus_x": {**_OF_T5, "bos": "pad"},
    "bigbird_pegasus": {**_ALL, "decoder_start": "bos"},
    "mbart": {"pad": "pad", "bos": "bos", "eos": "eos"},
    "marian": {**_OF_T5, "bos": "eos"},
    "encoder-decoder": {"pad": "pad", "eos": "eos", "decoder_start": "bos"},
    "t5gemma": {"pad": "pad", "bos": "bos", "eos": "eos"},
    "t5gemma2": {},
}
_WITH_START = (
    "bart",
    "led",
    "encoder-decoder",
    "mbart-50",
)  # whose tokenizers put a start token before a text


def write_own_tokenizer(folder: Path, name: str) -> PreTrainedTokenizerBase:
    """Write a tokenizer of a class of the library's own, with languages or written in Python; return it."""
    letters: list[str] = []
    for before in ("\u2581", "", "##"):
        letters += [f"{before}{letter}" for letter in "abcdefghijklmnopqrstuvwxyz.,&!?"]
    if name in ("mbart", "mbart-50"):
        kind = MBartTokenizer if name == "mbart" else MBart50Tokenizer
        start = ["<s>", "<pad>", "</s>", "<unk>"]
        tokenizer = kind(
            vocab=[
                (piece, 0.0 if piece in start else -3.0) for piece in (*start, "\u2581", *letters)
            ]
        )
    elif name == "nllb":
        pieces = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", *letters]
        tokenizer = NllbTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})
    elif name == "byt5":
        tokenizer = ByT5Tokenizer()
    else:
        vocabulary = folder / "prophetnet.tokenizer"
        vocabulary.write_text(
            "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[X_SEP]", *letters])
        )
        tokenizer = ProphetNetTokenizer(str(vocabulary))
    tokenizer.save_pretrained(folder)
    return tokenizer


def write_tokenizer(folder: Path, architecture: str) -> PreTrainedTokenizerBase:
    """Write a tokenizer with the special tokens of an architecture's own; return it."""
    tokenizer = train_tokenizer(ToySplit.of("train", 12), 320)
    template = "<s> $A </s>" if architecture in _WITH_START else "$A </s>"
    ids = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("<s>", "</s>")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=template, special_tokens=ids
    )
    tokenizer.add_tokens(["<n>"])
    tokenizer.add_special_tokens({"additional_special_tokens": [SEPARATOR]})
    tokenizer.save_pretrained(folder)
    return tokenizer


def write_seq2seq(
    folder: Path, architecture: str = "bart", own: str | None = None, **changes: Any
) -> Path:
    """Write a model and its tokenizer to a folder; return it. `changes` are entries of the configuration.

    `own` is the name of one of the library's own tokenizers; None: a trained one with an architecture's special tokens.

    As on the hub, config.json has no other entries than sizes and those special tokens that a card has.
    """
    kind, sizes = ARCHITECTURES[architecture]
    folder.mkdir(exist_ok=True)
    tokenizer = write_own_tokenizer(folder, own) if own else write_tokenizer(folder, architecture)
    names = _ON_CARDS[architecture].items()
    ids = {f"{name}_token_id": getattr(tokenizer, f"{token}_token_id") for name, token in names}
    ids = {
        name: tokenizer.sep_token_id if token is None else token for name, token in ids.items()
    }  # as BERT's
    vocabulary = {} if architecture == "encoder-decoder" else {"vocab_size": len(tokenizer)}
    entries = {**vocabulary, **sizes, **ids, **changes}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        AutoModelForSeq2SeqLM.from_config(kind(**deepcopy(entries))).save_pretrained(folder)
    described = {"model_type": kind.model_type, "is_encoder_decoder": True, **entries}
    write_json(folder / "config.json", described)
    (folder / "generation_config.json").unlink()
    return folder


def tiny_checkpoint() -> str:
    """Return the folder of a tiny BART that all tests share."""
    sizes: dict[str, Any] = {"init_std": 0.1, "max_position_embeddings": 512}
    return str(built_once("bart", lambda folder: write_seq2seq(folder, **sizes)))


def checkpoint_of(architecture: str) -> Path:
    """Return the folder of a tiny checkpoint of an architecture that all tests share."""
    return built_once(f"seq2seq {architecture}", lambda folder: write_seq2seq(folder, architecture))


def open_seq2seq(checkpoint: Path | str, **settings: Any) -> Seq2Seq:
    """Return the system with a checkpoint as it is, ready to summarize."""
    values = {"checkpoint": str(checkpoint), "init": "checkpoint", **settings}
    system: Seq2Seq = build_tiny("seq2seq", **values)
    system.fit(fit_context(Path("no stages"), max_steps=0))
    return system
