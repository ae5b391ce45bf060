"""GPU hours of the papers' tables and figures at paper scale, estimated from FLOPs, next to what the papers say.

    python benchmarks/paper_cost.py
    python benchmarks/paper_cost.py --write [--only seal-table2,seal-table3]

Without an option, it compares estimates with the papers: an epoch of PageSum, and ETADS's training. --write estimates
every table and figure (some minutes), and writes results/reference/papers/cost.csv, which docs/papers.md shows.
"""

import argparse
from pathlib import Path

from tabulate import tabulate

from longsumbench.papers.artifacts import find_artifact, read_artifacts
from longsumbench.papers.cost import (
    A100,
    estimate_artifact,
    estimate_run,
    forward_of,
    read_costs,
    read_sizes,
    write_costs,
)
from longsumbench.progress import track
from longsumbench.runs.plan import plan
from longsumbench.runs.results import Results

RESULTS = Path(__file__).parents[1] / "results/reference"
A6000 = 155e12  # FLOP/s of dense float16 products
TITAN_XP = 12.1e12  # FLOP/s in float32: it has no tensor cores
PAGESUM = {"arXiv": "arxiv", "PubMed": "pubmed", "GovReport": "gov_report", "Multi-News": "multi_news"}


def main() -> None:
    """Print the comparison, or write the estimates of all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="estimate all tables and figures, and write cost.csv")
    parser.add_argument("--only", default="", help="with --write: names, separated by commas; others stay as they are")
    parser.add_argument("--results-dir", type=Path, default=RESULTS, help="where the file is")
    options = parser.parse_args()
    if not options.write:
        print(compare())
        return
    results = Results(options.results_dir)
    costs = read_costs(results)
    artifacts = read_artifacts()
    chosen = [find_artifact(name) for name in options.only.split(",")] if options.only else list(artifacts.values())
    for artifact in track(chosen, "counting", len(chosen), "tables"):
        costs.pop(artifact.name, None)
        if (cost := estimate_artifact(artifact)) is not None:
            costs[artifact.name] = cost
        write_costs({name: costs[name] for name in artifacts if name in costs}, results)


def compare() -> str:
    """Return estimates next to what the papers say."""
    rows = []
    for printed, name in PAGESUM.items():
        (point,) = plan(["scale=paper", "model=pagesum", f"dataset={name}"])
        count, passes = forward_of(point.config), 3 + point.config.train.gradient_checkpointing
        flops = count.flops * passes * read_sizes(name).train
        hours = flops / (A6000 * 0.4) / 3_600
        rows.append(
            [f"PageSum, an epoch of {printed}", count.parameters / 1e6, flops / 1e18, "A6000", hours, "5 to 25 (§5.1)"]
        )
    (point,) = plan(["scale=paper", "model=etads", "dataset=cnn_dailymail"])
    cost, count = estimate_run(point.config), forward_of(point.config)
    assert cost is not None
    for gpu, rate in (("4 Titan Xp", 4 * TITAN_XP), ("A100", A100)):
        hours = cost.training / (rate * 0.4) / 3_600
        said = "200,000 steps (§4.1), no hours" if rate < A100 else "–"
        rows.append(["ETADS, all steps", count.parameters / 1e6, cost.training / 1e18, gpu, hours, said])
    names = ["training", "million parameters", "EFLOP", "GPU", "hours at 40 %", "the paper says"]
    return tabulate(rows, names, floatfmt=("", ".1f", ".2f", "", ".1f", ""))


if __name__ == "__main__":
    main()
