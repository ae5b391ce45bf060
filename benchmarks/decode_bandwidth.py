"""How close a search comes to the memory bandwidth: the time of a token compared with reading all it needs once.

    OMP_NUM_THREADS=1 python benchmarks/decode_bandwidth.py [--only "etads, 10 beams"] [--against FOLDER] [--device cpu]

Random weights, float32, the papers' sizes, one document, encoded before. The time of a token is the difference of two
searches of 48 and 16 tokens, divided by 32: processor time on a CPU, the least of some turns. The bound is the bytes of
the decoder's weights, the output layer and the caches (of 32 target tokens), by the rate at which a large array is
copied, read and written. Every search has its own process; with --against, that of another checkout runs after it.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import etads
import hierarchical_transformer
import pagesum
import torch
from measuring import timed
from tabulate import tabulate
from torch import Tensor

from longsumbench.models.seal.config import SealConfig
from longsumbench.models.seal.system import Seal

SHORT, LONG = 16, 48  # tokens written
COPIED = 256 * 2**20  # bytes
SNIPPETS, SNIPPET_LENGTH, VOCABULARY = (
    768,
    128,
    32_776,
)  # Search2Wiki (SEAL, Table 4): 98,304 tokens
SEARCHES = {  # name → beams
    "pagesum, greedy": 1,
    "pagesum, 4 beams": 4,
    "etads, 10 beams": 10,
    "hierarchical_transformer, 5 beams": 5,
    "seal, 4 beams": 4,
}


def network(system: str, device: str) -> tuple[Any, dict[str, Tensor]]:
    """Return a network at the paper's size, and a batch of one document."""
    if system == "pagesum":  # BART-base's size, four full pages
        return pagesum.pagesum().to(device), pagesum.pages_of([pagesum.PAGE] * 4, device)
    if system == "etads":
        return etads.network("both", device), {
            name: rows[:1] for name, rows in etads.texts(device).items()
        }
    if system == "hierarchical_transformer":
        kind = "hierarchical, 5 + 2"
        return hierarchical_transformer.network(kind, device), hierarchical_transformer.text(
            kind, device
        )
    torch.manual_seed(0)
    seal = Seal(SealConfig(num_snippets=SNIPPETS, decode_length=512, segment_length=64))
    ids = torch.randint(4, VOCABULARY, (1, SNIPPETS, SNIPPET_LENGTH))
    documents = torch.zeros(1, SNIPPETS, dtype=torch.long)
    batch = {
        "input_ids": ids,
        "unit_mask": torch.ones_like(ids, dtype=torch.bool),
        "unit_documents": documents,
    }
    model: Any = seal.Model(seal.builder.model_config(VOCABULARY, (0, 1, 2)))
    return model.to(device), {name: value.to(device) for name, value in batch.items()}


def main() -> None:
    """Print the table, or measure one search and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", nargs="+", choices=tuple(SEARCHES), default=tuple(SEARCHES), help="some searches"
    )
    parser.add_argument("--against", metavar="FOLDER", help="another checkout, measured as well")
    parser.add_argument(
        "--repeats", type=int, default=5, help="turns behind a first one that does not count"
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument(
        "--here", choices=tuple(SEARCHES), help="measure one search here and print it as JSON"
    )
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options)))
        return
    rows = []
    for name in options.only:
        for folder in filter(
            None, (os.path.dirname(os.path.dirname(os.path.abspath(__file__))), options.against)
        ):
            words = [sys.executable, *sys.argv, "--here", name]
            run = subprocess.run(
                words, env={**os.environ, "PYTHONPATH": folder}, stdout=subprocess.PIPE, check=True
            )
            seconds, size, rate = json.loads(run.stdout.splitlines()[-1])
            label = f"{name}{' (other)' if folder == options.against else ''}"
            rows.append([label, 1e3 * seconds, size / 1e6, rate / 1e9, seconds / (size / rate)])
            print(f"{label}: {1e3 * seconds:.1f} ms a token", file=sys.stderr, flush=True)
    print(f"float32 on {options.device}, {torch.get_num_threads()} threads")
    print(
        tabulate(
            rows, ["", "ms a token", "MB a token", "copied GB/s", "times the bound"], floatfmt=".1f"
        )
    )
    print("asked: at most 1.8 times the bound (aim 1.4)")


def measure(options: argparse.Namespace) -> tuple[float, int, float]:
    """Return the seconds of a token, its bytes, and the bytes that are copied in a second."""
    beams = SEARCHES[options.here]
    caches: list[Any] = []
    model, batch = network(options.here.partition(",")[0], options.device)
    decode = model.eval().decode

    def decode_and_note(reading: Any, ids: Tensor, cache: Any, **context: Any) -> Any:
        caches[:] = [cache]
        return decode(reading, ids, cache, **context)

    model.decode = decode_and_note
    array = torch.ones(COPIED // 4, device=options.device)
    target = torch.empty_like(array)
    with torch.inference_mode():
        reading = model.model.encoder(**batch)

        def write(length: int) -> None:
            limits = {"max_new_tokens": length, "min_new_tokens": length, "do_sample": False}
            model.generate(**batch, encoder_outputs=reading, num_beams=beams, **limits)

        works = (partial(write, SHORT), partial(write, LONG), partial(target.copy_, array))
        turns = [
            [spent(work, options.device) for work in works] for _ in range(options.repeats + 1)
        ]
    short, long, copy = map(min, zip(*turns[1:], strict=True))
    decoder, cross = model.model.decoder, caches[-1].cross_attention_cache.layers
    unread = ("encoder_attn.k_proj", "encoder_attn.v_proj")  # their output is cached
    weights = [
        weight
        for name, weight in decoder.layers.named_parameters()
        if not any(part in name for part in unread)
    ]
    held = sum(part.nbytes for layer in cross for part in (layer.keys, layer.values))
    rows = beams * (len(cross[0].keys) if options.here.startswith("pagesum") else 1)
    held += 2 * len(decoder.layers) * rows * (SHORT + LONG) // 2 * model.config.d_model * 4
    size = sum(weight.nbytes for weight in [*weights, *model.lm_head.parameters()]) + held
    return (long - short) / (LONG - SHORT), size, 2 * COPIED / copy


def spent(work: Callable[[], object], device: str) -> float:
    """Return the processor seconds of some work, or on a GPU its seconds."""
    started = time.process_time()
    seconds = timed(work, device)[0]
    return seconds if device == "cuda" else time.process_time() - started


if __name__ == "__main__":
    main()
