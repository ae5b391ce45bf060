"""Records of runs, made up for tests of tables."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, replace
from typing import Any

from longsumbench.core import SECTIONS, DatasetSettings, Decoding, FitReport, Recipe, Scoring
from longsumbench.leaderboards.significance import JudgedDifference
from longsumbench.metrics.aggregate import MeasureMean, RougeMeans
from longsumbench.runs.environment import Environment
from longsumbench.runs.record import RunRecord, StepSeconds

TRAINED = FitReport(
    5, steps=300, examples=4800, source_tokens=9, target_tokens=8, seconds=90.0, targets_cut=3
)


def scores(f: float) -> dict[str, RougeMeans]:
    """Scores whose F is around `f`, best in ROUGE-1."""
    shifted = {"rouge1": f + 3, "rouge2": f - 9, "rougeL": f - 5, "rougeLsum": f}
    return {kind: RougeMeans(v + 10, v - 5, v, v - 1, v + 0.6) for kind, v in shifted.items()}


def measured(
    means: Mapping[str, float], below: float = 2.0, above: float = 1.0
) -> dict[str, MeasureMean]:
    """Measures with these means, and intervals that reach so far below and above."""
    return {
        name: MeasureMean(float(mean), float(mean - below), float(mean + above), 20)
        for name, mean in means.items()
    }


def judged(outcome: str) -> JudgedDifference:
    """A difference from the best row with this outcome of its test."""
    return JudgedDifference(-1.0, -2.0, 0.5, 0.4, 1.0, 1, outcome)


_CONFIG: dict[str, Any] = {
    "dataset": asdict(DatasetSettings("arxiv")),
    "train": asdict(Recipe(accumulation=1)),
    "decode": asdict(Decoding(evidence="none")),
    "score": asdict(Scoring()),
    "scale": "tiny",
    "name": None,
    "results_dir": "results",
}


def record(model: str, f: float, **changes: object) -> RunRecord:
    measures: Any = changes.get("measures", {})
    made = RunRecord(
        run_id=f"{model}0000000000"[:12],
        model=model,
        dataset="arxiv",
        split="test",
        variant="",
        scale="tiny",
        seed=None,
        oracle=False,
        signature="rouge:rouge_score-0.1.2|stemmer:porter|n:20|v:1",
        scores=scores(f),
        n=20,
        examples="e1",
        empty_references=(),
        empty_predictions=0,
        fingerprint="f1",
        corpus={"examples": {"train": 60, "test": 20}},
        source=None,
        outputs_cut=5,
        fit=FitReport(),
        decode_tokens_per_second=12.5,
        timings=StepSeconds(),
        peak_memory_gb=1.5,
        config={"model": {"name": model}, **deepcopy(_CONFIG)},
        environment=Environment("0.1"),
        command=(),
        finished="2026-01-01T00:00:00+00:00",
        repeatable=True,
        measures={},
        units={},
        ranked_by="rougeLsum",
        measured_by={},
        checkpoints=(),
        outputs=None,
        words_copied=None,
        floor={},
        imported=None,
        system={},
        counts={},
        versions={},
    )
    given: Any = changes.pop("config", {})
    sections = {name: {**made.config[name], **given[name]} for name in SECTIONS if name in given}
    config = {**made.config, **given, **sections}
    changes.setdefault("ranked_by", next(iter(measures), "rougeLsum"))
    config["model"] = {"name": model, **config["model"]}
    return replace(made, config=config, **changes)  # type: ignore[arg-type]
