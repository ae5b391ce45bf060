"""Jobs of `longsumbench paper`, made by hand: of rows with finished runs or their files, and of analyses of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.json_files import write_rows
from support.paper_tables import toy_paper_table
from support.run_records import record

from longsumbench.cli.main import main
from longsumbench.core import DatasetSettings, RunConfig, registry
from longsumbench.leaderboards.seed_groups import Learned, ResultRow, ScoresOfRuns
from longsumbench.metrics.aggregate import aggregate, aggregate_measures, write_scores
from longsumbench.runs.plan import PlannedRun
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers import published_rows
from longsumbench_reproduction.papers.page_model import Job, RowRuns
from longsumbench_reproduction.papers.paper_tables import PaperClaim, PaperRow, PaperTable

KINDS = ("rouge1", "rouge2", "rougeL", "rougeLsum")


def finished_run(
    results: Results, model: str, f: Sequence[float], seed: int | None = 1, **changes: Any
) -> RunRecord:
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
    columns = {}
    for kind in KINDS:
        for part, shift in parts.items():
            columns[f"{kind}_{part}"] = pd.Series(f, index) + shift
    table = pd.DataFrame(columns)
    measures = (
        aggregate_measures(pd.DataFrame({"fact_recall": pd.Series(facts, index)})) if facts else {}
    )
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
    config = RunConfig(registry.load_config_class("lead")())  # the system is not built
    config = replace(config, decode=replace(config.decode, reference_evidence=True))
    point = PlannedRun(config, name="a point")
    rows = []
    for label, records in runs.items():
        points = (point,) * len(records)
        rows.append(RowRuns(label, paper_table.rows[label], dataset, points, tuple(records)))
    datasets = {dataset: settings or DatasetSettings("arxiv")}
    options: Mapping[str, Any] = paper_table.options
    return Job(paper_table, "probe", datasets, tuple(rows), options, (), Results(results))


def row_job(
    kind: str,
    results: Path,
    runs: Mapping[str, Sequence[RunRecord | None]],
    dataset: DatasetSettings | None = None,
    **changes: Any,
) -> Job:
    """Return a job on the paper's dataset "Toys".

    Args:
        kind: of the paper table.
        results: the results folder.
        runs: label of a row → its runs; None: not finished.
        dataset: settings of the texts that are read.
        changes: fields of the paper table.
    """
    rows = {label: PaperRow(published={"system": label}) for label in runs}
    fields = {"kind": kind, "datasets": {"Toys": {}}, "rows": rows, **changes}
    return paper_job(toy_paper_table(**fields), results, runs, "Toys", dataset)


def judge(monkeypatch: pytest.MonkeyPatch, learned: Learned, **models: Learned) -> None:
    """Let the gate say this about all systems, or what `models` has for a model."""

    def gate(rows: Sequence[ResultRow], scores: ScoresOfRuns) -> dict[str, Learned]:
        return {row.key: models.get(row.representative.key.model, learned) for row in rows}

    monkeypatch.setattr(published_rows, "gate_rows", gate)


def run_row(results: Path, *words: object) -> RunRecord:
    """Run a point as typed, without baselines; return the record of the run that finished last."""
    assert main(["run", *map(str, words), f"results_dir={results}", "baselines=false"]) == 0
    last = max(results.glob("runs/*/*/*/record.json"), key=lambda path: path.stat().st_mtime_ns)
    return RunRecord.read(last.parent)


SOURCES = {"seal": "zhao2020seal", "pagesum": "liu2022pagesum", "hierarchical": "liu2019hiersumm"}


def analysis_job(
    name: str,
    datasets: Mapping[str, DatasetSettings],
    options: Mapping[str, Any],
    claims: Sequence[PaperClaim] = (),
    typed: Mapping[str, Any] | None = None,
) -> Job:
    """Return the job of the paper table "pagesum-table4" at scale "small"; typed options replace the defaults."""
    paper, _, short = name.partition("-")
    prints = f"{short[:-1].capitalize()} {short[-1]}"
    paper_table = PaperTable(
        kind="any",
        title="any",
        default="small",
        scales={"small": "scale=small", "paper": "scale=paper"},
        datasets={dataset: {"small": "dataset=jsonl"} for dataset in datasets},
        rows={},
        claims=tuple(claims),
        options=options,
        name=name,
        prints=prints,
        source=SOURCES[paper],
    )
    return Job(
        paper_table,
        "small",
        datasets,
        (),
        {**options, **(typed or {})},
        (),
        Results(Path("results")),
    )


def write_texts(
    folder: Path, splits: Mapping[str, Sequence[Mapping[str, object]]]
) -> DatasetSettings:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in splits.items():
        numbered = ({"id": f"{name}-{n}", **row} for n, row in enumerate(rows))
        write_rows(folder / f"{name}.jsonl", numbered)
    return DatasetSettings(name="jsonl", path=str(folder))
