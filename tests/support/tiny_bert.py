"""A BERT of a few thousand random weights, as `save_pretrained` writes one."""

from pathlib import Path

import torch
from transformers import (
    BertConfig,
    BertForNextSentencePrediction,
    BertTokenizerFast,
    PreTrainedModel,
)

VOCABULARY = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *(".", "the", "cat", "sat", "slept", "it", "a", "dog", "ran"),
)
LONGEST = 16  # tokens of a pair of sentences


def write_bert(
    folder: Path, seed: int = 1, network: type[PreTrainedModel] = BertForNextSentencePrediction
) -> Path:
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in VOCABULARY))
    BertTokenizerFast.from_pretrained(folder).save_pretrained(folder)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    limits = {"vocab_size": len(VOCABULARY), "max_position_embeddings": LONGEST}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network(BertConfig(**sizes, **limits, initializer_range=0.5)).save_pretrained(folder)
    return folder
