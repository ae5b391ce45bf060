"""A small results folder for tests of the site: records and scores, a sweep, a picture."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from longsumbench.core import Cut, FitReport, Truncation
from longsumbench.metrics.aggregate import write_scores
from longsumbench.runs.record import ImportedOutputs, RunRecord
from longsumbench.runs.results import Results
from longsumbench.sweeps.state import DONE, FAILED, PointState, Sweep
from support.run_records import changed, record
from support.swept_runs import baseline, trained

KINDS = ("rouge1", "rouge2", "rougeL", "rougeLsum")
LOSSES = ((100, 3.0), (200, 2.0), (300, 2.5))


def store(root: Path, *records: RunRecord) -> None:
    """Write runs with scores of 40 examples around their means."""
    draw = np.random.default_rng(1)
    ids = pd.Index([f"e-{number}" for number in range(40)], name="id")
    noise = draw.normal(0, 0.05, (40, 1))
    for run in records:
        folder = Results(root).run_folder(run)
        changed(run, n=40).write(folder)
        means, columns = [], []
        for kind in KINDS:
            scores = run.evaluation.scores[kind]
            means += [scores.p / 100, scores.r / 100, scores.f / 100]
            columns += [f"{kind}_p", f"{kind}_r", f"{kind}_f"]
        own = np.random.default_rng(len(run.run_id)).normal(0, 0.01, (40, len(columns)))
        write_scores(
            folder / "scores.csv",
            pd.DataFrame((np.array(means) + noise + own).clip(0, 1), ids, columns),
        )


def small_results(root: Path) -> Path:
    """Fill a results folder: two datasets, a trained system of two seeds, imported outputs, a sweep, a picture."""
    fit = FitReport(9, steps=300, seconds=60, validation_losses=LOSSES, best_step=200)
    ledger = Truncation(100, 80, (Cut("input_length", 25, 20),))
    store(
        root,
        *(trained("seal", 30 + seed, seed, fit=fit, source=ledger, length=128) for seed in (1, 2)),
    )
    store(root, baseline("lead", 25), baseline("random", 20), baseline("oracle", 60))
    real = replace(
        record("GPT-9", 44, dataset="meetings"),
        imported=ImportedOutputs("out.jsonl", "0" * 64, "a paper"),
    )
    store(root, real, record("lead", 21, dataset="meetings"))
    sweep = Sweep.of(root, ["model=seal"])
    sweep.begin(["longsumbench", "run", "-m", "model=seal"], "basic")
    sweep.write_state(1, PointState("seal seed=1", DONE, score=31.0, started=1.0, ended=9.0))
    sweep.write_state(
        2, PointState("seal seed=2", FAILED, reason="the disk was full", started=1.0, ended=2.0)
    )
    (root / "leaderboard").mkdir()
    (root / "leaderboard" / "arxiv-page_size.svg").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg'/>"
    )
    (root / "inspections" / "seal").mkdir(parents=True)
    return root
