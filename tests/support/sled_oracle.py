"""A BART with weights made by a formula, and what the authors' SLED computes with it.

The figures of `tests/models/seq2seq/test_windows.py` are printed by this file with the release of SLED:

    pip install py-sled==0.1.7 transformers==4.23.1 tokenizers==0.13.3 torch
    python tests/support/sled_oracle.py

The release (MIT licence) reads an older transformers, so it is no dependency.
"""

import json
import tempfile
import zlib
from importlib import import_module
from pathlib import Path

import torch
from torch import Tensor
from transformers import BartConfig, BartForConditionalGeneration

# a window of 16 tokens, of which 8 are kept
WINDOW, OVERLAP = 16, 8
PREFIX = [5, 9, 7]
TEXT = [3 + 11 * place % 37 for place in range(45)]
TARGET = [4, 8, 15, 16, 23, 2]


def formula_bart() -> BartForConditionalGeneration:
    """Return a tiny BART in float64 with weights that no random numbers decide."""
    config = BartConfig(
        vocab_size=40,
        d_model=8,
        encoder_layers=2,
        decoder_layers=1,
        encoder_ffn_dim=12,
        decoder_ffn_dim=12,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        max_position_embeddings=32,
        dropout=0.0,
    )
    model = BartForConditionalGeneration(config).double().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            places = torch.arange(weight.numel(), dtype=torch.float64) + zlib.crc32(name.encode())
            values = torch.sin(places * 1.7).view_as(weight)
            is_scale = "norm" in name and name.endswith("weight")
            weight.copy_(1 + values / 4 if is_scale else values / 2)
    return model


def digest_states(states: Tensor) -> list[float]:
    """Return one number for each of some states [L, D], which depends on all of its entries."""
    weights = torch.arange(1, states.shape[1] + 1, dtype=states.dtype)
    return [round(value, 6) for value in (states @ weights).tolist()]


def main() -> None:
    """Print states and loss of the release, with and without a prefix."""
    release = import_module("sled.modeling_sled")
    with tempfile.TemporaryDirectory() as folder:
        for prefix in ([], PREFIX):
            model = formula_bart()
            model.config.to_json_file(Path(folder) / "config.json")
            config = release.SledConfig(
                folder, WINDOW - len(prefix), 1 - OVERLAP / (WINDOW - len(prefix))
            )
            length = {"prefix_length": torch.tensor([[len(prefix)]])} if prefix else {}
            ids = torch.tensor([prefix + TEXT])
            inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), **length}
            states = release.SledEncoder(model.get_encoder(), config)(**inputs)[0][0]
            released = release.SledForConditionalGeneration(model, config).eval()
            labels = torch.tensor([TARGET])
            loss = released(
                **inputs,
                labels=labels,
                decoder_input_ids=model.prepare_decoder_input_ids_from_labels(labels),
                return_dict=True,
            ).loss
            print(json.dumps([round(float(loss), 8), digest_states(states)]))


if __name__ == "__main__":
    main()
