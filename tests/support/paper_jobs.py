"""Jobs of `longsumbench paper`, made up for tests: rows with finished runs whose scores of each example are given."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from longsumbench.core import DatasetSettings, RunConfig
from longsumbench.metrics.aggregate import aggregate, aggregate_measures, write_scores
from longsumbench.papers.page import Job, RowRuns
from longsumbench.papers.paper_tables import PaperTable
from longsumbench.runs.plan import Planned
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from support.run_records import record

KINDS = ("rouge1", "rouge2", "rougeL", "rougeLsum")


def finished_run(results: Results, model: str, f: Sequence[float], seed: int | None = 1, **changes: Any) -> RunRecord:
    """A finished run on arxiv with its scores.csv.

    Args:
        results: the results folder.
        model: its name.
        f: F1 of each example, 0–1, of all types of ROUGE; precision is 0.1 above, recall 0.1 below.
        seed: of the run.
        changes: fields of the record; `facts` is the fact recall of each example, 0–1.
    """
    parts = {"p": 0.1, "r": -0.1, "f": 0.0}
    facts = changes.pop("facts", None)
    index = pd.Index([f"e{number}" for number in range(len(f))], name="id")
    columns = {f"{kind}_{part}": pd.Series(f, index) + shift for kind in KINDS for part, shift in parts.items()}
    table = pd.DataFrame(columns)
    measures = aggregate_measures(pd.DataFrame({"fact_recall": pd.Series(facts, index)})) if facts else {}
    named = {"run_id": f"{model}0000000{seed or 0}", "seed": seed, "n": len(f), **changes}
    found = record(model, 0, scores=aggregate(table), measures=measures, **named)
    if facts:
        table["fact_recall"] = facts
    folder = results.run_folder(found)
    folder.mkdir(parents=True)
    write_scores(folder / "scores.csv", table)
    return found


def paper_job(
    paper_table: PaperTable,
    results: Path,
    runs: Mapping[str, Sequence[RunRecord | None]],
    dataset: str = "arXiv",
    settings: DatasetSettings | None = None,
) -> Job:
    """A job at scale=probe.

    Args:
        paper_table: the table or figure.
        results: the results folder.
        runs: label of a row → its runs; None: not finished.
        dataset: the paper's name of the only dataset that is read.
        settings: of that dataset; default: arxiv from the hub.
    """
    point = Planned("a point", RunConfig(model=None), "", "")
    rows = tuple(
        RowRuns(label, paper_table.rows[label], dataset, (point,) * len(found), tuple(found))
        for label, found in runs.items()
    )
    datasets = {dataset: settings or DatasetSettings("arxiv")}
    return Job(paper_table, "probe", datasets, rows, {}, (), Results(results))
