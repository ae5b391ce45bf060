"""Records of a made-up sweep, for the tests of its curves and pictures."""

from collections.abc import Mapping
from typing import Any

from longsumbench.core import FitReport
from longsumbench.files import digest
from longsumbench.runs.record import RunRecord
from support.run_records import FIELDS, record

TRAIN = {"max_steps": 300, "batch_size": 8, "accumulation": 1, "learning_rate": 0.1}


def trained(
    name: str,
    score: float,
    seed: int = 1,
    train: Mapping[str, Any] | None = None,
    beams: int = 1,
    **changes: Any,
) -> RunRecord:
    """Return a run of a system that learns; what is no field of a record is a setting of its model."""
    fields = {key: changes.pop(key) for key in tuple(changes) if key in FIELDS}
    config = {
        "model": {"name": name, **changes},
        "train": {**TRAIN, **(train or {}), "seed": seed},
        "decode": {"num_beams": beams, "seed": seed, "evidence": "20"},
        "score": {"resamples": 200},
    }
    fit = FitReport(parameters=9, steps=300, examples=2_400, seconds=60)
    run_id = digest([config, score, repr(fields)])[:12]
    return record(
        name,
        float(score),
        **{"run_id": run_id, "config": config, "seed": seed, "fit": fit, **fields},
    )


def baseline(name: str, score: float, **changes: Any) -> RunRecord:
    """Return a run of a system that learns nothing: how it would be trained does not count."""
    config = {
        "model": {"name": name},
        "train": {**TRAIN, "max_steps": 7},
        "decode": {"num_beams": 4},
    }
    return record(name, score, **{"config": config, "oracle": name == "oracle", **changes})
