"""What benchmarks of networks share: the seconds of some work, the rate of matrix products, a fresh process.

What is compared takes turns in one process, after a first turn that does not count. A ratio is the median of those of
the turns.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from tabulate import tabulate

GEMM = 2_048  # rows and columns of the product that the rate is measured by
Found = TypeVar("Found")


def in_a_process(*words: str) -> dict[str, Any]:
    """Run this benchmark with more words in a fresh process, and return what its last line says as JSON."""
    done = subprocess.run(
        [sys.executable, *sys.argv, *words], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def gemm_rate(device: str) -> float:
    """Return FLOPs a second of a large float32 matrix product, the best of a few."""
    return product_rate(device, GEMM, torch.float32)


def product_rate(device: str, size: int, dtype: torch.dtype) -> float:
    """Return FLOPs a second of a product of two square matrices, the best of a few."""
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    left @ right
    return max(2 * size**3 / timed(lambda: left @ right, device)[0] for _ in range(5))


def in_turns(
    works: Mapping[str, Callable[[], object]], repeats: int, device: str
) -> dict[str, list[float]]:
    """Return the seconds of some works that take turns, those of a first turn left out."""
    turns = [
        {name: timed(work, device)[0] for name, work in works.items()} for _ in range(repeats + 1)
    ][1:]
    return {name: [turn[name] for turn in turns] for name in works}


def ratio(some: list[float], others: list[float]) -> float:
    """Return the median ratio of the turns."""
    return statistics.median(one / other for one, other in zip(some, others, strict=True))


def print_turns(turns: Mapping[str, list[float]]) -> None:
    """Print the median seconds of some works, and their ratios to those of the first."""
    first = next(iter(turns.values()))
    rows = [
        [name, statistics.median(seconds), ratio(seconds, first)] for name, seconds in turns.items()
    ]
    print(tabulate(rows, ["", "s", "times the first"], floatfmt=("", ".3f", ".2f")))


def timed(work: Callable[[], Found], device: str) -> tuple[float, Found]:
    """Return the seconds of some work, and what it returned."""
    if device == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    found = work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started, found
