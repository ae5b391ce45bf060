"""Jobs of paper tables that are analyses, made by hand, and small texts for them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longsumbench.core import DatasetSettings
from longsumbench.papers.page import Job, RowRuns
from longsumbench.papers.paper_tables import Ordering, PaperRow, PaperTable
from longsumbench.runs.results import Results

SOURCES = {"seal": "zhao2020seal", "pagesum": "liu2022pagesum", "hierarchical": "liu2019hiersumm"}


def analysis_job(
    name: str,
    datasets: Mapping[str, DatasetSettings],
    options: Mapping[str, Any],
    results: Path = Path("results"),
    rows: Mapping[str, PaperRow] | None = None,
    orderings: Sequence[Ordering] = (),
    runs: Sequence[RowRuns] = (),
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
        rows=rows or {},
        orderings=tuple(orderings),
        options=options,
        name=name,
        prints=prints,
        source=SOURCES[paper],
    )
    return Job(paper_table, "small", datasets, tuple(runs), {**options, **(typed or {})}, (), Results(results))


def write_texts(folder: Path, splits: Mapping[str, Sequence[Mapping[str, object]]]) -> DatasetSettings:
    """Write a dataset of JSON lines; return its settings."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in splits.items():
        lines = "".join(json.dumps({"id": f"{name}-{n}", **row}) + "\n" for n, row in enumerate(rows))
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return DatasetSettings(name="jsonl", path=str(folder))
