"""The baselines that are scored with the first run on some texts."""

import logging
from collections.abc import Iterator
from dataclasses import replace

from longsumbench.api import RunConfig, registry
from longsumbench.errors import DataError
from longsumbench.runs.bug_report import as_reported_error
from longsumbench.runs.pipeline import Point, run_point
from longsumbench.runs.record import RunRecord
from longsumbench.runs.run_id import config_identity

_log = logging.getLogger(__name__)

BASELINES = ("lead", "random", "oracle")


def score_baselines(point: Point, taken: set[str], failed: dict[str, str] | None = None) -> list[RunRecord]:
    """Score the baselines on the examples of a run, unless it has `baselines=false`; return their records.

    Args:
        point: the run.
        taken: identities of baselines that need not be scored; those that are scored here are added.
        failed: a baseline that fails is added here with its reason; without it, the error is raised.
    """
    records: list[RunRecord] = []
    for name in BASELINES if point.config.baselines else ():
        try:
            if name != point.config.model.name:
                records.extend(score_baseline(point, name, taken))
        except Exception as error:
            if failed is None:
                raise
            failed[name] = f"{as_reported_error(error)}"
            _log.warning(f"failed: {name}: {failed[name]}")
    return records


def score_baseline(point: Point, name: str, taken: set[str]) -> Iterator[RunRecord]:
    """Score a baseline on the examples of a run.

    Lead and Random need a training split for their length; without one they are skipped with a line. The seed is the
    default, so that a sweep over seeds adds no rows.
    """
    seed = RunConfig.seed
    decode = replace(point.config.decode, seed=seed)
    train = replace(point.config.train, seed=seed)
    system = registry.systems.load(name)
    model = system.Config()
    config = replace(point.config, model=model, train=train, decode=decode, seed=seed, overwrite=False, name=None)
    key = config_identity(config, system(model))
    if key in taken:
        return
    taken.add(key)
    try:
        yield run_point(Point(config, command=point.command, quiet=True))
    except DataError as error:
        _log.warning(f"{name} is not in the table: {error}")
