"""GPU hours of the papers' tables and figures at paper scale, estimated from FLOPs, next to what the papers say.

    python benchmarks/paper_cost.py
    python benchmarks/paper_cost.py --write [--only seal-table2,seal-table3]

Without an option, it compares estimates with the papers: an epoch of PageSum, and ETADS's training. --write estimates
every table and figure (some minutes), and writes results/reference/papers/cost.csv, which docs/papers.md shows.

The counts are of texts as long as the papers' mean, without validation and without training a ranker. A rate of 40 % is
that of large networks on long texts. Compared with PageSum's paper, hours are right within a factor of about two there,
and up to five times too low for short texts.
"""

import argparse
import csv
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from longsumbench.analysis.dataset.tables import PUBLISHED_SIZES, read_printed_size
from longsumbench.core import RunConfig, registry
from longsumbench.errors import DataError
from longsumbench.modeling.flops import ForwardCount
from longsumbench.papers.page import PLANNED_ONLY
from longsumbench.papers.paper_tables import PAPER, PaperTable, find_paper_table, read_paper_tables
from longsumbench.papers.points import plan_paper_table
from longsumbench.progress import track
from longsumbench.runs.estimate import A100, RunCost, TextSizes, count_text, estimate_cost
from longsumbench.runs.plan import plan
from longsumbench.runs.results import Results

RESULTS = Path(__file__).parents[1] / "results/reference"
A6000 = 155e12  # FLOP/s of dense float16 products
TITAN_XP = 12.1e12  # FLOP/s in float32: it has no tensor cores
PAGESUM = {
    "arXiv": "arxiv",
    "PubMed": "pubmed",
    "GovReport": "gov_report",
    "Multi-News": "multi_news",
}

_COSTS = "papers/cost.csv"  # in the results folder
_NOT_GIVEN = {
    "source": 50_000,
    "target": 5_000,
    "train": 100_000,
    "test": 10_000,
}  # lengths that fill all limits


