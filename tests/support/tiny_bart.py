"""A BART of a few thousand random weights with a trained tokenizer, as `save_pretrained` writes them."""

from pathlib import Path

import torch
from transformers import BartConfig, BartForConditionalGeneration

from longsumbench.modeling.tokenizer import train_tokenizer
from support.toys import ToySplit


def write_bart(folder: Path) -> Path:
    tokenizer = train_tokenizer(ToySplit.of("train", 12), 320)
    sizes = {"layers": 2, "ffn_dim": 24, "attention_heads": 2}
    stacks: dict[str, int] = {}
    for name, size in sizes.items():
        stacks |= {f"encoder_{name}": size, f"decoder_{name}": size}
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=16,
        max_position_embeddings=40,
        **stacks,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        BartForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
