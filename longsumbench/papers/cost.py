"""Estimates how long the runs of a table or figure take on one GPU, from their FLOPs.

The counts are of texts as long as the papers' mean, without validation and without training a ranker. A rate of 40 % is
that of large networks on long texts. Compared with PageSum's paper, hours are right within a factor of about two there,
and up to five times too low for short texts (benchmarks/paper_cost.py).
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from longsumbench.analysis.dataset.published_sizes import PUBLISHED_SIZES, read_printed_size
from longsumbench.api import Recipe, RunConfig, registry
from longsumbench.errors import DataError
from longsumbench.papers.artifacts import PAPER, Artifact
from longsumbench.papers.kinds import PLANNED_ONLY
from longsumbench.papers.points import plan_artifact
from longsumbench.runs.results import Results

if TYPE_CHECKING:
    from longsumbench.papers.flops import ForwardCount  # it needs torch

A100 = 312e12  # FLOP/s of dense bfloat16 products on an A100 with 80 GB
UTILIZATION = 0.4  # of that rate
_COSTS = "papers/cost.csv"  # in the results folder
_STEP_SECONDS = 0.001  # of one decoder layer for one token: starting its kernels takes that long on any GPU
_PASSES = 3  # forward, and twice its products backward; with gradient checkpointing one more
_NOT_GIVEN = {"source": 50_000, "target": 5_000, "train": 100_000, "test": 10_000}  # lengths that fill all limits


class TextSizes(NamedTuple):
    """Published sizes of a dataset: mean tokens of a source and of a target, and examples to train and to test."""

    source: int
    target: int
    train: int
    test: int


class RunCost(NamedTuple):
    """What a run costs.

    Attributes:
        training: FLOPs of all optimizer steps.
        decoding: FLOPs of writing all summaries.
        layer_steps: decoder layers × tokens that are computed one after the other.
    """

    training: float = 0.0
    decoding: float = 0.0
    layer_steps: float = 0.0

    def hours(self, rate: float = A100) -> float:
        """Return the hours on one GPU with `rate` FLOP/s, of which it reaches `UTILIZATION`."""
        seconds = (self.training + self.decoding) / (rate * UTILIZATION)
        return (seconds + self.layer_steps * _STEP_SECONDS) / 3_600


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
    """Estimate a run; None if a checkpoint decides its network. Baselines without a network cost nothing.

    Beams multiply the whole pass, though the encoder runs once: writing is a small part of a run.
    """
    settings, recipe, decode = config.model, config.train, config.decode
    if hasattr(settings, "checkpoint"):
        return None
    if "train" not in registry.systems.load(settings.name).decided_by:
        return RunCost()
    sizes = read_sizes(str(config.dataset.reader))
    count = forward_of(config)
    examples = recipe.max_steps * recipe.accumulation * examples_in_batch(recipe, count.source_tokens)
    tested = min(sizes.test, config.dataset.limit or sizes.test, decode.limit or sizes.test) * recipe.keep_best
    steps = decode.max_length or settings.decode_length
    layers = getattr(settings, "dimension", lambda name: getattr(settings, name))("decoder_layers")
    return RunCost(
        training=examples * count.flops * (_PASSES + recipe.gradient_checkpointing),
        decoding=tested * count.flops * decode.num_beams,
        layer_steps=tested / decode.batch_size * steps * layers,
    )


def examples_in_batch(recipe: Recipe, source_tokens: int) -> float:
    """Return the mean number of examples in a forward pass of training, with `source_tokens` of each."""
    if recipe.batch_tokens is not None:
        return max(1.0, recipe.batch_tokens / source_tokens)
    return recipe.batch_size


def forward_of(config: RunConfig) -> "ForwardCount":
    """Count a forward pass of a run's network on a text of the dataset's mean length."""
    dataset = str(config.dataset.reader)
    settings, multi_document = json.dumps(asdict(config.model)), registry.corpora.load(dataset).multi_document
    return _count_once(settings, read_sizes(dataset), multi_document)


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


@lru_cache(maxsize=256)
def _count_once(settings: str, sizes: TextSizes, multi_document: bool) -> "ForwardCount":
    """Count a forward pass; `settings` are the system's as JSON."""
    from longsumbench.papers.flops import count_forward

    values = json.loads(settings)
    return count_forward(registry.config_of(values["name"])(**values), sizes.source, sizes.target, multi_document)
