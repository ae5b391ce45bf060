"""Causal language models of a few thousand random weights with a chat template, as `save_pretrained` writes them."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from longsumbench.core import build_settings
from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.transformers_engine import TransformersEngine
from support.built_once import built_once
from support.toys import ToySplit

CHAT_TEMPLATE = (
    "{% for message in messages %}<s>{{ message.role }}\n{{ message.content }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)


_SIZES = {
    "vocab_size": 320,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "initializer_range": 0.5,  # so that outputs differ
}
# model type → entries of its configuration, without the number of positions
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "qwen2": _SIZES,
    "llama": {**_SIZES, "tie_word_embeddings": True},
    # Of sizes that vLLM supports on a CPU.
    "llama for vllm": {
        **_SIZES,
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_key_value_heads": 2,
    },
    "gpt2": {
        "vocab_size": 320,
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "initializer_range": 0.5,
    },  # learned positions
}


def write_causal(
    folder: Path,
    kind: str = "qwen2",
    template: str | None = CHAT_TEMPLATE,
    positions: int = 512,
    **card: Any,
) -> Path:
    """Write a model and its tokenizer to a folder; return it. `card` are settings of its generation_config.json."""
    tokenizer = train_tokenizer(ToySplit.of("train", 12), 320)
    tokenizer.chat_template = template
    ids = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "bos", "eos")
    }
    config = AutoConfig.for_model(
        kind.split()[0], max_position_embeddings=positions, **ARCHITECTURES[kind], **ids
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = AutoModelForCausalLM.from_config(config)
    model.generation_config.update(**card)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def causal_folder() -> str:
    """Return the folder of such a model, which all tests share."""
    return str(built_once("causal", write_causal))


def open_causal(checkpoint: Path | str, **settings: Any) -> TransformersEngine:
    """Return the engine of a checkpoint."""
    values = {"checkpoint": str(checkpoint), **settings}
    return TransformersEngine(build_settings(PromptConfig, values, "model."))
