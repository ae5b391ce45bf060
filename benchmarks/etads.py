"""What ETADS's focus and saliency cost, compared with its basic model, at the paper's size.

    python benchmarks/etads.py [--only training decoding attention] [--repeats 5] [--device cpu]

Random weights, float32, 4 + 4 layers of width 512 and 2,048, 50,000 words, 8 texts of 400 words, 100 target words,
dropout 0.2 in training. What is compared takes turns (measuring.py).

training: forward and backward, with focus, saliency or both in all four layers, and the basic model.
decoding: 10 beams write 100 words (Wu's length penalty and the summary coverage penalty for all), reading included;
    and the same search by length alone, so that what following the coverage costs shows.
attention: forward and backward of one layer's focus attention, and of attention without a focus.
"""

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from measuring import in_turns, print_turns
from torch import Tensor
from torch.nn import functional as F

from longsumbench.modeling.model_builder import ModelBuilder
from longsumbench.modeling.nn.penalties import Penalties
from longsumbench.models.etads.attention import FocusWindows, focus_attention
from longsumbench.models.etads.config import EtadsConfig
from longsumbench.models.etads.model import EtadsForConditionalGeneration

PAPER = EtadsConfig()
TEXTS, SOURCE, TARGET, BEAMS = 8, PAPER.input_length, PAPER.decode_length, 10
PAD, START, END = 0, 1, 2
EVERY = [1, 2, 3, 4]
VARIANTS: dict[str, dict[str, Any]] = {
    "basic": {},
    "+ focus": {"focus_layers": EVERY},
    "+ saliency": {"saliency_layers": EVERY},
    "both": {"focus_layers": EVERY, "saliency_layers": EVERY},
}


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
    told = (
        f"{TEXTS} texts of {SOURCE} words, {TARGET} target words, {PAPER.vocabulary_size:,} words"
    )
    print(f"float32 on {options.device}, {torch.get_num_threads()} threads, {told}")
    for name in options.only:
        print()
        SHOWN[name](options)


def network(variant: str, device: str) -> Any:
    """Return a network at the paper's size, the same every time."""
    torch.manual_seed(0)
    settings = EtadsConfig(**{"focus_layers": [], "saliency_layers": [], **VARIANTS[variant]})
    own = ModelBuilder(settings, EtadsForConditionalGeneration)
    return own.Model(own.model_config(PAPER.vocabulary_size, (PAD, START, END))).to(device)


def texts(device: str) -> dict[str, Tensor]:
    """Return a batch without padding."""
    ids = torch.randint(3, PAPER.vocabulary_size, (TEXTS, 1, SOURCE), device=device)
    return {"input_ids": ids, "unit_mask": torch.ones_like(ids, dtype=torch.bool)}


def show_training(options: argparse.Namespace) -> None:
    """Print training steps of the variants."""

    def step_of(variant: str) -> Callable[[], None]:
        model, batch = network(variant, options.device).train(), texts(options.device)
        labels = torch.randint(3, PAPER.vocabulary_size, (TEXTS, TARGET), device=options.device)

        def step() -> None:
            model.zero_grad(set_to_none=True)
            model(**batch, labels=labels).loss.backward()

        return step

    turns = in_turns(
        {variant: step_of(variant) for variant in VARIANTS}, options.repeats, options.device
    )
    print("training step, forward and backward")
    print_turns(turns)
    print("asked: both at most 1.5 times the basic model's time")


def show_decoding(options: argparse.Namespace) -> None:
    """Print searches of the variants."""
    coverage = Penalties("wu", 0.9, "summary", 5.0)

    def writing(variant: str, penalties: Penalties | None) -> Callable[[], Tensor]:
        model, batch = network(variant, options.device).eval(), texts(options.device)
        limits = {
            "num_beams": BEAMS,
            "max_new_tokens": TARGET,
            "min_new_tokens": TARGET,
            "do_sample": False,
        }

        def write() -> Tensor:
            with torch.inference_mode(), model.ranked_by(penalties) if penalties else nullcontext():
                written: Tensor = model.generate(**batch, **limits)
            return written

        return write

    works = {variant: writing(variant, coverage) for variant in VARIANTS}
    works |= {
        f"{variant}, by length alone": writing(variant, None) for variant in ("basic", "both")
    }
    turns = in_turns(works, options.repeats, options.device)
    print(f"{BEAMS} beams write {TARGET} words of each text")
    print_turns(turns)
    print("asked: both at most 1.3 times the basic model's time")


def show_attention(options: argparse.Namespace) -> None:
    """Print what the bias costs."""
    torch.manual_seed(0)
    shape = (TEXTS, PAPER.num_heads, SOURCE, PAPER.d_model // PAPER.num_heads)
    query, key, value = (
        torch.randn(shape, device=options.device, requires_grad=True) for _ in range(3)
    )
    states = [query, key, value]
    centres, shares = torch.rand(2, *shape[:3], device=options.device)
    windows = FocusWindows(
        (SOURCE * centres).requires_grad_(), (SOURCE * (0.25 + 0.75 * shares)).requires_grad_()
    )
    real = torch.ones(TEXTS, SOURCE, dtype=torch.bool, device=options.device)
    works = {
        "no focus": lambda: torch.autograd.grad(
            F.scaled_dot_product_attention(query, key, value).sum(), states
        ),
        "focus": lambda: torch.autograd.grad(
            focus_attention(query, key, value, windows, real).sum(), [*states, *windows]
        ),
    }
    turns = in_turns(works, options.repeats, options.device)
    print("one layer's attention, forward and backward")
    print_turns(turns)


SHOWN = {"training": show_training, "decoding": show_decoding, "attention": show_attention}


if __name__ == "__main__":
    main()
