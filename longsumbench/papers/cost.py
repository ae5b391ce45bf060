"""Estimates how long the runs of a table or figure take on one GPU, from their FLOPs.

The counts are of texts as long as the papers' mean, without validation and without training a ranker. A rate of 40 % is
that of large networks on long texts. Compared with PageSum's paper, hours are right within a factor of about two there,
and up to five times too low for short texts (benchmarks/paper_cost.py).
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from longsumbench.analysis.dataset.published_sizes import PUBLISHED_SIZES, read_printed_size
from longsumbench.api import RunConfig, registry
from longsumbench.errors import DataError
from longsumbench.papers.artifacts import PAPER, Artifact
from longsumbench.papers.kinds import PLANNED_ONLY
from longsumbench.papers.points import plan_artifact
from longsumbench.runs.estimate import RunCost, TextSizes, count_text, estimate_cost
from longsumbench.runs.results import Results

if TYPE_CHECKING:
    from longsumbench.modeling.flops import ForwardCount  # it needs torch

_COSTS = "papers/cost.csv"  # in the results folder
_NOT_GIVEN = {"source": 50_000, "target": 5_000, "train": 100_000, "test": 10_000}  # lengths that fill all limits


class ArtifactCost(NamedTuple):
    """What all runs of a table or figure cost at paper scale.

    Attributes:
        runs: different ones.
        uncounted: runs of these whose network a checkpoint decides.
        hours: of the others, on one A100.
    """

    runs: int
    uncounted: int
    hours: float


def estimate_artifact(artifact: Artifact) -> ArtifactCost | None:
    """Estimate all runs of a table or figure at paper scale, finished or not; None if it has no paper scale."""
    if PAPER not in artifact.scales:
        return None
    job = plan_artifact(artifact, PAPER, (), Results(Path()))
    points = () if artifact.kind in PLANNED_ONLY else [point for row in job.rows for point in row.points]
    configs = {point.identity: point.config for point in points}
    costs = [estimate_run(config) for config in configs.values()]
    counted = [cost.hours() for cost in costs if cost is not None]
    runs = len(costs) + len(job.unreachable)
    return ArtifactCost(runs, runs - len(counted), sum(counted))


def read_costs(results: Results) -> dict[str, ArtifactCost]:
    """Return the estimated costs by name, as `write_costs` wrote them; empty if there is no such file.

    Raises:
        DataError: the file is damaged.
    """
    path = results.root / _COSTS
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return {
            row["name"]: ArtifactCost(int(row["runs"]), int(row["uncounted"]), float(row["gpu_hours"])) for row in rows
        }
    except FileNotFoundError:
        return {}
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"not a table of costs ({error}); benchmarks/paper_cost.py --write makes it", path) from error


def write_costs(costs: Mapping[str, ArtifactCost], results: Results) -> Path:
    """Write estimated costs, with hours of two digits, for `read_costs`."""
    path = results.root / _COSTS
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{name},{cost.runs},{cost.uncounted},{float(f'{cost.hours:.2g}'):g}" for name, cost in costs.items()]
    path.write_text("\n".join(["name,runs,uncounted,gpu_hours", *rows, ""]), encoding="utf-8")
    return path


def estimate_run(config: RunConfig) -> RunCost | None:
    """Estimate a run on a dataset of published sizes; None if a checkpoint decides its network."""
    if hasattr(config.model, "checkpoint"):
        return None
    dataset = str(config.dataset.reader)
    return estimate_cost(config, read_sizes(dataset), registry.corpora.load(dataset).multi_document)


def forward_of(config: RunConfig) -> "ForwardCount":
    """Count a forward pass of a run's network on a text of the dataset's mean length."""
    dataset = str(config.dataset.reader)
    return count_text(config.model, read_sizes(dataset), registry.corpora.load(dataset).multi_document)


def read_sizes(dataset: str) -> TextSizes:
    """Return the published sizes of a dataset, of several the largest; sizes that no paper gives fill all limits."""
    found: dict[str, list[int]] = {name: [] for name in TextSizes._fields}
    for _, _, examples, source, _, target, _ in PUBLISHED_SIZES.get(dataset, ()):
        train, *others = examples.split(" / ")
        given = {"source": source, "target": target, "train": train, "test": others[-1] if others else "–"}
        for name, printed in given.items():
            if (size := read_printed_size(printed)) is not None:
                found[name].append(round(size))
    return TextSizes(**{name: max(values, default=_NOT_GIVEN[name]) for name, values in found.items()})
