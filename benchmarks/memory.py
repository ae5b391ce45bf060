"""The memory of a run on a large corpus, next to that on one of 50 MB.

OMP_NUM_THREADS=1 python benchmarks/memory.py [MEGABYTES]      # 500; 5,000 take some 11 GB of disk
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from longsumbench.cache.artifacts import CACHE_VARIABLE

SMALL = 50.0
DOCUMENT = 30_000  # bytes, about
WORDS = ["kant", "loru", "mine", "nusa", "reto", "vila", "sorn", "tupe", "gali", "homa"]
SETTINGS = [
    *("model=trunc", "scale=tiny", "dataset=jsonl", "score.resamples=100", "baselines=false"),
    *("train.max_steps=2", "train.eval_steps=2", "train.batch_size=8", "decode.batch_size=4"),
]


def write_corpus(folder: Path, megabytes: float) -> None:
    """Write random sentences as a `jsonl` dataset with a training split of some size."""
    chance = random.Random(1)  # noqa: S311 - the same texts every time
    sentences = [" ".join(chance.choices(WORDS, k=15)).capitalize() + "." for _ in range(5_000)]
    folder.mkdir()
    with (folder / "train.jsonl").open("w") as file:
        while file.tell() < megabytes * 1e6:
            chosen = chance.choices(sentences, k=DOCUMENT // 75)
            paragraphs = [" ".join(chosen[start : start + 8]) for start in range(0, len(chosen), 8)]
            row = {
                "id": f"{file.tell()}",
                "document": "\n\n".join(paragraphs),
                "summary": " ".join(chosen[:3]),
            }
            file.write(json.dumps(row) + "\n")
    row = {"id": "tested", "document": " ".join(sentences[:300]), "summary": sentences[0]}
    (folder / "test.jsonl").write_text(json.dumps(row) + "\n")


def private_megabytes(process: psutil.Process) -> float:
    """Return the memory that a process and its children share with nobody, pages of mapped files left out."""
    total = 0
    for member in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            memory = member.memory_info()
            total += memory.rss - memory.shared
    return total / 1e6


def run(folder: Path, megabytes: float) -> float:
    """Read such a corpus, tokenize it, and train two steps on it; return the peak of private memory, in megabytes."""
    write_corpus(folder / "texts", megabytes)
    words = [*SETTINGS, f"dataset.path={folder / 'texts'}"]
    command = [sys.executable, "-m", "longsumbench", "run", *words]
    environment = {**os.environ, CACHE_VARIABLE: str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    peak = before = 0.0
    with subprocess.Popen(
        [*command, f"results_dir={folder / 'results'}"], env=environment
    ) as running:
        watched = psutil.Process(running.pid)
        while running.poll() is None:
            with suppress(psutil.NoSuchProcess):
                measured = private_megabytes(watched)
                # The less of two looks: a command that is being started counts twice in one.
                peak = max(peak, min(before, measured))
                before = measured
            time.sleep(0.1)
    assert running.returncode == 0
    print(f"{megabytes:,.0f} MB of texts: {peak:,.0f} MB of private memory")
    return peak


def main() -> None:
    """Print both peaks."""
    large = float(sys.argv[1]) if sys.argv[1:] else 500.0
    for megabytes in (SMALL, large):
        with tempfile.TemporaryDirectory() as name:
            run(Path(name), megabytes)


if __name__ == "__main__":
    main()
