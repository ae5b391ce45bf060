"""How long `longsumbench leaderboard` takes with many committed runs of one dataset.

python benchmarks/leaderboard.py [--systems 200] [--seeds 5] [--examples 100]

Makes made-up runs in a temporary folder, with records and scores, and prints the seconds of each step. Exits with 1 if
the command takes more than 5 seconds of a core.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from longsumbench.leaderboards.significance import build_blocks, read_all_scores
from longsumbench.leaderboards.table import Table
from longsumbench.metrics.aggregate import ScoreTable, aggregate, write_scores
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.leaderboard import TableView

MOST_SECONDS = 5.0
DATASET = "made_up"
REFERENCE = Results(Path(__file__).parents[1] / "results" / "reference")

Result = TypeVar("Result")


def main() -> None:
    """Make the runs, and print the seconds of each step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--examples", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = Results(Path(folder))
        make_runs(results, options.systems, options.seeds, options.examples)
        records = timed("read the records", lambda: list(results.records(DATASET)))
        scores: dict[str, ScoreTable] = timed(
            "read the scores", lambda: read_all_scores(results, records)
        )
        rows = timed("average seeds and test", lambda: build_blocks(records, scores))
        timed("render the files", TableView(Table(DATASET, rows, scores=scores)).files)
        command = [
            sys.executable,
            "-m",
            "longsumbench",
            "leaderboard",
            DATASET,
            "--results-dir",
            folder,
        ]
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds, used = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    of_core = used.ru_utime + used.ru_stime
    print(
        f"{seconds:6.2f} s  longsumbench leaderboard, {len(records):,} runs of {options.examples} examples"
    )
    print(f"{of_core:6.2f} s  of a core, which other work on the machine does not change")
    sys.exit(1 if of_core > MOST_SECONDS else 0)


def timed(name: str, step: Callable[[], Result]) -> Result:
    """Print how long a step takes; return its result."""
    begun = time.perf_counter()
    result = step()
    print(f"{time.perf_counter() - begun:6.2f} s  {name}")
    return result


def make_runs(results: Results, systems: int, seeds: int, examples: int) -> None:
    """Write runs of systems with several settings, on the same examples; each differs in its mean and its seeds."""
    draw = np.random.default_rng(1)
    ids = pd.Index([f"example-{number:05d}" for number in range(examples)], name="id")
    hard = draw.beta(4, 8, (examples, 1))
    template = RunRecord.read(
        REFERENCE.run_folders("pubmed", "seal/*")[0]
    )  # whose settings all runs have
    columns = [f"{kind}_{statistic}" for kind in template.evaluation.scores for statistic in "prf"]
    for system in range(systems):
        better = draw.normal(0, 0.03)
        for seed in range(1, seeds + 1):
            noise = draw.normal(better + draw.normal(0, 0.005), 0.05, (examples, len(columns)))
            scores = pd.DataFrame((hard + noise).clip(0, 1), index=ids, columns=columns)
            write_run(results, template, system, seed, scores)


def write_run(
    results: Results, template: RunRecord, system: int, seed: int, scores: pd.DataFrame
) -> None:
    """Write a run of a system with these scores."""
    model, size = f"system{system % 40:02d}", 64 * (1 + system // 40)
    config = replace(
        template.config,
        model={**template.config.model, "name": model, "segment_length": size},
        dataset=replace(template.config.dataset, name=DATASET),
        train=replace(template.config.train, seed=seed),
        decode=replace(template.config.decode, seed=seed),
        seed=seed,
    )
    evaluation = replace(
        template.evaluation,
        n=len(scores),
        scores=aggregate(scores, resamples=100),
    )
    record = replace(
        template,
        run_id=f"{system:06d}{seed:06d}",
        key=replace(
            template.key, model=model, dataset=DATASET, seeds=(seed, seed, seed), system=model
        ),
        variant=f"segment_length={size}",
        evaluation=evaluation,
        config=config,
    )
    folder = results.run_folder(record)
    record.write(folder)
    write_scores(folder / "scores.csv", scores)


if __name__ == "__main__":
    main()
