"""BART, LED, LongT5 and PageSum of one size, from random weights under one budget.

    python benchmarks/same_size.py [--folder results/checkpoints] [--run] dataset=probe seed=1,2,3
    python benchmarks/same_size.py --run dataset=elife dataset.path=FOLDER scale=small seed=1,2,3

Sizes, tokenizer and budget are the scale's for PageSum, and all can read as many tokens as PageSum. The script writes
the architectures as folders that `model=seq2seq` can open, each named by all that decides it, and prints the two sweeps
to run; with --run it runs them. Training starts from random weights, drawn anew for every seed (`model.init=random`).

LED's window and LongT5's neighbourhood have 128 tokens; LED marks the first token as global, LongT5 every 16 tokens.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    LEDConfig,
    LongT5Config,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
)

from longsumbench.cache.artifacts import user_cache
from longsumbench.cli.main import main as longsumbench
from longsumbench.corpora.loading.load import load_texts
from longsumbench.files import digest
from longsumbench.modeling.tokenizer import tokenizer_identity, trained_tokenizer
from longsumbench.runs.plan import plan

WINDOW, GLOBAL_BLOCK = 128, 16  # tokens
ARCHITECTURES = ("bart", "led", "longt5")


def main() -> None:
    """Write the checkpoints; print the commands or run them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", default="results/checkpoints", help="folder of the checkpoints")
    parser.add_argument("--run", action="store_true", help="run the sweeps")
    parser.add_argument(
        "overrides", nargs="*", default=["dataset=probe"], help="dataset, scale, seeds, budget"
    )
    options = parser.parse_args()
    folders = write_checkpoints(Path(options.folder), options.overrides)
    start = ["run", "-m", *options.overrides, "model.init=random"]
    commands = [
        [*start, "model=seq2seq", f"model.checkpoint={','.join(map(str, folders))}"],
        [*start, "model=pagesum"],
    ]
    for command in commands:
        print("longsumbench", shlex.join(command), flush=True)
    if options.run:
        sys.exit(max(longsumbench(command) for command in commands))


def write_checkpoints(
    folder: Path, overrides: list[str], architectures: Sequence[str] = ARCHITECTURES
) -> list[Path]:
    """Write architectures in PageSum's size; return their folders."""
    first = [word.partition(",")[0] for word in overrides]  # of several seeds
    config, cache = plan([*first, "model=pagesum", "model.init=random"])[0].config, user_cache()
    train = load_texts(config.dataset, cache).splits["train"]
    tokenizer = trained_tokenizer(train, vars(config.model)["vocabulary_size"], cache)
    special = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("<s>", "</s>")]
    written = []
    for name in architectures:
        network = architecture(name, config.model, tokenizer)
        template = "$A </s>" if name == "longt5" else "<s> $A </s>"
        processor = TemplateProcessing(single=template, special_tokens=special)
        tokenizer.backend_tokenizer.post_processor = processor
        place = folder / f"{name}-{digest([network.to_dict(), tokenizer_identity(tokenizer)])[:8]}"
        tokenizer.save_pretrained(place)
        torch.manual_seed(1)
        AutoModelForSeq2SeqLM.from_config(network).save_pretrained(place)
        written.append(place)
    return written


def architecture(name: str, sizes: Any, tokenizer: PreTrainedTokenizerBase) -> PreTrainedConfig:
    """Return the configuration of an architecture with PageSum's sizes."""
    width, heads = sizes.dimension("d_model"), sizes.dimension("num_heads")
    shared = {
        f"{token}_token_id": getattr(tokenizer, f"{token}_token_id")
        for token in ("pad", "bos", "eos")
    }
    shared |= {"d_model": width, "vocab_size": len(tokenizer)}
    if name == "longt5":
        return LongT5Config(
            **shared,
            d_kv=width // heads,
            d_ff=sizes.dimension("d_ff"),
            num_heads=heads,
            num_layers=sizes.dimension("encoder_layers"),
            num_decoder_layers=sizes.dimension("decoder_layers"),
            dropout_rate=sizes.dropout,
            encoder_attention_type="transient-global",
            local_radius=WINDOW // 2 - 1,
            global_block_size=GLOBAL_BLOCK,
            decoder_start_token_id=tokenizer.pad_token_id,
        )
    shared |= {"dropout": sizes.dropout, "decoder_start_token_id": tokenizer.eos_token_id}
    for stack in ("encoder", "decoder"):
        shared |= {f"{stack}_ffn_dim": sizes.dimension("d_ff"), f"{stack}_attention_heads": heads}
        shared[f"{stack}_layers"] = sizes.dimension(f"{stack}_layers")
    positions = -(-max(sizes.most_pages * sizes.page_size, sizes.decode_length) // WINDOW) * WINDOW
    if name == "bart":
        return BartConfig(**shared, max_position_embeddings=positions, scale_embedding=True)
    return LEDConfig(
        **shared,
        max_encoder_position_embeddings=positions,
        max_decoder_position_embeddings=sizes.decode_length,
        attention_window=WINDOW,
    )


if __name__ == "__main__":
    main()
