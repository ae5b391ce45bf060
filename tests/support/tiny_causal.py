"""A causal language model of a few thousand random weights with a chat template, as `save_pretrained` writes it."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from longsumbench.modeling.tokenizer import train_tokenizer
from support.toys import ToySplit

CHAT_TEMPLATE = (
    "{% for message in messages %}<s>{{ message.role }}\n{{ message.content }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)


def write_causal(folder: Path, template: str | None = CHAT_TEMPLATE, positions: int = 512) -> Path:
    """Write model and tokenizer to a folder; return it."""
    tokenizer = train_tokenizer(ToySplit.of("train", 12), 320)
    tokenizer.chat_template = template
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=positions,
        initializer_range=0.5,  # so that outputs differ
        **{f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "bos", "eos")},
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@cache
def causal_folder() -> str:
    """Return the folder of such a model that all tests of a process share."""
    folder = tempfile.mkdtemp(prefix="longsumbench-causal-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(write_causal(Path(folder)))