def main() -> None:
    """Print the comparison, or write the estimates of all tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", action="store_true", help="estimate all tables and figures, and write cost.csv"
    )
    parser.add_argument(
        "--only",
        default="",
        help="with --write: names, separated by commas; others stay as they are",
    )
    parser.add_argument("--results-dir", type=Path, default=RESULTS, help="where the file is")
    options = parser.parse_args()
    if not options.write:
        print(compare())
        return
    results = Results(options.results_dir)
    costs = read_costs(results)
    paper_tables = read_paper_tables()
    selection = (
        [find_paper_table(name) for name in options.only.split(",")]
        if options.only
        else list(paper_tables.values())
    )
    for paper_table in track(selection, "counting", len(selection), "tables"):
        costs.pop(paper_table.name, None)
        if (cost := estimate_paper_table(paper_table)) is not None:
            costs[paper_table.name] = cost
        write_costs({name: costs[name] for name in paper_tables if name in costs}, results)


def compare() -> str:
    """Return estimates next to what the papers say."""
    rows = []
    for printed, name in PAGESUM.items():
        (point,) = plan(["scale=paper", "model=pagesum", f"dataset={name}"])
        count, passes = (
            forward_of(point.config),
            3 + bool(point.config.train.gradient_checkpointing),
        )
        flops = count.flops * passes * read_sizes(name).train
        hours = flops / (A6000 * 0.4) / 3_600
        rows.append(
            [
                f"PageSum, an epoch of {printed}",
                count.parameters / 1e6,
                flops / 1e18,
                "A6000",
                hours,
                "5 to 25 (§5.1)",
            ]
        )
    (point,) = plan(["scale=paper", "model=etads", "dataset=cnn_dailymail"])
    cost, count = estimate_run(point.config), forward_of(point.config)
    assert cost is not None
    for gpu, rate in (("4 Titan Xp", 4 * TITAN_XP), ("A100", A100)):
        hours = cost.training / (rate * 0.4) / 3_600
        said = "200,000 steps (§4.1), no hours" if rate < A100 else "–"
        rows.append(
            ["ETADS, all steps", count.parameters / 1e6, cost.training / 1e18, gpu, hours, said]
        )
    names = ["training", "million parameters", "EFLOP", "GPU", "hours at 40 %", "the paper says"]
    return tabulate(rows, names, floatfmt=("", ".1f", ".2f", "", ".1f", ""))


class PaperTableCost(NamedTuple):
    """What all runs of a table or figure cost at paper scale.

    Attributes:
        runs: different ones.
        uncounted: runs of these whose network a checkpoint decides.
        hours: of the others, on one A100.
    """

    runs: int
    uncounted: int
    hours: float


def estimate_paper_table(paper_table: PaperTable) -> PaperTableCost | None:
    """Estimate all runs of a table or figure at paper scale, finished or not; None if it has no paper scale."""
    if PAPER not in paper_table.scales:
        return None
    job = plan_paper_table(paper_table, [f"scale={PAPER}"], Results(Path()))
    points = (
        ()
        if paper_table.kind in PLANNED_ONLY
        else [point for row in job.rows for point in row.points]
    )
    configs = {point.identity: point.config for point in points}
    costs = [estimate_run(config) for config in configs.values()]
    hours = [cost.hours() for cost in costs if cost is not None]
    runs = len(costs) + len(job.unreachable)
    return PaperTableCost(runs, runs - len(hours), sum(hours))


def read_costs(results: Results) -> dict[str, PaperTableCost]:
    """Return the estimated costs by name, as `write_costs` wrote them; empty if there is no such file.

    Raises:
        DataError: the file is damaged.
    """
    path = results.root / _COSTS
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return {
            row["name"]: PaperTableCost(
                int(row["runs"]), int(row["uncounted"]), float(row["gpu_hours"])
            )
            for row in rows
        }
    except FileNotFoundError:
        return {}
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"not a table of costs ({error}); benchmarks/paper_cost.py --write makes it", path
        ) from error


def write_costs(costs: Mapping[str, PaperTableCost], results: Results) -> Path:
    """Write estimated costs, with hours of two digits, for `read_costs`."""
    path = results.root / _COSTS
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        f"{name},{cost.runs},{cost.uncounted},{float(f'{cost.hours:.2g}'):g}"
        for name, cost in costs.items()
    ]
    path.write_text("\n".join(["name,runs,uncounted,gpu_hours", *rows, ""]), encoding="utf-8")
    return path


def estimate_run(config: RunConfig) -> RunCost | None:
    """Estimate a run on a dataset of published sizes; None if a checkpoint decides its network."""
    if config.model.checkpoint is not None:
        return None
    dataset = str(config.dataset.reader)
    return estimate_cost(config, read_sizes(dataset), registry.corpora.load(dataset).multi_document)


def forward_of(config: RunConfig) -> ForwardCount:
    """Count a forward pass of a run's network on a text of the dataset's mean length."""
    dataset = str(config.dataset.reader)
    return count_text(
        config.model, read_sizes(dataset), registry.corpora.load(dataset).multi_document
    )


def read_sizes(dataset: str) -> TextSizes:
    """Return the published sizes of a dataset, of several the largest; sizes that no paper gives fill all limits."""
    sizes: dict[str, list[int]] = {name: [] for name in TextSizes._fields}
    for _, _, examples, source, _, target, _ in PUBLISHED_SIZES.get(dataset, ()):
        train, *tested = examples.split(" / ")
        printed_sizes = {
            "source": source,
            "target": target,
            "train": train,
            "test": tested[-1] if tested else "–",
        }
        for name, printed in printed_sizes.items():
            if (size := read_printed_size(printed)) is not None:
                sizes[name].append(round(size))
    return TextSizes(
        **{name: max(values, default=_NOT_GIVEN[name]) for name, values in sizes.items()}
    )


if __name__ == "__main__":
    main()
