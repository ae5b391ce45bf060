"""What a large corpus costs: about the memory of a small one.

pytest --slow tests/cli/test_scale.py                             # 500 MB of JSON lines next to 50 MB
LONGSUMBENCH_LARGE=5000 pytest --slow -s tests/cli/test_scale.py  # 5 GB; takes some 11 GB of disk
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support.toys import WORDS, tiny_overrides

from longsumbench.cache.artifacts import CACHE_VARIABLE

LARGE = float(os.environ.get("LONGSUMBENCH_LARGE", "500"))  # megabytes of training texts
SMALL = 50.0
MORE = 200.0  # megabytes of private memory that the large corpus may take beyond the small one
DOCUMENT = 30_000  # bytes, about
COMMAND = "import sys; from longsumbench.cli.main import main; sys.exit(main(sys.argv[1:]))"


def write_corpus(folder: Path, megabytes: float) -> int:
    """Write random sentences as a `jsonl` dataset with a training split of some size; return its examples."""
    chance = random.Random(1)
    sentences = [
        " ".join(chance.choices(WORDS, k=chance.randint(5, 25))).capitalize() + "."
        for _ in range(5_000)
    ]
    folder.mkdir()
    written = number = 0
    with (folder / "train.jsonl").open("w", encoding="utf-8") as file:
        while written < megabytes * 1e6:
            chosen = chance.choices(sentences, k=DOCUMENT // 75)
            paragraphs = [" ".join(chosen[start : start + 8]) for start in range(0, len(chosen), 8)]
            row = {
                "id": f"{number}",
                "document": "\n\n".join(paragraphs),
                "summary": " ".join(chosen[:3]),
            }
            written += file.write(json.dumps(row) + "\n")
            number += 1
    row = {"id": "tested", "document": " ".join(sentences[:300]), "summary": sentences[0]}
    (folder / "test.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return number


def private_megabytes(process: psutil.Process) -> float:
    """Return the memory that a process and its children share with nobody, pages of mapped files left out."""
    found = 0
    for one in (process, *process.children(recursive=True)):
        try:
            memory = one.memory_info()
        except psutil.NoSuchProcess:
            continue
        found += memory.rss - memory.shared
    return found / 1e6


def run(folder: Path, megabytes: float) -> float:
    """Read such a corpus, tokenize it, and train two steps on it; return the peak of private memory, in megabytes."""
    examples = write_corpus(folder / "texts", megabytes)
    words = [
        *tiny_overrides(folder / "texts", steps=2),
        "baselines=false",
        f"results_dir={folder / 'results'}",
    ]
    environment = {**os.environ, CACHE_VARIABLE: str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    started, peak, before = time.monotonic(), 0.0, 0.0
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, "run", *words], env=environment
    ) as running:
        watched = psutil.Process(running.pid)
        while running.poll() is None:
            try:
                now = private_megabytes(watched)
                peak = max(
                    peak, min(before, now)
                )  # of two looks: a command that is being started counts twice in one
                before = now
            except psutil.NoSuchProcess:
                break
            time.sleep(0.1)
    assert running.returncode == 0
    seconds = time.monotonic() - started
    print(
        f"{megabytes:,.0f} MB, {examples:,} examples: {peak:,.0f} MB of private memory, {seconds:,.0f} s"
    )
    return peak


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux, which counts private memory")
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    """A corpus of gigabytes is read, tokenized and trained on with little more private memory than one of 50 MB."""
    for name in ("small", "large"):
        (tmp_path / name).mkdir()
    small = run(tmp_path / "small", SMALL)
    assert run(tmp_path / "large", LARGE) <= small + MORE
