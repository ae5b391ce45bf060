"""A BART of a few thousand random weights with a trained tokenizer, as `save_pretrained` writes them."""

from pathlib import Path

import torch
from transformers import BartConfig, BartForConditionalGeneration

from longsumbench.modeling.tokenizer import train_tokenizer
from support.toys import ToySplit


def write_bart(folder: Path) -> Path:
    tokenizer = train_tokenizer(ToySplit.of("train", 12), 320)
    stacks = ("encoder", "decoder")
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=16,
        max_position_embeddings=40,
        **{f"{stack}_layers": 2 for stack in stacks},
        **{f"{stack}_ffn_dim": 24 for stack in stacks},
        **{f"{stack}_attention_heads": 2 for stack in stacks},
        **{
            f"{name}_token_id": getattr(tokenizer, f"{name}_token_id")
            for name in ("pad", "bos", "eos")
        },
        decoder_start_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        BartForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
