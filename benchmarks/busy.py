"""A training step of tiny SEAL, by how long OpenMP's threads spin before they sleep, alone and next to busy processes.

    python benchmarks/busy.py [--turns 5] [--steps 5] [--busy 1] [--spins 300000 10000 1000 0]

Processes take turns at some steps, first alone, then next to processes that compute without end. libgomp's threads spin
300,000 times by default; the suite sets 10,000 (`GOMP_SPINCOUNT`). Takes about five minutes on two cores.
Ratios compare turns that follow each other; seconds need an otherwise quiet machine.
"""

import argparse
import os
import subprocess
import sys
from contextlib import ExitStack
from statistics import median
from typing import Any

import torch
from measuring import ratio, timed
from tabulate import tabulate

from longsumbench.models.seal.config import SealConfig
from longsumbench.models.seal.system import Seal

CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
EXAMPLES, UNITS, UNIT_LENGTH, TARGET, SEGMENT, VOCABULARY = (
    16,
    32,
    64,
    64,
    16,
    4_000,
)  # conf/scale/tiny.yaml


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--turns", type=int, default=5, help="turns per process, after one warm-up turn"
    )
    parser.add_argument("--steps", type=int, default=5, help="training steps of one turn")
    parser.add_argument(
        "--busy", type=int, default=1, help="busy processes running at the same time"
    )
    parser.add_argument(
        "--spins",
        type=int,
        nargs="+",
        default=[300_000, 10_000, 1_000, 0],
        help="the first: default",
    )
    parser.add_argument(
        "--work", action="store_true", help="train here, when a line on standard input asks for it"
    )
    options = parser.parse_args()
    if options.work:
        work(options.steps)
        return
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(spins, options.steps)) for spins in options.spins]
        quiet = seconds(workers, options.turns)
        busy = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(options.busy)
        ]
        try:
            disturbed = seconds(workers, options.turns)
        finally:
            for process in busy:
                process.kill()
    rows = [
        [
            spins,
            median(one) / options.steps,
            ratio(one, quiet[0]),
            ratio(other, one),
            ratio(other, disturbed[0]),
        ]
        for spins, one, other in zip(options.spins, quiet, disturbed, strict=True)
    ]
    named = f"next to {options.busy} busy"
    first = options.spins[0]
    names = [
        "spins",
        "alone, s a step",
        f"alone / {first} spins",
        f"{named} / alone",
        f"{named} / {first} spins",
    ]
    print(tabulate(rows, names, floatfmt=".2f"))
    print(
        f"{os.cpu_count()} cores, {torch.get_num_threads()} threads; the middle of {options.turns} turns"
    )


def worker(spins: int, steps: int) -> "subprocess.Popen[str]":
    """Start a process whose threads spin so many times before they sleep."""
    others = {name: value for name, value in os.environ.items() if name not in CHOICES}
    command = [sys.executable, __file__, "--work", "--steps", str(steps)]
    environment = {**others, "GOMP_SPINCOUNT": str(spins)}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def seconds(workers: list["subprocess.Popen[str]"], turns: int) -> list[list[float]]:
    """Let the processes take turns, after one that warms up; return the seconds of each process's turns."""
    taken = [[turn(process) for process in workers] for _ in range(turns + 1)][1:]
    return [list(one) for one in zip(*taken, strict=True)]


def turn(process: "subprocess.Popen[str]") -> float:
    """Return the seconds of one turn of a process."""
    assert process.stdin is not None
    assert process.stdout is not None
    print("go", file=process.stdin, flush=True)
    return float(process.stdout.readline())


def work(steps: int) -> None:
    """Train for some steps whenever a line is read, and print their seconds."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "d_model": 128,
        "d_ff": 256,
        "num_heads": 4,
        "encoder_layers": 2,
        "decoder_layers": 2,
    }
    lengths: dict[str, Any] = {
        "snippet_length": UNIT_LENGTH,
        "num_snippets": UNITS,
        "extractive_length": 256,
    }
    system = Seal(SealConfig(**sizes, **lengths, decode_length=TARGET, segment_length=SEGMENT))
    model = system.Model(system.builder.model_config(VOCABULARY, (0, 1, 2))).train()
    optimizer = torch.optim.Adam(model.parameters())
    batch = {
        "input_ids": torch.randint(4, VOCABULARY, (EXAMPLES, UNITS, UNIT_LENGTH)),
        "unit_mask": torch.ones(EXAMPLES, UNITS, UNIT_LENGTH, dtype=torch.bool),
        "unit_documents": torch.zeros(EXAMPLES, UNITS, dtype=torch.long),
        "labels": torch.randint(4, VOCABULARY, (EXAMPLES, TARGET)),
        "proxy_labels": torch.rand(EXAMPLES, TARGET // SEGMENT, UNITS),
    }

    def train() -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            model(**batch).loss.backward()
            optimizer.step()

    for _ in sys.stdin:
        print(timed(train, "cpu")[0], flush=True)


if __name__ == "__main__":
    main()
