"""Documents read a second, sentences split: in one process and in several, and where the time goes.

OMP_NUM_THREADS=1 python benchmarks/reading.py [--documents 2000] [--words 4000] [--workers 2] [--text FOLDER]

Documents are cut from real prose: the JSON lines in a folder of eLife articles, or else the papers of `aclsum`. The
readings with one process and with several take turns, and the median is printed; seconds of cores are what they cost
where other work shares the machine. The steps are timed one by one, in one process, in seconds of its core.
"""

import argparse
import gzip
import hashlib
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from tabulate import tabulate

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Example
from longsumbench.corpora.jsonl import jsonl_example
from longsumbench.corpora.loading.load import load_texts
from longsumbench.corpora.loading.rows import make_examples, thinned_examples
from longsumbench.corpora.loading.store import SplitWriter, hash_text
from longsumbench.corpora.loading.text_files import lines_of, row_in

ASKED = 2_000  # documents of 4,000 words a second on two cores
SHARED = Path(__file__).parents[2] / "shared" / "data" / "elife"


def prose(folder: Path | None, cache: ArtifactCache) -> Iterator[str]:
    """Yield long texts, blank lines between their paragraphs, over and over."""
    while True:
        if folder is None:
            for example in load_texts(DatasetSettings(name="aclsum"), cache).splits["train"]:
                yield "\n\n".join(" ".join(sentences) for sentences in example.texts("paragraph"))
            continue
        for file in sorted(folder.glob("*.jsonl.gz")):
            with gzip.open(file, "rt", encoding="utf-8") as lines:
                for line in lines:
                    yield "\n\n".join(" ".join(section) for section in json.loads(line)["sections"])


def cut(texts: Iterator[str], words: int) -> Iterator[str]:
    """Yield documents of so many words, cut from the texts one after the other."""
    left: list[str] = []
    for text in texts:
        left += text.replace("\n\n", " \n\n").split(
            " "
        )  # a line break stays with the word after it
        while len(left) >= words:
            yield " ".join(left[:words])
            left = left[words:]


def write_lines(path: Path, documents: Iterator[str]) -> None:
    """Write documents as `jsonl`, each with a summary."""
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(documents):
            row = {"id": f"{number}", "document": text, "summary": text[:1_000]}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def reading(path: Path, folder: Path, workers: int, found: set[str]) -> tuple[float, float]:
    """Return the seconds of reading a file, and those of all cores together; add the fingerprint of what was read."""
    shutil.rmtree(folder, ignore_errors=True)
    before, started = sum(os.times()[:4]), time.perf_counter()
    texts = load_texts(
        DatasetSettings(name="jsonl", path=str(path), workers=workers), ArtifactCache(folder)
    )
    found.add(texts.fingerprint)
    return time.perf_counter() - started, sum(os.times()[:4]) - before


def steps(path: Path, folder: Path) -> dict[str, float]:
    """Return the seconds that each step takes for a whole file; the last writes, and hashes what it writes."""
    seconds: dict[str, float] = {}

    def timed(step: str, work: Callable[[], Any]) -> Any:
        started = time.process_time()
        found = work()
        seconds[step] = time.process_time() - started
        return found

    def write() -> None:
        writer = SplitWriter(folder / "steps.arrow")
        for (one,) in ready:
            writer.add(one.example)
        writer.close()

    lines = timed("lines", lambda: list(lines_of(path)))
    parsed = timed("JSON", lambda: [row_in(line) for line in lines])
    examples: list[Example] = timed("sentences", lambda: [jsonl_example(row) for row in parsed])
    timed(
        "counting words",
        lambda: [len("\n".join(example.sentences()).split()) for example in examples],
    )
    timed("to JSON", lambda: [msgspec.json.encode(one.to_dict()) for one in examples])
    timed(
        "hashes of texts",
        lambda: [hash_text("\n".join(example.sentences())) for example in examples],
    )
    ready: Any = [make_examples("test", partial(thinned_examples, example)) for example in examples]
    timed(
        "SHA-256", lambda: hashlib.sha256(b"".join(one.example.text for (one,) in ready)).digest()
    )
    timed("SHA-256 and writing", write)
    seconds["writing"] = seconds.pop("SHA-256 and writing") - seconds["SHA-256"]
    return seconds


def main() -> None:
    """Print documents and words a second, the ratio of several processes to one, and each step's share."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--words", type=int, default=4_000, help="of each")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--text", type=Path, default=SHARED if SHARED.is_dir() else None, help="eLife's JSON lines"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path = folder / "texts.jsonl"
        texts = prose(options.text, ArtifactCache(folder / "cache"))
        write_lines(path, islice(cut(texts, options.words), options.documents))
        counts = (1, options.workers)
        found: set[str] = set()
        turns = [
            [reading(path, folder / "read", workers, found) for workers in counts]
            for _ in range(options.turns)
        ]
        shares = steps(path, folder)
    assert len(found) == 1, "the same text, whatever the number of processes"
    rows = []
    for place, workers in enumerate(counts):
        wall, cores = (statistics.median(turn[place][kind] for turn in turns) for kind in (0, 1))
        ratio = statistics.median(turn[0][0] / turn[place][0] for turn in turns)
        speed, of_cores = options.documents / wall, options.documents * workers / cores
        rows.append(
            [
                workers,
                f"{wall:.2f}",
                f"{speed:,.0f}",
                f"{speed * options.words:,.0f}",
                f"{ratio:.2f}",
            ]
        )
        rows[-1] += [f"{cores:.2f}", f"{of_cores:,.0f}", f"{of_cores / ASKED:.2f}"]
    print(
        f"{options.documents:,} documents of {options.words:,} words; median of {options.turns} turns"
    )
    headers = [
        "processes",
        "s",
        "documents/s",
        "words/s",
        "ratio to one",
        "core s",
        "documents/s of free cores",
    ]
    print(tabulate(rows, headers=[*headers, f"ratio to {ASKED:,}"], disable_numparse=True))
    whole = sum(shares.values())
    told = [
        [step, f"{1e3 * s / options.documents:.3f}", f"{100 * s / whole:.0f} %"]
        for step, s in shares.items()
    ]
    print(
        tabulate(
            [*told, ["all", f"{1e3 * whole / options.documents:.3f}", ""]],
            headers=["step", "ms", "share"],
        )
    )


if __name__ == "__main__":
    main()
