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
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from support.toys import WORDS, tiny_overrides

from longsumbench.cache.artifacts import CACHE_VARIABLE

LARGE = float(os.environ.get("LONGSUMBENCH_LARGE", "500"))  # megabytes of training texts
SMALL = 50.0
MORE = 200.0  # megabytes of private memory that the large corpus may take beyond the small one
DOCUMENT = 30_000  # bytes, about


def write_corpus(folder: Path, megabytes: float) -> None:
    """Write random sentences as a `jsonl` dataset with a training split of some size."""
    chance = random.Random(1)
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
    words = [*tiny_overrides(folder / "texts", steps=2), "baselines=false"]
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux, which counts private memory")
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    """A corpus of gigabytes is read, tokenized and trained on with little more private memory than one of 50 MB."""
    for name in ("small", "large"):
        (tmp_path / name).mkdir()
    small = run(tmp_path / "small", SMALL)
    assert run(tmp_path / "large", LARGE) <= small + MORE
