"""Measures the suite's speed on this machine, in two minutes: ratios, their goals, and those of the last run.

python benchmarks/suite_speed.py                  OMP_NUM_THREADS=1 measures one thread

It reads and scores made-up texts, and trains and decodes small models with random weights. What is compared takes
turns; the least times count. Ratios of an earlier run on the same processor, with as many threads, are in bench.json
in the cache folder. Another process that runs lowers them.
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from longsumbench.files import BadFile, read_json, write_atomically
from longsumbench.formatting import format_count, plain_table, print_text
from longsumbench.progress import log_level, phase

CASE_SIZES = {"turns": 3, "pairs": 6_440, "sample": 30, "documents": 1_000, "points": 20, "width": 256, "page": 256}
_WRITTEN = 32  # tokens


class Measurement(NamedTuple):
    """A row of the table: what was measured, the value, what it is compared with, the ratio, and its goal."""

    what: str
    measured: str
    compared: str
    ratio: float
    goal: str


def _texts(count: int, words: int) -> list[str]:
    """Return made-up texts whose words are as frequent as in natural text (the k-th one ∝ 1/k)."""
    draw = random.Random(0)  # noqa: S311 # not for secrets
    vocabulary = ["".join(draw.choices("acdeilmnorst", k=draw.randint(2, 9))) for _ in range(30_000)]
    weights = list(accumulate(1 / rank for rank in range(1, 30_001)))
    sentences = (" ".join(draw.choices(vocabulary, cum_weights=weights, k=20)).capitalize() for _ in iter(int, 1))
    return [". ".join(next(sentences) for _ in range(words // 20)) for _ in range(count)]


def _least_seconds(*works: Callable[[], object]) -> list[float]:
    turns = []
    for _ in range(CASE_SIZES["turns"]):
        moments = [time.perf_counter()]
        for work in works:
            work()
            moments.append(time.perf_counter())
        turns.append([end - start for start, end in pairwise(moments)])
    return [min(times) for times in zip(*turns, strict=True)]


def _compare(what: str, ours: float, theirs: float, peer: str, goal: float) -> Measurement:
    return Measurement(what, f"{1e3 * ours:,.2f} ms", f"{1e3 * theirs:,.2f} ms, {peer}", theirs / ours, f"≥ {goal}")


def _run_python(*words: str) -> None:
    subprocess.run([sys.executable, *words], check=True, capture_output=True)  # this suite


def measure_scoring() -> Iterator[Measurement]:
    """Compare ROUGE with rouge_score: pairs of 200 words with a new and a known vocabulary, and a whole command."""
    from rouge_score.rouge_scorer import RougeScorer

    from longsumbench.rouge.scorer import ROUGE_TYPES, SuiteScorer

    size, texts = CASE_SIZES["sample"], _texts(2 * CASE_SIZES["pairs"], 200)
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    lines = [[text.replace(". ", ".\n") for text in pair] for pair in pairs[:size]]
    library, warm = RougeScorer(list(ROUGE_TYPES), use_stemmer=True), SuiteScorer()

    def score_all(scorer: SuiteScorer) -> None:
        for one, other in lines:
            scorer.score(one.split("\n"), [other.split("\n")])

    score_all(warm)
    works = (lambda: score_all(SuiteScorer()), lambda: score_all(warm), lambda: [library.score(*two) for two in lines])
    new, known, theirs = (seconds / size for seconds in _least_seconds(*works))
    yield _compare("ROUGE, new words", new, theirs, "rouge_score", 100)
    yield _compare("ROUGE, known words", known, theirs, "rouge_score", 100)
    with TemporaryDirectory() as folder:
        file = Path(folder, "pairs.jsonl")
        rows = ({"id": place, "prediction": one, "references": [two]} for place, (one, two) in enumerate(pairs))
        file.write_text("\n".join(map(json.dumps, rows)))
        [ours] = _least_seconds(lambda: _run_python("-m", "longsumbench", "score", f"{file}"))
    yield _compare(f"score {len(pairs):,} pairs, with start", ours, theirs * len(pairs), "rouge_score", 60)


def measure_reading() -> Iterator[Measurement]:
    """Measure documents of 4,000 words that two processes read and split a second."""
    from longsumbench.cache.artifacts import ArtifactCache
    from longsumbench.core import DatasetSettings
    from longsumbench.corpora.reading.load import load_texts

    with TemporaryDirectory() as folder:
        file, caches = Path(folder, "texts.jsonl"), map(Path(folder).joinpath, "abc")
        rows = enumerate(_texts(CASE_SIZES["documents"], 4_000))
        file.write_text("\n".join(json.dumps({"id": place, "document": text, "summary": ""}) for place, text in rows))
        settings = DatasetSettings(name="jsonl", path=f"{file}", workers=2)
        speed = CASE_SIZES["documents"] / _least_seconds(lambda: load_texts(settings, ArtifactCache(next(caches))))[0]
    yield Measurement("read and split", f"{speed:,.0f} documents/s", "2,000 documents/s", speed / 2_000, "≥ 1")


def measure_start() -> Iterator[Measurement]:
    """Measure `import longsumbench`, and a point of a finished sweep that is run again."""
    from longsumbench.sweeps.run import sweep

    bare, whole = _least_seconds(lambda: _run_python("-c", ""), lambda: _run_python("-c", "import longsumbench"))
    yield Measurement("import longsumbench", f"{whole - bare:.3f} s", "0.1 s", (whole - bare) / 0.1, "≤ 1")
    with TemporaryDirectory() as folder:
        points: dict[str, Any] = {
            "model": "random",
            "model.length": 20,
            "seed": [*range(1, CASE_SIZES["points"] + 1)],
            "baselines": False,
        }
        file = Path(folder, "texts.jsonl")
        rows = ({"id": place, "document": text, "summary": "A summary."} for place, text in enumerate(_texts(5, 200)))
        file.write_text("\n".join(map(json.dumps, rows)))
        points |= {"dataset": "jsonl", "dataset.path": f"{file}", "score.resamples": 100, "results_dir": folder}
        with log_level("WARNING"):
            sweep(**points)
            seconds = _least_seconds(lambda: sweep(**points))[0] / CASE_SIZES["points"]
    yield Measurement("a finished point", f"{seconds:.3f} s", "0.05 s", seconds / 0.05, "≤ 1")


def measure_models() -> Iterator[Measurement]:
    """Compare two small models with transformers' BART on the same tokens, and decoding with reading the memory."""
    import torch
    from transformers import BartConfig, BartForConditionalGeneration

    from longsumbench.core import registry

    width, page, layers, vocabulary = CASE_SIZES["width"], CASE_SIZES["page"], 6, 32_000
    size = {"d_model": width, "encoder_layers": layers, "decoder_layers": layers}
    bart_size = {"encoder_ffn_dim": 4 * width, "decoder_ffn_dim": 4 * width, "vocab_size": vocabulary}
    bart_size |= {"encoder_attention_heads": 8, "decoder_attention_heads": 8, "max_position_embeddings": 8 * page}
    numbers, labels = torch.ones(2**26), torch.randint(3, vocabulary, (1, 2 * _WRITTEN))

    def work(model: Any, beams: int, **batch: torch.Tensor) -> None:
        if beams:
            limits = {"max_new_tokens": _WRITTEN, "min_new_tokens": _WRITTEN, "do_sample": False}
            model.eval().generate(**batch, num_beams=beams, **limits)
        else:
            model.train()(**batch, labels=labels.repeat(len(batch["input_ids"]), 1)).loss.backward()

    for name, units, goals in (
        ("pagesum", (4, page), {0: 1.3, 1: 1.5, 4: 1.6}),
        ("hierarchical_transformer", (24, page // 4), {0: 1.3, 5: 1.6}),
    ):
        kind: Any = registry.systems.load(name)
        config = kind.Config(**size, d_ff=4 * width, num_heads=8, vocabulary_size=vocabulary, init="random")
        model = kind(config).builder.blank_model((0, 1, 2))
        ids = torch.randint(3, vocabulary, (1, *units))
        same = ids[0] if name == "pagesum" else ids.flatten(1)  # pages are decoded alone, paragraphs together
        bart = BartForConditionalGeneration(BartConfig(**size, **bart_size))
        mask = torch.ones_like(ids, dtype=torch.bool)
        for beams, goal in goals.items():
            ours, theirs, reading = _least_seconds(
                partial(work, model, beams, input_ids=ids, unit_mask=mask),
                partial(work, bart, beams, input_ids=same),
                numbers.sum,
            )
            step = f"{_WRITTEN} tokens, {format_count(beams, 'beam')}" if beams else "training step"
            yield _compare(f"{name}, {step}", ours, theirs, "BART", goal)
            if beams == 1:  # the weights and caches that each token needs
                weights = sum(each.nbytes for key, each in model.named_parameters() if "model.encoder" not in key)
                bound = (weights + 2 * layers * width * ids.numel() * 4) / numbers.nbytes * reading
                compared = f"{1e3 * bound:.2f} ms, reading memory"
                token = ours / _WRITTEN
                yield Measurement(f"{name}, a token", f"{1e3 * token:.2f} ms", compared, token / bound, "≤ 1.8")


CASES = (measure_scoring, measure_reading, measure_start, measure_models)


def main() -> None:
    """Print the table; after Ctrl-C, of what was measured so far."""
    import torch

    from longsumbench.cache.artifacts import user_cache
    from longsumbench.runs.environment import environment

    machine = f"{environment().processor}, {format_count(torch.get_num_threads(), 'thread')}"
    file, rows, runs = user_cache().root / "bench.json", list[Measurement](), dict[str, dict[str, float]]()
    with suppress(FileNotFoundError, BadFile):
        runs = read_json(file, dict[str, dict[str, float]])
    earlier = runs.get(machine, {})
    try:
        with phase("measuring"):
            for case in CASES:
                rows.extend(case())
    finally:
        headers = ("", "measured", "compared with", "ratio", "goal", "earlier")
        shown = [(*row[:3], f"{row.ratio:.2f}", row.goal, f"{earlier.get(row.what, '')}") for row in rows]
        print_text(machine, plain_table(shown, headers, headers[1:]))
        ratios = {row.what: round(row.ratio, 2) for row in rows}
        write_atomically(file, json.dumps({**runs, machine: {**earlier, **ratios}}))


if __name__ == "__main__":
    main()
