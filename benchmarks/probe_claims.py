"""What the sweep over `probe` shows, in three lines, from the scores of its runs.

    longsumbench run -m dataset=probe model=trunc,ca,ea,seal model.extractive_length=128,256 seed=1,2,3
    python benchmarks/probe_claims.py [--results-dir results]

Recall of single facts, in percent. Seeds are pooled: an example's recall is the mean over them, and the 95 % interval is
the percentile bootstrap over the examples. Behind each stands the range of the seeds' own means.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from longsumbench.metrics.metric import BOOTSTRAP_SEED, read_scores
from longsumbench.records import Results, RunRecord
from longsumbench.statistics import bootstrap_interval

SINGLE, DECILE = "fact_recall_single", "fact_recall_single_position_{}"
WINDOW, LENGTH, RESAMPLES = 256, 1_024, 10_000


def main() -> None:
    """Print the claims, each with what it rests on."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results-dir", default="results", help="where the runs are")
    results = Results(Path(parser.parse_args().results_dir))
    runs = [(record, folder_of(results, record)) for record in results.records("probe")]
    past = [DECILE.format(decile) for decile in range(10) if decile * LENGTH // 10 >= WINDOW]
    trunc = [read_scores(folder) for record, folder in runs if record.model == "trunc" and record.scale == "probe"]
    if not trunc or not all(folder.is_file() for _, folder in runs):
        sys.exit("the sweep's scores are not here: run it first")
    chance = 100 * trunc[0]["fact_recall_chance"].mean()
    print(f"past the window (deciles {len(past)} of 10): {told([one[past].mean(axis=1) for one in trunc])}")
    print(f"    chance: {chance:.1f}")
    for length in (256, 128):
        for model in ("ea", "seal"):
            found = [read_scores(folder)[SINGLE] for record, folder in runs if is_point(record, model, length)]
            print(f"{model} at extractive_length={length}: {told(found)}")


def folder_of(results: Results, record: RunRecord) -> Path:
    """Return the file of a run's scores."""
    return results.root / "runs" / record.dataset / record.model / record.run_id / "scores.csv"


def is_point(record: RunRecord, model: str, length: int) -> bool:
    """Tell whether a run is one of the sweep's with this system and length."""
    settings = record.config["model"]
    usual = not {"segment_length"} & {item.partition("=")[0] for item in record.variant.split(",")}
    return record.model == model and settings["extractive_length"] == length and usual


def told(seeds: Sequence[pd.Series]) -> str:
    """Say the mean over seeds and examples, its interval, and the range of the seeds."""
    if not seeds:
        return "no run"
    per_example = 100 * pd.concat(list(seeds), axis=1).mean(axis=1).dropna()
    low, high = bootstrap_interval(per_example.to_numpy(), RESAMPLES, BOOTSTRAP_SEED)
    means = sorted(100 * one.mean() for one in seeds)
    ends = f"{len(seeds)} seeds: {means[0]:.1f} to {means[-1]:.1f}"
    return f"{per_example.mean():.1f} ({low:.1f} to {high:.1f}; {ends})"


if __name__ == "__main__":
    main()
