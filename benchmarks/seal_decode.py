"""What it costs SEAL to select anew where a segment begins, beside decoding the segment.

    python benchmarks/seal_decode.py [--length 98304] [--beams 4] [--diverging] [--device cpu]

One document, the stated size. A segment is decoded token by token by the library's beam search. The refresh is what a
segment's first step takes beyond an ordinary one: selecting (pooling the last segment, scoring, gating, gathering) and
projecting the new memory to keys and values; beside it stands the rest of the segment's time. The beams of an untrained
network select the same snippets; with --diverging every beam is made to select others, the most work there can be.
"""

import argparse
import time
from typing import Any

import torch
from measuring import timed
from tabulate import tabulate

from longsumbench.models.seal.config import SealConfig
from longsumbench.models.seal.system import Seal

SNIPPET_LENGTH, SEGMENT_LENGTH, VOCABULARY = 128, 64, 32_776  # Search2Wiki (SEAL, Table 4)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--length", type=int, default=98_304, help="source tokens")
    parser.add_argument("--beams", type=int, default=4)
    parser.add_argument(
        "--segments",
        type=int,
        default=4,
        help="segments decoded, of which the first is not counted",
    )
    parser.add_argument(
        "--diverging", action="store_true", help="make every beam select other snippets"
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    torch.manual_seed(0)
    units = options.length // SNIPPET_LENGTH
    settings = SealConfig(num_snippets=units, decode_length=512, segment_length=SEGMENT_LENGTH)
    system = Seal(settings)
    model: Any = (
        system.Model(system.builder.model_config(VOCABULARY, (0, 1, 2))).to(options.device).eval()
    )
    batch = {
        "input_ids": torch.randint(4, VOCABULARY, (1, units, SNIPPET_LENGTH)),
        "unit_mask": torch.ones(1, units, SNIPPET_LENGTH, dtype=torch.bool),
        "unit_documents": torch.zeros(1, units, dtype=torch.long),
    }
    batch = {name: value.to(options.device) for name, value in batch.items()}
    if options.diverging:
        scorer = model.model.encoder.scorer
        scorer.register_forward_hook(
            lambda module, inputs, scores: scores + 1e3 * torch.randn_like(scores)
        )
    with torch.inference_mode():
        rows = measure(model, batch, options)
    print(
        tabulate(
            rows,
            [
                "segment",
                "select ms",
                "first step ms",
                "other steps ms",
                "memory tokens",
                "refresh / rest",
            ],
        )
    )
    shares = [row[-1] for row in rows[1:]]
    print(
        f"refresh, mean of segments 2 to {len(rows)}: {sum(shares) / len(shares):.1%} of decoding a segment"
    )
    print("asked: at most 15 % (aim 10 %), 4 beams, 98,304 tokens")


def measure(
    model: Any, batch: dict[str, torch.Tensor], options: argparse.Namespace
) -> list[list[Any]]:
    """Decode and return a row a segment."""
    begun: list[float] = []
    steps: list[float] = []
    sizes: list[int] = []
    begin, run = model._begin_segment, model.forward

    def timed_begin(*arguments: Any) -> torch.Tensor:
        seconds, memory = timed(lambda: begin(*arguments), options.device)
        begun.append(seconds)
        sizes.append(memory.shape[1])
        return torch.as_tensor(memory)

    def timed_forward(*arguments: Any, **named: Any) -> Any:
        seconds, output = timed(lambda: run(*arguments, **named), options.device)
        steps.append(seconds)
        return output

    model._begin_segment, model.forward = timed_begin, timed_forward
    started = time.perf_counter()
    length = options.segments * SEGMENT_LENGTH
    search = {
        "num_beams": options.beams,
        "max_new_tokens": length,
        "min_new_tokens": length,
        "do_sample": False,
    }
    model.generate(**batch, **search)
    seconds = time.perf_counter() - started
    print(
        f"{options.length:,} tokens, {options.beams} beams, {length} output tokens: {seconds:.1f} s"
    )
    rows = []
    for number, (selection, size) in enumerate(zip(begun, sizes, strict=True)):
        of_segment = steps[number * SEGMENT_LENGTH : (number + 1) * SEGMENT_LENGTH]
        usual = sorted(of_segment[1:])[len(of_segment) // 2]
        rest = sum(of_segment[1:]) + usual
        told = [1e3 * selection, 1e3 * of_segment[0], 1e3 * usual, size]
        rows.append([number + 1, *told, (of_segment[0] - usual) / rest])
    return rows


if __name__ == "__main__":
    main()
