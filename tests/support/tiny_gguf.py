"""The same tiny language model as a GGUF file and as a folder of safetensors."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType, dequantize, quantize
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from tokenizers import pre_tokenizers
from transformers import AutoTokenizer, LlamaConfig

from support.json_files import read_json
from support.tiny_causal import CHAT_TEMPLATE, write_causal

NAMES = {  # of transformers → of llama.cpp
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_twins(folder: Path, kind: str = "llama for vllm", format: str = "F32") -> Path:
    """Write "twin" in safetensors, and "twin.gguf" with the same weights in a format of llama.cpp; return the file."""
    twin = write_causal(folder / "twin", kind)
    tokenizer = AutoTokenizer.from_pretrained(twin)
    # As the tokenizers of GGUF files, which add no space.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save_pretrained(twin)
    weights = load_file(twin / "model.safetensors")
    rounded = {}
    for name, weight in weights.items():
        values = weight.numpy()
        if values.ndim == 2:
            number = GGMLQuantizationType[format]
            values = dequantize(quantize(values, number), number)
        rounded[name] = torch.from_numpy(np.array(values))
    save_file(rounded, twin / "model.safetensors", {"format": "pt"})
    return write_gguf(folder / "twin.gguf", twin, format)


def write_gguf(
    path: Path,
    twin: Path,
    format: str = "F32",
    architecture: str = "llama",
    **metadata: Any,
) -> Path:
    """Write the model in a folder as a GGUF file; return its path.

    Args:
        path: the file.
        twin: a folder of `write_causal`.
        format: of matrices; vectors are in float32.
        architecture: its name in the file.
        **metadata: further entries; two underscores stand for a dot.
    """
    config = LlamaConfig.from_pretrained(twin)
    writer = GGUFWriter(path, architecture)
    writer.add_file_type(LlamaFileType[f"{'ALL' if format == 'F32' else 'MOSTLY'}_{format}"])
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_vocab_size(config.vocab_size)
    _add_tokenizer(writer, twin)
    writer.add_chat_template(CHAT_TEMPLATE)
    for key, value in metadata.items():
        add: Any = writer.add_uint32 if isinstance(value, int) else writer.add_string
        add(key.replace("__", "."), value)
    for name, weight in load_file(twin / "model.safetensors").items():
        values = weight.numpy()
        if "q_proj" in name:
            values = permute(values, config.num_attention_heads)
        if "k_proj" in name:
            values = permute(values, config.num_key_value_heads)
        number = GGMLQuantizationType[format if values.ndim == 2 else "F32"]
        writer.add_tensor(of_llama_cpp(name), quantize(values, number), raw_dtype=number)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: GGUFWriter, twin: Path) -> None:
    described = read_json(twin / "tokenizer.json")
    vocabulary = described["model"]["vocab"]
    special = {token["content"] for token in described["added_tokens"]}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    # 1: a part of a text, 3: a special token
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in described["model"]["merges"]])
    writer.add_bos_token_id(vocabulary["<s>"])
    writer.add_eos_token_id(vocabulary["</s>"])
    writer.add_unk_token_id(vocabulary["<unk>"])
    writer.add_pad_token_id(vocabulary["<pad>"])
    writer.add_add_bos_token(False)


def permute(values: NDArray[Any], num_heads: int) -> NDArray[Any]:
    """Order the rows of queries or keys as llama.cpp does: its rotations join neighbours, not halves."""
    halves = values.reshape(num_heads, 2, values.shape[0] // num_heads // 2, values.shape[1])
    return halves.swapaxes(1, 2).reshape(values.shape)


def of_llama_cpp(name: str) -> str:
    """Return the name of a weight in llama.cpp."""
    base = name.removesuffix(".weight")
    if base in NAMES:
        return f"{NAMES[base]}.weight"
    _, _, layer, part = base.split(".", 3)
    return f"blk.{layer}.{NAMES[part]}.weight"
