"""How long `longsumbench site` takes with many runs, and how much memory.

python benchmarks/site.py [--datasets 1] [--systems 200] [--seeds 5] [--examples 10000]

Makes made-up runs in a temporary folder (2.5 GB by default) and writes their site in a fresh process. Prints seconds,
peak memory and the largest file. Exits with 1 beyond 60 seconds of a core, 1 GB or 500 kB.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # has no annotations
from leaderboard import REFERENCE
from pyarrow import csv

from longsumbench.core import Summary
from longsumbench.metrics.aggregate import RougeMeans
from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.runs.predictions import write_summaries
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

MOST_SECONDS, MOST_MEMORY, LARGEST_FILE = 60, 1e9, 500e3  # of a core; bytes


def main() -> None:
    """Make the runs, write their site, and print what it took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, number in (("datasets", 1), ("systems", 200), ("seeds", 5), ("examples", 10_000)):
        parser.add_argument(f"--{name}", type=int, default=number)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for dataset in range(options.datasets):
            make_runs(
                Results(Path(folder)),
                f"made_up_{dataset}",
                options.systems,
                options.seeds,
                options.examples,
            )
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "longsumbench", "site", "--results-dir", folder], check=True
        )
        seconds, used = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        pages = [
            path for path in Path(folder, "site").rglob("*") if path.suffix in (".html", ".js")
        ]
        largest = max(pages, key=lambda path: path.stat().st_size)
        size, name = largest.stat().st_size, str(largest.relative_to(folder))
    core, memory = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    runs = options.datasets * options.systems * options.seeds
    print(f"{runs:,} runs × {options.examples:,} examples, {len(pages):,} pages")
    print(f"{seconds:7.1f} s   elapsed")
    print(f"{core:7.1f} s   of a core, of at most {MOST_SECONDS}")
    print(f"{memory / 1e9:7.2f} GB  peak memory, of at most {MOST_MEMORY / 1e9:.0f}")
    print(f"{size / 1e3:7.0f} kB  the largest page ({name}), of at most {LARGEST_FILE / 1e3:.0f}")
    sys.exit(core > MOST_SECONDS or memory > MOST_MEMORY or size > LARGEST_FILE)


def make_runs(results: Results, dataset: str, systems: int, seeds: int, examples: int) -> None:
    """Write runs of systems with several settings, on the same examples; all have links to the same summaries."""
    draw = np.random.default_rng(1)
    ids = [f"example-{number:05d}" for number in range(examples)]
    hard = draw.beta(4, 8, (examples, 1))
    template = RunRecord.read(
        REFERENCE.run_folders("pubmed", "seal/*")[0]
    )  # whose settings all runs have
    columns = [f"{kind}_{statistic}" for kind in ROUGE_TYPES for statistic in "prf"]
    summaries = results.root / f"{dataset}.jsonl"
    write_summaries(summaries, (Summary(name, "A summary. " * 40) for name in ids))
    for system in range(systems):
        better = draw.normal(0, 0.03)
        for seed in range(1, seeds + 1):
            noise = draw.normal(better + draw.normal(0, 0.005), 0.05, (examples, len(columns)))
            scores = (hard + noise).clip(0, 1)
            folder = write_record(results, template, dataset, system, seed, scores)
            table = pa.table([ids, *scores.T], ["id", *columns])
            csv.write_csv(table, folder / "scores.csv", csv.WriteOptions(quoting_style="none"))
            os.link(summaries, folder / "predictions.jsonl")


def write_record(
    results: Results,
    template: RunRecord,
    dataset: str,
    system: int,
    seed: int,
    scores: "np.ndarray",
) -> Path:
    """Write the record of a run with these scores, [examples, columns]; return its folder."""
    means = 100 * scores.mean(axis=0).reshape(-1, 3)
    model, size = f"system{system % 40:02d}", 64 * (1 + system // 40)
    config = replace(
        template.config,
        model={**template.config.model, "name": model, "segment_length": size},
        dataset=replace(template.config.dataset, name=dataset),
        train=replace(template.config.train, seed=seed),
        decode=replace(template.config.decode, seed=seed),
        seed=seed,
    )
    evaluation = replace(
        template.evaluation,
        n=len(scores),
        scores={
            kind: RougeMeans(p, r, f, f - 0.2, f + 0.2)
            for kind, (p, r, f) in zip(ROUGE_TYPES, means, strict=True)
        },
    )
    record = replace(
        template,
        run_id=f"{system:06d}{seed:06d}",
        key=replace(
            template.key, model=model, dataset=dataset, seeds=(seed, seed, seed), system=model
        ),
        variant=f"segment_length={size}",
        evaluation=evaluation,
        config=config,
    )
    folder = results.run_folder(record)
    record.write(folder)
    return folder


if __name__ == "__main__":
    main()
