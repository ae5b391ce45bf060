"""What the Hierarchical Transformer costs, beside a plain encoder-decoder over the same tokens, at the paper's size.

    python benchmarks/hierarchical_transformer.py [--only training decoding growth] [--repeats 5] [--device cpu]

Random weights, float32, width 256 and 1,024, 6 decoder layers, 32,000 pieces, 24 paragraphs of 70 tokens (or as many
tokens as one text), 140 target tokens, dropout 0.1 in training. What is compared takes turns (measuring.py).

training: forward and backward of 5 local and 2 global layers, as the paper has them and as the release, without the
    global layers, and with a graph; beside the Flat Transformer with as many layers and with its own 6, and beside the
    library's Pegasus with 7.
decoding: 5 beams write 140 tokens (Wu's length penalty), reading included.
growth: the encoder alone, forward and backward, over 24 to 192 paragraphs: seconds for each 24, and the same without
    global layers.
"""

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import torch
from measuring import in_turns, print_turns, ratio
from tabulate import tabulate
from torch import Tensor
from transformers import PegasusConfig, PegasusForConditionalGeneration

from longsumbench.modeling.model_builder import ModelBuilder
from longsumbench.modeling.nn.penalties import Penalties
from longsumbench.models.hierarchical_transformer.config import HierarchicalTransformerConfig
from longsumbench.models.hierarchical_transformer.model import (
    HierarchicalTransformerForConditionalGeneration,
)

PAPER = HierarchicalTransformerConfig()
BUILDER = ModelBuilder(PAPER, HierarchicalTransformerForConditionalGeneration)
PARAGRAPHS, LENGTH, TARGET, BEAMS = PAPER.num_paragraphs, 70, 140, 5
SPECIAL = PAD, START, END = 0, 1, 2
FLAT = {"global_layers": 0, "paragraph_positions": False}
NETWORKS: dict[str, dict[str, Any]] = {
    "flat, 7 layers": {"encoder_layers": 7, **FLAT},
    "flat, 6 layers": {"encoder_layers": 6, **FLAT},
    "hierarchical, 5 + 2": {},
    "hierarchical, a graph": {},
    "hierarchical, official": {"official": True},
    "without global layers": {"global_layers": 0},
}
GROWTH = (24, 48, 96, 192)


def main() -> None:
    """Print a table for each measurement asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", nargs="+", choices=tuple(SHOWN), default=tuple(SHOWN), help="some measurements"
    )
    parser.add_argument(
        "--repeats", type=int, default=5, help="turns behind a first one that does not count"
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    told = f"{PARAGRAPHS} paragraphs of {LENGTH} tokens, {TARGET} target tokens, {PAPER.vocabulary_size:,} pieces"
    print(f"float32 on {options.device}, {torch.get_num_threads()} threads, {told}")
    for name in options.only:
        print()
        SHOWN[name](options)


def network(name: str, device: str) -> Any:
    """Return a network at the paper's size, the same every time."""
    torch.manual_seed(0)
    config = BUILDER.model_config(PAPER.vocabulary_size, SPECIAL)
    config.update(NETWORKS[name])
    return HierarchicalTransformerForConditionalGeneration(config).to(device)


def text(name: str, device: str, paragraphs: int = PARAGRAPHS) -> dict[str, Tensor]:
    """Return one example without padding: paragraphs, or as many tokens in one unit."""
    shape = (1, 1, paragraphs * LENGTH) if name.startswith("flat") else (1, paragraphs, LENGTH)
    ids = torch.randint(3, PAPER.vocabulary_size, shape, device=device)
    batch = {"input_ids": ids, "unit_mask": torch.ones_like(ids, dtype=torch.bool)}
    if "graph" in name:
        batch["unit_graph"] = torch.rand(1, paragraphs, paragraphs, device=device)
    return batch


