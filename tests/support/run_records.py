"""Records of runs, made up for tests of tables."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from longsumbench.core import (
    SECTIONS,
    DatasetSettings,
    Decoding,
    FitReport,
    RunKey,
    Summary,
    TrainConfig,
)
from longsumbench.files import digest
from longsumbench.leaderboards.significance import CorrectedDifference, Outcome
from longsumbench.metrics.aggregate import MeasureMean, RougeMeans, write_scores
from longsumbench.metrics.evaluate import Evaluation
from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.runs.environment import Environment
from longsumbench.runs.predictions import write_summaries
from longsumbench.runs.record import (
    Ledger,
    RecordedConfig,
    RecordedSystem,
    RecordedTexts,
    RunCosts,
    RunRecord,
    StepSeconds,
    recorded_metadata,
)
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import collect_settings

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


def judged(outcome: Outcome) -> CorrectedDifference:
    """A difference from the best row with this outcome of its test."""
    return CorrectedDifference(-1.0, -2.0, 0.5, outcome)


# Of a record, with fields that tests set by their names; the first that has a name counts.
_PARTS = ("evaluation", "ledger", "costs", "key")

FIELDS = {  # that `changed` sets
    "scale",
    "seed",
    *(item.name for item in fields(RunRecord)),
    *(item.name for part in (RunKey, Evaluation, Ledger, RunCosts) for item in fields(part)),
}


def changed(run: RunRecord, **changes: Any) -> RunRecord:
    """A record with other fields, wherever in it they are.

    `config` has sections with other settings; `texts` and `system` may be mappings.
    """
    for name, kind in (("texts", RecordedTexts), ("system", RecordedSystem)):
        if isinstance(changes.get(name), dict):
            changes[name] = recorded_metadata(changes[name], kind)  # type: ignore[type-var]
    is_other_system = not changes.keys().isdisjoint(["config", "fit"])
    config = changes.pop("config", {})
    if "scale" in changes:
        config = {**config, "scale": changes.pop("scale")}
    if "seed" in changes:
        seed = changes.pop("seed")
        changes["seeds"] = () if seed is None else (seed, seed, seed)
    changes.setdefault("config", _changed_config(run.config, **config))
    for name in _PARTS:
        part = getattr(run, name)
        names = [key for key in changes if key in vars(part) and key not in vars(run)]
        of_part = {key: changes.pop(key) for key in names}
        changes.setdefault(name, replace(part, **of_part))
    run = replace(run, **changes)
    if is_other_system:
        run = replace(run, key=replace(run.key, system=digest(collect_settings(run))))
    return run


def _changed_config(config: RecordedConfig, **changes: Any) -> RecordedConfig:
    for name in SECTIONS:
        if name in changes:
            changes[name] = replace(getattr(config, name), **changes[name])
    return replace(config, **changes)


def write_run(
    root: Path, run: RunRecord, summaries: Sequence[Summary], f: Sequence[float], **columns: Any
) -> Path:
    """Write the files of a finished run; return its folder.

    Args:
        root: the results folder.
        run: its record.
        summaries: its outputs.
        f: precision, recall and F1 of the first examples, 0–1, the same for all types of ROUGE.
        columns: other columns of its scores.
    """
    folder = Results(root).run_folder(run)
    run.write(folder)
    write_summaries(folder / "predictions.jsonl", summaries)
    ids = pd.Index([summary.id for summary in summaries[: len(f)]], name="id")
    rouge = {f"{kind}_{statistic}": list(f) for kind in ROUGE_TYPES for statistic in "prf"}
    write_scores(folder / "scores.csv", pd.DataFrame({**rouge, **columns}, ids))
    return folder


def record(model: str, f: float, **changes: Any) -> RunRecord:
    """A record with ROUGE around `f`; `changes` as of `changed`."""
    run = RunRecord(
        run_id=f"{model}0000000000"[:12],
        key=RunKey(model, "arxiv", "test", (), "", "", "", {}, "f1"),
        variant="",
        oracle=False,
        evaluation=Evaluation(
            signature="rouge:rouge_score-0.1.2|stemmer:porter|n:20|v:1",
            n=20,
            examples="e1",
            scores=scores(f),
            measures={},
            units={},
            ranked_by="rougeLsum",
            measured_by={},
            floor={},
            outputs=None,
        ),
        outputs_digest="",
        fit=FitReport(),
        ledger=Ledger(outputs_cut=5),
        costs=RunCosts(StepSeconds(), 12.5, 1.5),
        texts=RecordedTexts({"train": 60, "test": 20}),
        system=RecordedSystem(),
        config=RecordedConfig(
            model={"name": model},
            dataset=DatasetSettings("arxiv"),
            train=TrainConfig(accumulation=1),
            decode=Decoding(evidence="none"),
            scale="tiny",
        ),
        environment=Environment("0.1"),
        command=(),
        finished="2026-01-01T00:00:00+00:00",
    )
    changes.setdefault("ranked_by", next(iter(changes.get("measures", ())), "rougeLsum"))
    config = {**changes.pop("config", {})}
    config["model"] = {"name": model, **config.get("model", {})}
    return changed(run, config=config, **changes)
