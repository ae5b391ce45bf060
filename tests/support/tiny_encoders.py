"""Encoders of a few thousand random weights, as `save_pretrained` writes them; their words are those of the toys."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, BertTokenizerFast

from support.toys import WORDS

_MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "a")
VOCABULARY = (*_MARKS, *WORDS)
POSITIONS = 24
# BERT's names; a type with others has them besides
SIZES: dict[str, Any] = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 40,
    "max_position_embeddings": POSITIONS,
    "pad_token_id": 0,
    "initializer_range": 0.5,
}
DISTILBERT = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 40}
TYPES: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {},
    "mpnet": {},
    "electra": {"embedding_size": 16},
    "albert": {"embedding_size": 16},
    "distilbert": DISTILBERT,
    "modernbert": {"cls_token_id": 2, "sep_token_id": 3, "global_attn_every_n_layers": 2},
}


def write_encoder(
    folder: Path, kind: str = "bert", with_head: bool = False, **changes: Any
) -> Path:
    """Write an encoder of a type of transformers with a WordPiece tokenizer, as the hub has it without a head or with."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in VOCABULARY))
    BertTokenizerFast.from_pretrained(folder).save_pretrained(folder)
    config = AutoConfig.for_model(kind, **{**SIZES, **TYPES.get(kind, {}), **changes})
    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = (AutoModelForMaskedLM if with_head else AutoModel).from_config(config)
        network.save_pretrained(folder)
    return folder
