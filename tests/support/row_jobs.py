"""Jobs of `longsumbench paper` for kinds that read the files of runs: outputs, evidence and texts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from longsumbench.cli.main import main
from longsumbench.core import DatasetSettings, RunConfig
from longsumbench.papers.page import Job, RowRuns
from longsumbench.papers.paper_tables import Ordering, PaperRow, PaperTable
from longsumbench.runs.plan import Planned
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results


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
        changes: fields of the paper table; `options` are also those of the job.
    """
    rows = {label: PaperRow(published={"system": label}) for label in runs}
    facts = {"title": "t", "default": "probe", "scales": {}, "datasets": {"Toys": {}}, "rows": rows}
    about = {"name": "toys-table1", "prints": "Table 1", "source": "toys", "citation": "Toy 2020, TOYS"}
    orderings = tuple(Ordering(claim) for claim in changes.pop("orderings", ()))
    paper_table = PaperTable(**{"kind": kind, **facts, **about, "orderings": orderings, **changes})
    config = RunConfig(model=None)  # the system is not built
    config = replace(config, decode=replace(config.decode, reference_evidence=True))
    point = Planned("a point", config, "", "")
    found = tuple(
        RowRuns(label, rows[label], "Toys", (point,) * len(several), tuple(several)) for label, several in runs.items()
    )
    datasets = {"Toys": dataset or DatasetSettings("arxiv")}
    return Job(paper_table, "probe", datasets, found, paper_table.options, (), Results(results))


def run_row(results: Path, *words: object) -> RunRecord:
    """Run a point as typed, without baselines; return the record of the run that finished last."""
    assert main(["run", *map(str, words), f"results_dir={results}", "baselines=false"]) == 0
    last = max(results.glob("runs/*/*/*/record.json"), key=lambda path: path.stat().st_mtime_ns)
    return RunRecord.read(last.parent)
