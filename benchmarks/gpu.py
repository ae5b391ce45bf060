"""What networks of the papers' sizes reach on a GPU, compared with LED of the same width, depth and input.

    python benchmarks/gpu.py [--seconds 1] [--only seal pagesum-large] [--csv gpu.csv] [--device cuda] [--tiny]

Random weights and random tokens: nothing is downloaded or read. A row is printed, and written to the CSV file, when it
is measured. A measurement that fails prints its error, and the next one starts. Each takes `--seconds`, and its
preparation a few: about four minutes on an H100.

train: forward, backward, clipping and fused AdamW of one batch, in bfloat16 (autocast) or float32 (PyTorch's
    default, without TF32), with or without gradient checkpointing. Tokens are those of the input.
greedy, beam: `generate` in float32, as the suite writes; ms a token is (time of n tokens - time of 2) / (n - 2), so
    reading does not count. Tokens are those of the summaries.

MFU = 3 × FLOPs of a forward pass / (seconds a step × rate of a bfloat16 product of two 8,192 × 8,192 matrices, measured
    first). FLOPs are two for each multiply-add of a matrix product (torch.utils.flop_counter); what checkpointing computes
    again does not count. LED's attention multiplies more than its window needs, which counts.
peak GB: the most that tensors held (torch.cuda.max_memory_allocated), weights and optimizer included; empty on a CPU.
"""

import argparse
import copy
import csv
import gc
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from transformers import LEDConfig, LEDForConditionalGeneration

from longsumbench.core import TrainConfig, registry
from longsumbench.modeling.nn.device import to_device
from longsumbench.modeling.training.trainer import (
    build_optimizer,
    make_dense,
    recompute_activations,
)

WINDOW, PRODUCT = 1_024, 8_192  # tokens that LED's attention sees; rows and columns
WRITING = 4  # examples that are summarized together
MOST_STEPS, FEWEST_TOKENS = 50, 16
COLUMNS = (
    "network",
    "work",
    "precision",
    "checkpointing",
    "examples",
    "input",
    "ms",
    "tokens/s",
    "MFU",
    "peak GB",
)
WIDTHS = (30, 8, 10, 14, 9, 8, 10, 11, 7, 8)


@dataclass(frozen=True)
class Case:
    """A system of paper size, and the batch that it trains on."""

    system: str
    examples: int
    units: tuple[int, int]  # number and length
    target: int  # tokens
    beams: int
    settings: dict[str, Any] = field(default_factory=dict)
    checkpointing: bool = False  # True: also measured with it

    def tiny(self) -> "Case":
        """Return the same with sizes for a test."""
        small = {
            "d_model": 16,
            "d_ff": 16,
            "num_heads": 2,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "num_layers": 3,
        }
        small |= {
            "vocabulary_size": 320,
            "extractive_length": 16,
            "snippet_length": 8,
            "segment_length": 4,
        }
        setting_names = registry.load_config_class(self.system).__dataclass_fields__
        settings = {name: value for name, value in small.items() if name in setting_names}
        return Case(
            self.system, 2, (min(2, self.units[0]), 12), 9, 2, {**self.settings, **settings}, False
        )


BART = {"init": "random", "vocabulary_size": 50_265}
CASES = {
    "seal": Case("seal", 16, (224, 128), 768, 4, checkpointing=True),  # arXiv (SEAL, Table 4)
    "trunc": Case("trunc", 16, (8, 128), 768, 4),
    "pagesum-base": Case(
        "pagesum", 2, (7, 1_024), 400, 4, {**BART, "size": "base"}, checkpointing=True
    ),
    "pagesum-large": Case(
        "pagesum", 1, (7, 1_024), 400, 4, {**BART, "size": "large"}, checkpointing=True
    ),
    "etads": Case("etads", 10, (1, 400), 100, 10),
    "hierarchical": Case("hierarchical_transformer", 4, (24, 70), 140, 5),
    "tdmca": Case("tdmca", 3, (1, 3_000), 140, 4),
}
LED_EXAMPLES = {"seal": 2}  # where LED cannot hold as many


def product_rate(device: str, size: int, dtype: torch.dtype) -> float:
    """Return FLOPs a second of a product of two square matrices, the best of a few."""
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    left @ right
    return max(2 * size**3 / timed(lambda: left @ right, device)[0] for _ in range(5))


