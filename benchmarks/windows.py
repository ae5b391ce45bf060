"""Memory of encoder-decoders that read in windows, in training and in writing.

    OMP_NUM_THREADS=1 python benchmarks/windows.py [--tokens 20000]

First, a training step of a small BART on 1 to 16 windows of 512 tokens. The windows' activations are kept, or computed
again in the backward pass (train.gradient_checkpointing). The figure is the peak above the memory before the step, also
divided by that of one window. Then a tiny T5Gemma 2, LED and BART with windows on one text: a training step, which
computes activations again, and a summary of 64 tokens by four beams, with the peak of the whole process. Each figure is
measured in its own process.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

import torch
from tabulate import tabulate
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    LEDConfig,
    PreTrainedModel,
    T5Gemma2Config,
)

from longsumbench.core import Decoding
from longsumbench.modeling.generation import decode
from longsumbench.modeling.training.trainer import recompute_activations
from longsumbench.models.seq2seq.windows import read_in_windows
from longsumbench.runs.environment import peak_memory_gb, reset_peak_memory

ASKED = 2.0  # GB of a whole process
COUNTS = (1, 2, 4, 8, 16)
WINDOW, OVERLAP, TARGET, WRITTEN = 512, 128, 128, 64  # tokens
TINY = ("t5gemma2", "led", "bart")
SPECIAL = {"vocab_size": 1_000, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def of_both(width: int, layers: int) -> dict[str, Any]:
    """Return the sizes of BART and LED, the same for encoder and decoder."""
    sizes: dict[str, Any] = {"d_model": width, "decoder_start_token_id": 2, **SPECIAL}
    for stack in ("encoder", "decoder"):
        sizes |= {f"{stack}_layers": layers, f"{stack}_attention_heads": width // 32}
        sizes[f"{stack}_ffn_dim"] = 4 * width
    return sizes


def build_model(name: str) -> PreTrainedModel:
    """Build a model with random weights: "small" is a BART, the others are tiny."""
    if name == "t5gemma2":
        stack = {
            **SPECIAL,
            "hidden_size": 64,
            "intermediate_size": 256,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 32,
            "sliding_window": 128,
            "layer_types": ["sliding_attention", "full_attention"],
        }
        images = {"model_type": "siglip_vision_model", "hidden_size": 8, "num_hidden_layers": 1}
        images |= {"intermediate_size": 8, "num_attention_heads": 1}
        encoder = {"text_config": stack, "vision_config": images}
        config: Any = T5Gemma2Config(encoder=encoder, decoder=stack)
        config.decoder_start_token_id = SPECIAL["bos_token_id"]
    elif name == "led":
        config = LEDConfig(**of_both(64, 2), attention_window=128)
    else:
        width, layers = (256, 6) if name == "small" else (64, 2)
        config = BartConfig(**of_both(width, layers), max_position_embeddings=WINDOW)
    torch.manual_seed(1)
    model: PreTrainedModel = AutoModelForSeq2SeqLM.from_config(config)
    return model


def batch_of(name: str, tokens: int) -> dict[str, torch.Tensor]:
    """Return one text of random tokens."""
    ids = torch.randint(3, SPECIAL["vocab_size"], (1, tokens))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if name == "led":
        batch["global_attention_mask"] = torch.zeros_like(ids)
        batch["global_attention_mask"][:, 0] = 1
    return batch | {"head_length": torch.zeros(1, dtype=torch.long)}


def measure(name: str, tokens: int, overlap: int, task: str) -> None:
    """Print peak, peak above the memory before, and seconds of a task: keep, recompute or write."""
    model = build_model(name)
    read_in_windows(model, WINDOW, overlap)
    batch = batch_of(name, tokens)
    reset_peak_memory()
    before, started = peak_memory_gb(), time.perf_counter()
    if task == "write":
        decode(model, batch, Decoding(num_beams=4, min_length=WRITTEN, device="cpu"), WRITTEN)
    else:
        if task == "recompute":
            recompute_activations(model)
        targets = torch.randint(3, SPECIAL["vocab_size"], (1, TARGET))
        output = model.train()(**batch, decoder_input_ids=targets, use_cache=False)
        output.logits.logsumexp(-1).sum().backward()
    peak, seconds = peak_memory_gb(), time.perf_counter() - started
    print(json.dumps([peak, peak - before, seconds]))


def measured(name: str, tokens: int, overlap: int, task: str) -> tuple[float, float, float]:
    """Return what `measure` prints in its own process."""
    command = [sys.executable, __file__, "--measure", name, str(tokens), str(overlap), task]
    # freed tensors are given back at once
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    printed = subprocess.check_output(command, env=environment, text=True)
    peak, above, seconds = json.loads(printed.splitlines()[-1])
    return peak, above, seconds


def main() -> None:
    """Measure, and print two tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, tokens, overlap, task = options.measure
        measure(name, int(tokens), int(overlap), task)
        return
    rows: list[list[Any]] = []
    first: dict[str, float] = {}
    for count in COUNTS:
        row: list[Any] = [count]
        for task in ("keep", "recompute"):
            _, above, seconds = measured("small", count * WINDOW, 0, task)
            first.setdefault(task, above)
            row += [f"{above * 1_000:.0f}", f"{above / first[task]:.2f}", f"{seconds:.1f}"]
        rows.append(row)
    kept = ["kept: MB", "of one window's", "s"]
    again = ["computed again: MB", "of one window's", "s"]
    print(tabulate(rows, ["windows", *kept, *again], "github", disable_numparse=True))
    rows = []
    for name in TINY:
        row = [name]
        for task in ("recompute", "write"):
            peak, _, seconds = measured(name, options.tokens, OVERLAP, task)
            row += [f"{peak:.2f}", f"{seconds:.1f}"]
        rows.append(row)
    headings = ["tiny model", "training step: GB", "s", "summary: GB", "s"]
    print(f"\n{options.tokens:,} tokens; asked: at most {ASKED:.1f} GB")
    print(tabulate(rows, headings, "github", disable_numparse=True))


if __name__ == "__main__":
    main()
