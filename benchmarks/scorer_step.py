"""A training step of EA and SEAL: the scorer alone (`train.only=scorer`) and the whole system, in turns.

    OMP_NUM_THREADS=1 python benchmarks/scorer_step.py [--scale small] [--texts 8] [--tokens 2048] [--share 1.0]

The sizes are those of a scale. A step is forward, backward and an update by Adam, on made-up texts whose targets have
all `decode_length` tokens. The ratio is the median over the turns.
"""

import argparse
import statistics
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from measuring import in_turns, ratio
from tabulate import tabulate
from torch import Tensor

from longsumbench.core import registry
from longsumbench.modeling.training.optimization import build_optimizer, make_dense
from longsumbench.modeling.training.trainer import Objective
from longsumbench.runs.plan import plan

VOCABULARY, ASKED = 6_000, 1 / 3


def main() -> None:
    """Print the seconds of both steps, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", default="small")
    parser.add_argument("--texts", type=int, default=8, help="of a step")
    parser.add_argument("--tokens", type=int, default=2_048, help="of a text")
    parser.add_argument(
        "--share", type=float, default=1.0, help="of the snippets that the scorer alone reads"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    rows = []
    for name in ("ea", "seal"):
        works = {part: step(name, part, options) for part in ("scorer", "all")}
        seconds = in_turns(works, options.repeats, options.device)
        medians = [statistics.median(seconds[part]) for part in works]
        rows.append([name, *medians, ratio(seconds["scorer"], seconds["all"]), ASKED])
    print(
        tabulate(
            rows, ["system", "scorer alone, s", "whole system, s", "ratio", "asked"], floatfmt=".2f"
        )
    )


def step(name: str, part: str, options: argparse.Namespace) -> Any:
    """Return a function that does a training step of a part of a system."""
    (point,) = plan([f"model={name}", f"scale={options.scale}", "baselines=false"])
    config = point.config.model
    system: Any = registry.systems.load(name)(config)
    torch.manual_seed(0)
    model = (
        system.Model(system.builder.model_config(VOCABULARY, (0, 1, 2))).to(options.device).train()
    )
    system.model = model
    recipe = replace(
        point.config.train, only=part, scored_share=options.share if part == "scorer" else 1.0
    )
    objective = system.objective(recipe) or Objective(model)
    optimizer = build_optimizer(model, point.config.train)
    length = config.decode_length
    segments = -(-length // getattr(config, "segment_length", length))
    units = options.tokens // config.snippet_length
    shape = (options.texts, units, config.snippet_length)
    batch = {
        "input_ids": torch.randint(4, VOCABULARY, shape),
        "unit_mask": torch.ones(shape, dtype=torch.bool),
        "unit_documents": torch.zeros(shape[:2], dtype=torch.long),
        "labels": torch.randint(4, VOCABULARY, (options.texts, length)),
        "proxy_labels": torch.rand(options.texts, segments, units),
    }
    numbers = {
        "num_items_in_batch": options.texts * length,
        "num_proxy_labels": options.texts * segments * units,
    }
    counts = {name: torch.tensor(number) for name, number in numbers.items()}
    moved = {key: value.to(options.device) for key, value in batch.items()}
    return partial(do_step, model, optimizer, objective, {**moved, **counts})


def do_step(model: Any, optimizer: Any, objective: Objective, batch: dict[str, Tensor]) -> None:
    """Do an optimizer step."""
    objective.output(**objective.draw(batch)).loss.backward()
    make_dense(model.parameters())
    for group in optimizer.param_groups:
        group["lr"] = 1e-3
    optimizer.step()
    model.zero_grad()


if __name__ == "__main__":
    main()
