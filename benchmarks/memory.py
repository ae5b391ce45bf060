"""Memory at the peak of a training step, and its kernels: estimated, and on a machine with a GPU the memory measured.

    python benchmarks/memory.py [--only seal] [--seconds 90] [--device cpu]

Random weights, made texts, sizes of the papers; no files are read. A step is the second one of a training, so the
optimizer has its states. The measured number is torch.cuda.max_memory_allocated: tensors, with the workspaces of
kernels, without the context (about 0.5 GB) and without what the allocator reserves. A case that would not fit, or that
would start after --seconds, is only estimated. A case that fails prints its error.

Kernels are the operators on floats of the forward and the backward pass, without views and allocations. With --device
cpu, they are those of pieces that suit a processor's cache.
"""

import argparse
import gc
import time
from typing import Any
from unittest.mock import patch

import torch
import transformers
from tabulate import tabulate
from torch.utils._pytree import tree_iter  # as in longsumbench.modeling.flops

from longsumbench.core import Recipe, registry
from longsumbench.modeling import flops
from longsumbench.modeling.training.optimization import build_optimizer, recompute_activations

GIB = 2**30
SPARE = 0.93  # share of the free memory that a measured case may need
PAGES = {"name": "pagesum", "vocabulary_size": 50_265, "num_pages": 7, "page_size": 1_024}
SEAL = {"name": "seal", "num_snippets": 224}
LONG = {"name": "seal", "num_snippets": 768}
CASES: list[tuple[str, dict[str, Any], str, int, tuple[str, ...]]] = [  # title, settings, optimizer, texts, variants
    ("PageSum 7 x 1,024, batch 1", PAGES, "adam", 1, ("bf16", "bf16 +", "fp32", "fp32 +")),
    ("SEAL 28,000, batch 1", SEAL, "adafactor", 1, ("bf16", "bf16 +", "fp32", "fp32 +")),
    ("SEAL 28,000, batch 16", SEAL, "adafactor", 16, ("bf16", "bf16 +", "fp32")),
    ("SEAL 96,000, batch 1", LONG, "adafactor", 1, ("bf16", "bf16 +")),
    ("SEAL 96,000, batch 16", LONG, "adafactor", 16, ("bf16", "bf16 +")),
    ("EA, batch 16", {"name": "ea"}, "adafactor", 16, ("bf16",)),
    ("CA, batch 16", {"name": "ca"}, "adafactor", 16, ("bf16",)),
    ("Trunc, batch 16", {"name": "trunc"}, "adafactor", 16, ("bf16",)),
    ("ETADS, batch 4", {"name": "etads"}, "adam", 4, ("bf16", "fp32")),
    ("Hierarchical Transformer, batch 4", {"name": "hierarchical_transformer"}, "adam", 4, ("bf16", "fp32")),
    ("T-DMCA, batch 4", {"name": "tdmca"}, "adafactor", 4, ("bf16", "bf16 +", "fp32")),
]
WORDS, TARGET_WORDS = 200_000, 2_000  # of a made text; every system cuts it at its limits
_SPECIAL = (0, 1, 2)  # token ids of padding, start and end


class Kernels(flops.Costs):  # type: ignore[no-untyped-call] # as in PyTorch's own modes
    """As Costs; also counts the kernels since the last step of an optimizer."""

    launched = 0

    def _dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        result = super()._dispatch(func, args, kwargs)
        floats = (leaf.is_floating_point() for leaf in tree_iter((args, result)) if isinstance(leaf, torch.Tensor))
        Kernels.launched += any(floats) and not func.is_view and not func.__name__.startswith(("empty", "new_empty"))
        return result


def build_counted(model: Any, recipe: Recipe) -> torch.optim.Optimizer:
    """Return an optimizer, after whose steps the count begins again."""
    optimizer = build_optimizer(model, recipe)
    optimizer.register_step_post_hook(lambda *_: setattr(Kernels, "launched", 0))
    return optimizer


def main() -> None:
    """Print a line for each case, and then all of them as a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=90, help="no case is measured after so many")
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="of the estimates; a GPU need not exist"
    )
    options = parser.parse_args()
    started, rows = time.monotonic(), []
    on_gpu = options.device == "cuda" and torch.cuda.is_available()
    place = torch.cuda.get_device_name() if on_gpu else "nothing is measured"
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {place}", flush=True)
    for title, settings, optimizer, texts, variants in CASES:
        for variant in variants if options.only.lower() in title.lower() else ():
            bf16, recipe = "bf16" in variant, Recipe(optimizer=optimizer, gradient_checkpointing="+" in variant)
            row = [title, variant, "", "", "", "", ""]
            try:
                since = time.monotonic()
                config = registry.config_of(settings["name"])(**settings)
                system, batch = flops.made_batch(config, texts, WORDS, TARGET_WORDS)
                with patch.multiple(flops, Costs=Kernels, build_optimizer=build_counted):
                    peak = flops.count_training(system, batch, recipe, options.device, bf16)
                row[2:5] = f"{peak / GIB:.2f}", f"{time.monotonic() - since:.1f}", f"{Kernels.launched:,}"
                if on_gpu:
                    row[5:] = measured(config, recipe, texts, bf16, peak, time.monotonic() - started < options.seconds)
            except Exception as error:  # the other cases are still of interest
                row[6] = f"{type(error).__name__}: {str(error)[:200]}"
            rows.append(row)
            print(*row, sep="  ", flush=True)
    headings = ["", "+ checkpointing", "estimate (GiB)", "s", "kernels", "measured (GiB)", "measured / estimate"]
    print(tabulate(rows, headings, disable_numparse=True))


def measured(config: Any, recipe: Recipe, texts: int, bf16: bool, peak: int, has_time: bool) -> tuple[str, str]:
    """Return the GiB at the peak of the second real step on a GPU, and their ratio to the estimate."""
    gc.collect()
    torch.cuda.empty_cache()
    if peak > SPARE * torch.cuda.mem_get_info()[0] or not has_time:
        return "", "no time" if not has_time else "does not fit"
    system, batch = flops.made_batch(config, texts, WORDS, TARGET_WORDS)
    with torch.device("cuda"):
        model = system.builder.blank_model(_SPECIAL)
    model.to("cuda").train()
    if recipe.gradient_checkpointing:
        recompute_activations(model)
    optimizer = build_optimizer(model, recipe)
    for group in optimizer.param_groups:
        group["lr"] = 1e-4
    inputs = {name: value.to("cuda") if isinstance(value, torch.Tensor) else value for name, value in batch.items()}
    for _ in range(2):
        torch.cuda.reset_peak_memory_stats()
        for _ in range(min(2, recipe.accumulation)):
            with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
                loss = model(**inputs).loss
            loss.backward()
            del loss
        optimizer.step()
        model.zero_grad()
    most = torch.cuda.max_memory_allocated()
    return f"{most / GIB:.2f}", f"{most / peak:.3f}"


if __name__ == "__main__":
    main()
