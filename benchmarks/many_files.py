"""Peak memory and speed of `longsumbench summarize lexrank FOLDER --output OUT.jsonl` on many short files.

    python benchmarks/many_files.py [--files 10000,100000]

Files of 40 generated sentences are made in a temporary folder. The memory is that of the largest process. It should not
grow with the number of files.
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tabulate import tabulate

_SENTENCES, _WORDS, _VOCABULARY = 40, 12, 2_000
_FILES_OF_A_FOLDER = 1_000


def write_files(folder: Path, count: int) -> None:
    """Write text files of random words, a thousand in each folder."""
    words = [f"word{number}" for number in range(_VOCABULARY)]
    for number in range(count):
        draw = random.Random(number)  # noqa: S311 - no secret
        sentences = [
            f"{' '.join(draw.choices(words, k=_WORDS)).capitalize()}." for _ in range(_SENTENCES)
        ]
        path = folder / f"{number // _FILES_OF_A_FOLDER:03d}" / f"{number:06d}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(sentences), encoding="utf-8")


def measure(count: int) -> list[str]:
    """Summarize `count` files in a process of their own; return files, seconds, files per second and peak memory."""
    with tempfile.TemporaryDirectory() as name:
        folder, output = Path(name) / "texts", Path(name) / "out.jsonl"
        write_files(folder, count)
        words = ["summarize", "lexrank", str(folder), "model.length=50", "--output", str(output)]
        started = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "longsumbench", *words], check=True, capture_output=True
        )
        seconds = time.monotonic() - started
        with output.open(encoding="utf-8") as file:
            assert sum(1 for _ in file) == count
    peak = (
        resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1_024
    )  # of the largest process so far
    return [f"{count:,}", f"{seconds:.0f}", f"{count / seconds:.0f}", f"{peak:.0f}"]


def main() -> None:
    """Print a row for each number of files, the fewest first, because a peak covers all commands before."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--files", default="10000,100000", help="numbers of files, separated by commas"
    )
    counts = sorted(int(count) for count in parser.parse_args().files.split(","))
    print(
        tabulate(
            map(measure, counts), ["files", "seconds", "files/s", "peak memory of a process (MB)"]
        )
    )


if __name__ == "__main__":
    main()
