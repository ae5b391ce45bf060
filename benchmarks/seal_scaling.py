"""Forward and backward of SEAL at its stated size, on one document of growing length: time, FLOPs, memory.

    python benchmarks/seal_scaling.py [--lengths 12288,24576,49152,98304] [--repeats 3] [--device cpu]

Each length is measured in a process of its own, so that its peak memory is its own. Beside the seconds of a step stands
what its FLOPs (forward and backward, counted by PyTorch in another process that computes nothing twice) would take at
the rate of a large matrix product, measured right before each step; the ratio of the two is what noise leaves alone.
"""

import argparse
import json
from typing import Any

import torch
from measuring import gemm_rate, in_a_process, timed
from tabulate import tabulate
from torch.utils.flop_counter import FlopCounterMode

from longsumbench.models.seal.config import SealConfig
from longsumbench.models.seal.system import Seal
from longsumbench.runs.environment import peak_memory_gb

SNIPPET_LENGTH, SEGMENT_LENGTH, DECODE_LENGTH, VOCABULARY = (
    128,
    64,
    512,
    32_776,
)  # Search2Wiki (SEAL, Table 4)
LENGTHS = "12288,24576,49152,98304"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", default=LENGTHS, help="source tokens, one or several")
    parser.add_argument(
        "--repeats",
        type=int,
        default=3,
        help="steps behind a first one that does not count; shown is the one of the middle ratio",
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument(
        "--one", action="store_true", help="measure one length here and print it as JSON"
    )
    parser.add_argument(
        "--count", action="store_true", help="count its FLOPs here and print them as JSON"
    )
    options = parser.parse_args()
    if options.one or options.count:
        length, device = int(options.lengths.split(",")[-1]), options.device
        print(
            json.dumps(
                count_flops(length, device)
                if options.count
                else measure(length, options.repeats, device)
            )
        )
        return
    rows = []
    for length in map(int, options.lengths.split(",")):
        flops = in_a_process("--count", "--lengths", str(length))
        found = {**flops, **in_a_process("--one", "--lengths", str(length))}
        ratios = [
            seconds * rate / found["flops"]
            for seconds, rate in zip(found["seconds"], found["rates"], strict=True)
        ]
        middle = sorted(range(len(ratios)), key=ratios.__getitem__)[len(ratios) // 2]
        seconds, rate = found["seconds"][middle], found["rates"][middle]
        told = [
            f"{length:,}",
            seconds,
            found["flops"] / 1e12,
            rate / 1e9,
            ratios[middle],
            found["memory"],
        ]
        rows.append([*told, 1e6 * seconds / length])
    names = [
        "source tokens",
        "s a step",
        "TFLOP",
        "GEMM GFLOP/s",
        "step / its FLOPs at that rate",
        "GB",
        "µs a token",
    ]
    print(tabulate(rows, names, floatfmt=("", ".2f", ".2f", ".0f", ".2f", ".2f", ".0f")))
    print(
        "asked at 98,304 tokens: a ratio of at most 2.2 (aim 1.6) and 4 GB (aim 3); both growing linearly"
    )


def prepare(length: int, device: str) -> tuple[Any, dict[str, torch.Tensor]]:
    """Return SEAL at its stated size, and a batch of one document of `length` tokens."""
    torch.manual_seed(0)
    units = length // SNIPPET_LENGTH
    system = Seal(
        SealConfig(num_snippets=units, decode_length=DECODE_LENGTH, segment_length=SEGMENT_LENGTH)
    )
    model = system.Model(system.builder.model_config(VOCABULARY, (0, 1, 2))).to(device).train()
    batch = {
        "input_ids": torch.randint(4, VOCABULARY, (1, units, SNIPPET_LENGTH)),
        "unit_mask": torch.ones(1, units, SNIPPET_LENGTH, dtype=torch.bool),
        "unit_documents": torch.zeros(1, units, dtype=torch.long),
        "labels": torch.randint(4, VOCABULARY, (1, DECODE_LENGTH)),
        "proxy_labels": torch.rand(1, DECODE_LENGTH // SEGMENT_LENGTH, units),
    }
    return model, {name: value.to(device) for name, value in batch.items()}


def measure(length: int, repeats: int, device: str) -> dict[str, Any]:
    """Return the seconds of some training steps, FLOP/s before each, and the peak memory of all in GB."""
    model, batch = prepare(length, device)
    model.activation_checkpointing_enable()

    def step() -> None:
        model.zero_grad(set_to_none=True)
        model(**batch).loss.backward()

    seconds, rates = [], []
    step()
    for _ in range(repeats):
        rates.append(gemm_rate(device))
        seconds.append(timed(step, device)[0])
    return {"seconds": seconds, "rates": rates, "memory": peak_memory_gb()}


def count_flops(length: int, device: str) -> dict[str, Any]:
    """Count the FLOPs of a forward and backward pass that keeps all activations."""
    model, batch = prepare(length, device)
    model.set_attn_implementation(
        "eager"
    )  # the counter does not know the fused attention of the CPU
    counter = FlopCounterMode(display=False)
    with counter:
        model(**batch).loss.backward()
    return {"flops": float(counter.get_total_flops())}


if __name__ == "__main__":
    main()
