"""`longsumbench score` from files to intervals, as a fresh process, beside rouge_score on some of the same pairs.

python benchmarks/score_files.py [--pairs 6440] [--words 200] [--sample 60]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from rouge_score import rouge_scorer
from tabulate import tabulate

from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.sentences import split_summary

VOCABULARY = 30_000  # distinct words
SYLLABLES = ("ra", "ke", "lin", "to", "mus", "per", "cal", "den", "vi", "sor")
ENDINGS = ("", "s", "ed", "ing", "ation", "ly", "ness", "ement")
SENTENCE = 20  # words
KEPT = 0.5  # share of a reference's sentences that the prediction has, in another order
TRIES = 3
ONE_CORE = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def texts(pairs: int, words: int, seed: int = 1) -> list[tuple[str, str]]:
    """Return (prediction, reference) pairs of running text; words are as frequent as in real text (Zipf)."""
    draw = np.random.default_rng(seed)
    stems = ["".join(draw.choice(SYLLABLES, draw.integers(1, 5))) for _ in range(VOCABULARY)]
    vocabulary = np.array([f"{stem}{draw.choice(ENDINGS)}" for stem in stems])
    frequency = 1 / np.arange(1, VOCABULARY + 1)
    chosen = draw.choice(VOCABULARY, (pairs, 2, words), p=frequency / frequency.sum())
    made = []
    for numbers in chosen:
        other, reference = (
            [vocabulary[side[start : start + SENTENCE]] for start in range(0, words, SENTENCE)]
            for side in numbers
        )
        kept = draw.random(len(reference)) < KEPT
        mixed = [
            reference[row] if kept[row] else other[row] for row in draw.permutation(len(reference))
        ]
        made.append((_running(mixed), _running(reference)))
    return made


def _running(sentences: list[np.ndarray]) -> str:
    return " ".join(f"{' '.join(sentence).capitalize()}." for sentence in sentences)


def write(folder: Path, pairs: list[tuple[str, str]]) -> list[Path]:
    """Write both sides as JSON lines."""
    predictions, references = folder / "predictions.jsonl", folder / "references.jsonl"
    with (
        predictions.open("w", encoding="utf-8") as one,
        references.open("w", encoding="utf-8") as other,
    ):
        for number, (prediction, reference) in enumerate(pairs):
            one.write(json.dumps({"id": f"{number}", "prediction": prediction}) + "\n")
            other.write(json.dumps({"id": f"{number}", "references": [reference]}) + "\n")
    return [predictions, references]


class Seconds(NamedTuple):
    """What a process took: by the clock, and of the core (less, where others use the machine)."""

    clock: float
    core: float


def timed(*words: str | Path) -> Seconds:
    """Run the command as a fresh process on one core."""
    started, before = time.perf_counter(), _core_seconds()
    command = [sys.executable, "-m", "longsumbench", *map(str, words)]
    subprocess.run(command, check=True, env=ONE_CORE, stdout=subprocess.DEVNULL)
    return Seconds(time.perf_counter() - started, _core_seconds() - before)


def _core_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rouge_score_seconds(pairs: list[tuple[str, str]]) -> float:
    """Return the seconds of the core that rouge_score takes for a pair, both sides split beforehand."""
    scorer = rouge_scorer.RougeScorer(list(ROUGE_TYPES), use_stemmer=True)
    lines = [
        ("\n".join(split_summary(reference)), "\n".join(split_summary(text)))
        for text, reference in pairs
    ]
    started = time.process_time()
    for reference, prediction in lines:
        scorer.score(reference, prediction)
    return (time.process_time() - started) / len(pairs)


def main() -> None:
    """Print the seconds of the first and the best try, and of rouge_score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=6_440)
    parser.add_argument("--words", type=int, default=200, help="of each text")
    parser.add_argument("--sample", type=int, default=60, help="pairs that rouge_score scores")
    options = parser.parse_args()
    pairs = texts(options.pairs, options.words)
    with TemporaryDirectory() as folder:
        files = write(Path(folder), pairs)
        first, *more = [
            timed("score", *files, "--per-example", Path(folder) / "scores.csv")
            for _ in range(TRIES + 1)
        ]
        few = write(Path(folder), pairs[:1])
        start = min(timed("score", *few) for _ in range(TRIES))
    peer = rouge_score_seconds(pairs[: options.sample]) * len(pairs)
    best = Seconds(*map(min, zip(*more, strict=True)))
    rows = [
        ("the command, first (numba may compile)", f"{first.clock:.2f}", f"{first.core:.2f}"),
        (f"the command, best of {TRIES}", f"{best.clock:.2f}", f"{best.core:.2f}"),
        ("of these, starting it", f"{start.clock:.2f}", f"{start.core:.2f}"),
        (f"rouge_score, scoring alone, from {options.sample} pairs", "", f"{peer:.1f}"),
        ("rouge_score / the command", "", f"{peer / best.core:.0f} ×"),
    ]
    headers = [f"{len(pairs):,} pairs of {options.words} words", "seconds", "of the core"]
    print(
        tabulate(rows, headers=headers, disable_numparse=True, colalign=("left", "right", "right"))
    )


if __name__ == "__main__":
    main()