def libraries(device: str) -> Callable[[], None]:
    """Return a training step of the library's Pegasus with 7 encoder layers."""
    torch.manual_seed(0)
    config = PegasusConfig()
    config.update(BUILDER.model_config(PAPER.vocabulary_size, SPECIAL).to_dict())
    config.update({"encoder_layers": 7, "max_position_embeddings": PARAGRAPHS * LENGTH})
    model = PegasusForConditionalGeneration(config).to(device).train()
    ids = torch.randint(3, PAPER.vocabulary_size, (1, PARAGRAPHS * LENGTH), device=device)
    labels = torch.randint(3, PAPER.vocabulary_size, (1, TARGET), device=device)

    def step() -> None:
        model.zero_grad(set_to_none=True)
        model(input_ids=ids, labels=labels).loss.backward()

    return step


def show_training(options: argparse.Namespace) -> None:
    """Print training steps."""

    def step_of(name: str) -> Callable[[], None]:
        model, batch = network(name, options.device).train(), text(name, options.device)
        labels = torch.randint(3, PAPER.vocabulary_size, (1, TARGET), device=options.device)

        def step() -> None:
            model.zero_grad(set_to_none=True)
            model(**batch, labels=labels).loss.backward()

        return step

    works = {name: step_of(name) for name in NETWORKS}
    turns = in_turns(
        {**works, "library's Pegasus, 7 layers": libraries(options.device)},
        options.repeats,
        options.device,
    )
    print("training step, forward and backward")
    print_turns(turns)
    print("asked: hierarchical at most 1.0 times a plain encoder-decoder's time, aimed at 0.8")


def show_decoding(options: argparse.Namespace) -> None:
    """Print beam searches."""
    penalties = Penalties("wu", 0.4)

    def writing(name: str) -> Callable[[], Tensor]:
        model, batch = network(name, options.device).eval(), text(name, options.device)
        limits = {
            "num_beams": BEAMS,
            "max_new_tokens": TARGET,
            "min_new_tokens": TARGET,
            "do_sample": False,
        }

        def write() -> Tensor:
            with torch.inference_mode(), model.ranked_by(penalties):
                written: Tensor = model.generate(**batch, **limits)
            return written

        return write

    turns = in_turns({name: writing(name) for name in NETWORKS}, options.repeats, options.device)
    print(f"{BEAMS} beams write {TARGET} tokens")
    print_turns(turns)


def show_growth(options: argparse.Namespace) -> None:
    """Print how the encoder's time grows with the paragraphs."""

    def reading(name: str, paragraphs: int) -> Callable[[], None]:
        encoder = network(name, options.device).model.encoder.train()
        batch = text(name, options.device, paragraphs)

        def read() -> None:
            encoder.zero_grad(set_to_none=True)
            encoder(**batch).last_hidden_state.sum().backward()

        return read

    names = ("hierarchical, 5 + 2", "without global layers")
    works = {f"{name}, {size}": reading(name, size) for name in names for size in GROWTH}
    turns = in_turns(works, options.repeats, options.device)
    rows = []
    for name in names:
        each = [statistics.median(turns[f"{name}, {size}"]) * GROWTH[0] / size for size in GROWTH]
        growth = [
            ratio(turns[f"{name}, {size}"], turns[f"{name}, {GROWTH[0]}"]) * GROWTH[0] / size
            for size in GROWTH
        ]
        rows.append(
            [
                name,
                *(
                    f"{seconds:.3f} ({times:.2f})"
                    for seconds, times in zip(each, growth, strict=True)
                ),
            ]
        )
    print(
        f"the encoder's seconds for each {GROWTH[0]} paragraphs (times those of {GROWTH[0]}), forward and backward"
    )
    print(tabulate(rows, ["", *(f"{size} paragraphs" for size in GROWTH)]))
    print("asked: linear, but for the small term of relating paragraphs: 1.00 throughout, about")


SHOWN = {"training": show_training, "decoding": show_decoding, "growth": show_growth}


if __name__ == "__main__":
    main()
