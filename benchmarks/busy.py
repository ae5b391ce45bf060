"""A training step of tiny SEAL with OpenMP threads that spin while they wait (libgomp's default) and that sleep.

    python benchmarks/busy.py [--turns 5] [--steps 5] [--busy 1]

Two processes take turns at some steps, first alone, then beside processes that compute without end. The suite sets
`OMP_WAIT_POLICY=PASSIVE` (threads sleep). Takes about three minutes on two cores; nothing else should run meanwhile.
"""

import argparse
import os
import subprocess
import sys
from contextlib import ExitStack

import torch
from measuring import ratio, timed
from tabulate import tabulate

from longsumbench.models.seal.config import SealConfig
from longsumbench.models.seal.system import Seal

WAITING = {"spinning": {"GOMP_SPINCOUNT": "300000"}, "sleeping": {"OMP_WAIT_POLICY": "PASSIVE"}}  # the first: default
CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
EXAMPLES, UNITS, UNIT_LENGTH, TARGET, SEGMENT, VOCABULARY = 16, 32, 64, 64, 16, 4_000  # conf/scale/tiny.yaml


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=5, help="turns per process, after one warm-up turn")
    parser.add_argument("--steps", type=int, default=5, help="training steps of one turn")
    parser.add_argument("--busy", type=int, default=1, help="busy processes running beside")
    parser.add_argument("--work", action="store_true", help="train here, when a line on standard input asks for it")
    options = parser.parse_args()
    if options.work:
        work(options.steps)
        return
    with ExitStack() as stack:
        workers = {name: stack.enter_context(worker(name, options.steps)) for name in WAITING}
        rows = [row("alone", workers, options.turns, options.steps)]
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)]
        try:
            rows.append(row(f"beside {options.busy} busy", workers, options.turns, options.steps))
        finally:
            for process in busy:
                process.kill()
    names = ["", *(f"{name}, s a step" for name in WAITING), "sleeping / spinning"]
    print(tabulate(rows, names, floatfmt=".2f"))
    print(f"{os.cpu_count()} cores, {torch.get_num_threads()} threads; the middle of {options.turns} turns")


def worker(waiting: str, steps: int) -> "subprocess.Popen[str]":
    """Start a process whose threads wait in a certain way."""
    environment = {name: value for name, value in os.environ.items() if name not in CHOICES} | WAITING[waiting]
    command = [sys.executable, __file__, "--work", "--steps", str(steps)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def row(where: str, workers: dict[str, "subprocess.Popen[str]"], turns: int, steps: int) -> list[object]:
    """Let the processes take turns; return a row of the table."""
    taken = [{name: turn(process) / steps for name, process in workers.items()} for _ in range(turns + 1)][1:]
    seconds = {name: sorted(one[name] for one in taken) for name in workers}
    middle = [one[len(one) // 2] for one in seconds.values()]
    return [where, *middle, ratio(*([one[name] for one in taken] for name in reversed(workers)))]


def turn(process: "subprocess.Popen[str]") -> float:
    """Return the seconds of one turn of a process."""
    assert process.stdin is not None
    assert process.stdout is not None
    print("go", file=process.stdin, flush=True)
    return float(process.stdout.readline())


def work(steps: int) -> None:
    """Train for some steps whenever a line is read, and print their seconds."""
    torch.manual_seed(0)
    sizes = {"d_model": 128, "d_ff": 256, "num_heads": 4, "encoder_layers": 2, "decoder_layers": 2}
    lengths = {"snippet_length": UNIT_LENGTH, "num_snippets": UNITS, "extractive_length": 256}
    system = Seal(SealConfig(**sizes, **lengths, decode_length=TARGET, segment_length=SEGMENT))
    model = system.network.Model(system.network.model_config(VOCABULARY, (0, 1, 2))).train()
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