def timed(work: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Return the seconds of some work, and what it returned."""
    if device == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    found = work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started, found


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", nargs="+", choices=tuple(CASES), default=tuple(CASES), help="some networks"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a measurement")
    parser.add_argument("--csv", type=Path, default=Path("gpu.csv"), help="file for the rows")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument(
        "--without-led", action="store_true", help="measure the suite's networks alone"
    )
    parser.add_argument(
        "--tiny", action="store_true", help="tiny networks, to try this script on any machine"
    )
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.exit(1, "PyTorch finds no GPU; --device cpu --tiny tries the script\n")
    size = 256 if options.tiny else PRODUCT
    rates = {
        name: product_rate(options.device, size, getattr(torch, name))
        for name in ("bfloat16", "float32")
    }
    name = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    print(f"{name}, PyTorch {torch.__version__}, transformers {transformers.__version__}")
    rates_text = ", ".join(f"{dtype} {rate / 1e12:.3g} TFLOP/s" for dtype, rate in rates.items())
    print(f"product of {size:,} × {size:,} matrices: {rates_text}; MFU 100 % is that of bfloat16")
    print("".join(name.ljust(width) for name, width in zip(COLUMNS, WIDTHS, strict=True)))
    started = time.perf_counter()
    with options.csv.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*COLUMNS, "TFLOP", "device", "error"])
        writer.writeheader()
        for case_name in options.only:
            case = CASES[case_name].tiny() if options.tiny else CASES[case_name]
            for beside_led in (False,) if options.without_led else (False, True):
                measure_network(case_name, case, beside_led, rates["bfloat16"], options, writer)
                file.flush()
    print(f"{time.perf_counter() - started:.0f} s in all; rows in {options.csv}")


def measure_network(
    name: str, case: Case, of_led: bool, rate: float, options: argparse.Namespace, writer: Any
) -> None:
    """Measure all rows of a network; a row that fails has its error."""
    network_name = f"LED as {name}" if of_led else name
    examples = (
        min(case.examples, LED_EXAMPLES.get(name, case.examples)) if of_led else case.examples
    )
    try:
        model, batch = (led if of_led else network)(case, examples)
        flops = count_flops(model, batch, options.device)
    except Exception as error:  # such as a size that this version of a library refuses
        show_row({"network": network_name, "error": one_line(error)}, options, writer)
        return
    rows: list[tuple[str, str, bool]] = [("train", "bfloat16", False), ("train", "float32", False)]
    if case.checkpointing:
        rows.append(("train", "bfloat16", True))
    rows += [("greedy", "float32", False), (f"beam {case.beams}", "float32", False)]
    for work, precision, checkpointing in rows:
        row: dict[str, Any] = {"network": network_name, "work": work, "precision": precision}
        row |= {
            "checkpointing": "yes" if checkpointing else "",
            "input": case.units[0] * case.units[1],
        }
        try:
            if options.device == "cuda":
                torch.cuda.reset_peak_memory_stats()
            if work == "train":
                seconds = training_seconds(model, batch, precision, checkpointing, options)
                tokens = batch["input_ids"].numel()
                row |= {
                    "examples": examples,
                    "TFLOP": 3 * flops / 1e12,
                    "MFU": 3 * flops / (seconds * rate),
                }
            else:
                tokens, beams = min(examples, WRITING), int(work.partition(" ")[2] or 1)
                seconds = token_seconds(
                    model, network_input(case, tokens, of_led), beams, case.target, options
                )
                row["examples"] = tokens
            row |= {"ms": 1e3 * seconds, "tokens/s": tokens / seconds}
            if options.device == "cuda":
                row["peak GB"] = torch.cuda.max_memory_allocated() / 1e9
        except Exception as error:  # out of memory, or an operator that this GPU lacks
            row["error"] = one_line(error)
        show_row(row, options, writer)
        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()


def network(case: Case, examples: int) -> tuple[Any, dict[str, Tensor]]:
    """Return the network of a system with random weights, and a batch with targets."""
    torch.manual_seed(0)
    config = registry.load_config_class(case.system)(**case.settings)
    builder = registry.systems.load(case.system)(config).builder
    model = builder.Model(builder.model_config(config.vocabulary_size, (0, 1, 2)))
    batch = network_input(case, examples, of_led=False, target=case.target)
    return model, batch


def network_input(case: Case, examples: int, of_led: bool, target: int = 0) -> dict[str, Tensor]:
    """Return a batch of random tokens without padding, as the system collates it; LED's has no units."""
    (units, length), system = case.units, registry.systems.load(case.system)
    config = registry.load_config_class(case.system)(**case.settings)
    ids = torch.randint(4, config.vocabulary_size, (examples, units, length))
    labels = torch.randint(4, config.vocabulary_size, (examples, target))
    if of_led:
        return {"input_ids": ids.flatten(1), **({"labels": labels} if target else {})}
    rows = [{"units": row, "unit_documents": [0] * units, "labels": []} for row in ids.tolist()]
    if target:
        segments = -(-target // getattr(config, "segment_length", target))
        for row, row_labels in zip(rows, labels.tolist(), strict=True):
            row |= {"labels": row_labels, "proxy_labels": torch.rand(segments, units).tolist()}
    batch: dict[str, Tensor] = system.Reader.Collator(0)(rows)
    return batch


def led(case: Case, examples: int) -> tuple[Any, dict[str, Tensor]]:
    """Return LED as wide and deep as the system, and the same batch as one text."""
    torch.manual_seed(0)
    config, tokens = (
        registry.load_config_class(case.system)(**case.settings),
        case.units[0] * case.units[1],
    )
    sizes: dict[str, Any] = {
        "d_model": config.dimension("d_model"),
        "vocab_size": config.vocabulary_size,
    }
    for stack in ("encoder", "decoder"):
        sizes[f"{stack}_layers"] = config.dimension(f"{stack}_layers")
        sizes[f"{stack}_ffn_dim"] = config.dimension("d_ff")
        sizes[f"{stack}_attention_heads"] = config.dimension("num_heads")
    window = min(WINDOW, tokens)
    positions = {"max_encoder_position_embeddings": -(-tokens // window) * window}
    positions["max_decoder_position_embeddings"] = case.target + 2
    model = LEDForConditionalGeneration(LEDConfig(attention_window=window, **positions, **sizes))
    return model, network_input(case, examples, of_led=True, target=case.target)


def count_flops(model: Any, batch: dict[str, Tensor], device: str) -> float:
    """Return the FLOPs of a forward pass: those of the first example, times the examples."""
    first = {name: value[:1] if value.dim() else value for name, value in batch.items()}
    first = {name: to_device(value, torch.device(device)) for name, value in first.items()}
    copied = copy.deepcopy(model).to(device).train()
    # The counter does not know fused attention on the CPU.
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
        copied(**first)
    return float(counter.get_total_flops()) * len(batch["input_ids"])


def training_seconds(
    model: Any,
    batch: dict[str, Tensor],
    precision: str,
    checkpointing: bool,
    options: argparse.Namespace,
) -> float:
    """Return the seconds of a training step of a copy of the network."""
    model = copy.deepcopy(model).to(options.device).train()
    batch = {name: to_device(value, torch.device(options.device)) for name, value in batch.items()}
    if checkpointing:
        recompute_activations(model)
    optimizer = build_optimizer(model, TrainConfig(optimizer="adam"))
    for group in optimizer.param_groups:
        group["lr"] = 1e-5
    half = (
        torch.autocast(options.device, torch.bfloat16) if precision == "bfloat16" else nullcontext()
    )

    def step() -> None:
        with half:
            loss = model(**batch).loss
        loss.backward()
        make_dense(model.parameters())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.zero_grad()

    step()
    once, _ = timed(step, options.device)
    count = max(1, min(MOST_STEPS, int(options.seconds / once)))

    def steps() -> None:
        for _ in range(count):
            step()

    return timed(steps, options.device)[0] / count


def token_seconds(
    model: Any, batch: dict[str, Tensor], beams: int, longest: int, options: argparse.Namespace
) -> float:
    """Return the seconds in which the network writes a token of every example of a batch, without reading."""
    model = copy.deepcopy(model).to(options.device).eval()
    batch = {name: to_device(value, torch.device(options.device)) for name, value in batch.items()}

    def seconds_of(tokens: int) -> float:
        limits = {
            "num_beams": beams,
            "max_new_tokens": tokens,
            "min_new_tokens": tokens,
            "do_sample": False,
        }
        write: Callable[[], object] = lambda: model.generate(**batch, **limits)  # noqa: E731
        with torch.inference_mode():
            return timed(write, options.device)[0]

    few = min(2, longest - 1)
    seconds_of(few)
    start = seconds_of(few)
    fewest = min(longest, few + FEWEST_TOKENS)
    a_token = max(1e-6, seconds_of(fewest) - start) / (fewest - few)
    tokens = min(longest, max(fewest, int(options.seconds / a_token)))
    return (seconds_of(tokens) - start) / (tokens - few)


def one_line(error: Exception) -> str:
    """Return the kind of an error and the first line of its message."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"


def show_row(row: dict[str, Any], options: argparse.Namespace, writer: Any) -> None:
    """Print a row and write it."""
    formats = {
        "input": "{:,}",
        "ms": "{:,.2f}",
        "tokens/s": "{:,.0f}",
        "MFU": "{:.1%}",
        "peak GB": "{:.2f}",
    }
    cells = [formats.get(name, "{}").format(row[name]) if name in row else "" for name in COLUMNS]
    line = "".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))
    print(f"{line.rstrip()}  {row.get('error', '')}".rstrip(), flush=True)
    writer.writerow({**row, "device": options.device})


if __name__ == "__main__":
    main()
