"""How close a search comes to the memory bandwidth: the time of a token beside that of reading all it needs once.

    OMP_NUM_THREADS=1 python benchmarks/decode_bandwidth.py [--only "etads, 10 beams"] [--against FOLDER] [--device cpu]

Random weights, float32, the papers' sizes, one document, encoded before. The time of a token is that of a search of 48
tokens less that of one of 16, divided by 32: processor time on a CPU, the least of some turns. The bound is the bytes of
the decoder's weights, of the output layer and of the caches (of 32 target tokens), divided by the rate at which a large
array is copied, read and written. Every search has a process of its own; with --against, another checkout's (for
example of an earlier commit) runs right after it.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
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
GOAL, AIM = 1.8, 1.4  # times the bound
SNIPPETS, SNIPPET_LENGTH, VOCABULARY = 768, 128, 32_776  # Search2Wiki (SEAL, Table 4): 98,304 tokens
Network = tuple[Any, dict[str, Tensor]]  # a network and its batch


def of_pagesum(device: str) -> Network:
    """Return BART-base's size and four full pages."""
    return pagesum.pagesum().to(device), pagesum.pages_of([pagesum.PAGE] * 4, device)


def of_etads(device: str) -> Network:
    """Return ETADS with focus and saliency, and one text of 400 words."""
    return etads.network("both", device), {name: rows[:1] for name, rows in etads.texts(device).items()}


def of_hierarchical_transformer(device: str) -> Network:
    """Return the Hierarchical Transformer and 24 paragraphs."""
    kind = "hierarchical, 5 + 2"
    return hierarchical_transformer.network(kind, device), hierarchical_transformer.text(kind, device)


def of_seal(device: str) -> Network:
    """Return SEAL and 98,304 tokens."""
    torch.manual_seed(0)
    system = Seal(SealConfig(num_snippets=SNIPPETS, decode_length=512, segment_length=64))
    ids = torch.randint(4, VOCABULARY, (1, SNIPPETS, SNIPPET_LENGTH))
    documents = torch.zeros(1, SNIPPETS, dtype=torch.long)
    batch = {"input_ids": ids, "unit_mask": torch.ones_like(ids, dtype=torch.bool), "unit_documents": documents}
    model = system.Model(system.builder.model_config(VOCABULARY, (0, 1, 2)))
    return model.to(device), {name: value.to(device) for name, value in batch.items()}


SEARCHES: dict[str, tuple[Callable[[str], Network], int]] = {  # name → network, beams
    "pagesum, greedy": (of_pagesum, 1),
    "pagesum, 4 beams": (of_pagesum, 4),
    "etads, 10 beams": (of_etads, 10),
    "hierarchical_transformer, 5 beams": (of_hierarchical_transformer, 5),
    "seal, 4 beams": (of_seal, 4),
}


def main() -> None:
    """Print the table, or measure one search and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=tuple(SEARCHES), default=tuple(SEARCHES), help="some searches")
    parser.add_argument("--against", metavar="FOLDER", help="another checkout, measured as well")
    parser.add_argument("--repeats", type=int, default=5, help="turns behind a first one that does not count")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--here", choices=tuple(SEARCHES), help="measure one search here and print it as JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options)))
        return
    rows = []
    for name in options.only:
        for folder in filter(None, (os.path.dirname(os.path.dirname(os.path.abspath(__file__))), options.against)):
            words = [sys.executable, *sys.argv, "--here", name]
            run = subprocess.run(words, env={**os.environ, "PYTHONPATH": folder}, stdout=subprocess.PIPE, check=True)
            seconds, size, rate = json.loads(run.stdout.splitlines()[-1])
            label = f"{name}{' (other)' if folder == options.against else ''}"
            rows.append([label, 1e3 * seconds, size / 1e6, rate / 1e9, seconds / (size / rate)])
    print(f"float32 on {options.device}, {torch.get_num_threads()} threads")
    print(tabulate(rows, ["", "ms a token", "MB a token", "copied GB/s", "times the bound"], floatfmt=".1f"))
    print(f"asked: at most {GOAL} times the bound (aim {AIM})")


def measure(options: argparse.Namespace) -> tuple[float, int, float]:
    """Return the seconds of a token, its bytes, and the bytes that are copied in a second."""
    network, beams = SEARCHES[options.here]
    model, batch = network(options.device)
    caches: list[Any] = []
    new_cache = model.eval().new_cache
    model.new_cache = lambda: caches.append(new_cache()) or caches[-1]
    least = {SHORT: float("inf"), LONG: float("inf")}
    copy, array = float("inf"), torch.ones(COPIED // 4, device=options.device)
    target = torch.empty_like(array)
    with torch.inference_mode():
        reading = model.model.encoder(**batch)
        for turn in range(options.repeats + 1):
            for length in least:
                limits = {"max_new_tokens": length, "min_new_tokens": length, "do_sample": False}
                seconds = spent(
                    lambda: model.generate(**batch, encoder_outputs=reading, num_beams=beams, **limits), options.device
                )
                least[length] = min(least[length], seconds) if turn else least[length]
            copy = min(copy, spent(lambda: target.copy_(array), options.device))
    decoder, cross = model.model.decoder, caches[-1].cross_attention_cache.layers
    unread = ("encoder_attn.k_proj", "encoder_attn.v_proj")  # their output is cached
    weights = [weight for name, weight in decoder.layers.named_parameters() if not any(part in name for part in unread)]
    held = sum(part.nbytes for layer in cross for part in (layer.keys, layer.values))
    rows = beams * (len(cross[0].keys) if options.here.startswith("pagesum") else 1)
    held += 2 * len(decoder.layers) * rows * (SHORT + LONG) // 2 * model.config.d_model * 4
    size = sum(weight.nbytes for weight in [*weights, *model.lm_head.parameters()]) + held
    return (least[LONG] - least[SHORT]) / (LONG - SHORT), size, 2 * COPIED / copy


def spent(work: Callable[[], object], device: str) -> float:
    """Return the processor seconds of some work, or on a GPU its seconds."""
    if device == "cuda":
        return timed(work, device)[0]
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
