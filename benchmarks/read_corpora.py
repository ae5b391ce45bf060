"""What reading real corpora takes, and what structure comes out: a table with a row for each dataset of a folder.

python benchmarks/read_corpora.py [FOLDER] [--only DATASET …] [--limit EXAMPLES] [--workers PROCESSES]

FOLDER (default: ../shared/data) has a folder for each dataset, which is read by `load_texts` with an empty cache.
Each dataset is read in a fresh process, so that its peak memory is its own; so is that of the processes that help it
with large files, of which the largest is shown.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SHARED = Path(__file__).parents[2] / "shared" / "data"
OTHER_NAMES = {
    # outputs of systems, not datasets
    **dict.fromkeys(("infinitebench_sum", "judged", "longbench_kv", "qmsum_outputs"), ()),
    "neurips_metareview": ("peer_reviews",),
    "openstax": ("openstax", "openstax_modules"),
}  # folder → datasets
COUNTS = ("documents", "sections", "paragraphs", "sentences", "words")
HEADERS = (
    "dataset",
    "examples",
    *COUNTS,
    "references an example",
    "seconds",
    "peak MB",
    "of a helper",
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", nargs="?", default=SHARED, type=Path, help="a folder with a folder each"
    )
    parser.add_argument("--only", nargs="+", help="these datasets")
    parser.add_argument("--limit", type=int, help="the most examples of a split")
    parser.add_argument(
        "--workers", type=int, help="processes that read what is large; default: one a core"
    )
    parser.add_argument(
        "--dataset", help=argparse.SUPPRESS
    )  # this is the process that reads it, from the folder itself
    options = parser.parse_args()
    if options.dataset:
        print(json.dumps(measured(options.dataset, options.folder, options.limit, options.workers)))
        return
    from tabulate import tabulate

    named = [
        pair for pair in datasets_in(options.folder) if not options.only or pair[0] in options.only
    ]
    found = [in_a_process(name, folder, options) for name, folder in named]
    print(tabulate(map(shown, found), headers=HEADERS, tablefmt="github", disable_numparse=True))
    print(
        f"\n{sum(map(num_examples, found)):,} examples in {sum(row['seconds'] for row in found):.0f} s"
    )


def datasets_in(folder: Path) -> list[tuple[str, Path]]:
    """Return the datasets that a folder holds, each with its own folder; the names are the folders' mostly."""
    folders = sorted(path for path in folder.iterdir() if path.is_dir())
    return [(name, path) for path in folders for name in OTHER_NAMES.get(path.name, (path.name,))]


def in_a_process(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Read a dataset in a fresh process."""
    words = [
        f"--{key}={value}"
        for key in ("limit", "workers")
        if (value := getattr(options, key)) is not None
    ]
    command = [sys.executable, __file__, str(folder), f"--dataset={name}", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(name: str, folder: Path, limit: int | None, workers: int | None) -> dict[str, Any]:
    """Read a dataset with an empty cache, and count what came out.

    Args:
        name: of the dataset.
        folder: its files.
        limit: the most examples of a split; None: all.
        workers: processes that read what is large; None: one a core.

    Returns:
        JSON values: its name, seconds, MB, and the counts.
    """
    import resource

    from longsumbench.cache.artifacts import ArtifactCache
    from longsumbench.core import DatasetSettings
    from longsumbench.corpora.loading.load import load_texts
    from longsumbench.runs.environment import peak_memory_gb

    settings = DatasetSettings(name=name, path=str(folder), limit=limit, workers=workers)
    with tempfile.TemporaryDirectory() as cache:
        started = time.perf_counter()
        texts = load_texts(settings, ArtifactCache(Path(cache)))
        seconds, peak = time.perf_counter() - started, peak_memory_gb() * 1000
        helper = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6  # KiB on Linux
        counts = counted(example for split in texts.splits.values() for example in split)
    return {
        "name": name,
        "seconds": seconds,
        "peak": peak,
        "helper": helper,
        "splits": texts.metadata["examples"],
        **counts,
    }


def counted(examples: Iterable[Any]) -> dict[str, Any]:
    """Count the structure of examples, in all; of references the fewest and the most that one has."""
    counts: Counter[str] = Counter()
    references = Counter[int]()
    for example in examples:
        counts["documents"] += len(example.documents)
        counts["sections"] += sum(len(document.sections) for document in example.documents)
        counts["paragraphs"] += sum(1 for _ in example.texts("paragraph"))
        counts["sentences"] += sum(1 for _ in example.sentences())
        counts["words"] += example.source_words()
        references[sum(map(bool, example.references))] += 1
    return {
        **{what: counts[what] for what in COUNTS},
        "references": [min(references), max(references)],
    }


def num_examples(row: dict[str, Any]) -> int:
    """Count the examples of a dataset's splits."""
    return sum(row["splits"].values())


def shown(row: dict[str, Any]) -> list[str]:
    """Return a dataset's row of the table."""
    fewest, most = row["references"]
    counts = [f"{num_examples(row):,}", *(f"{row[what]:,}" for what in COUNTS)]
    references = f"{fewest}" if fewest == most else f"{fewest}–{most}"
    helper = f"{row['helper']:.0f}" if row["helper"] else "–"
    return [row["name"], *counts, references, f"{row['seconds']:.1f}", f"{row['peak']:.0f}", helper]


if __name__ == "__main__":
    main()
