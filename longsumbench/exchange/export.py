"""`longsumbench export`: runs in the format of Every Eval Ever or the Hugging Face hub, tables as CSV or LaTeX."""

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from longsumbench.cache.hub import HUB_NAME
from longsumbench.exchange.model_card import (
    hub_files,
    hub_texts,
    shared_command,
    shared_numbers,
)
from longsumbench.files import write_atomically
from longsumbench.formatting import format_count
from longsumbench.leaderboards.table import find_datasets, read_table
from longsumbench.runs.record import SHORT_ID, RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import collect_settings, hide_folders
from longsumbench.views.html import render_part
from longsumbench.views.leaderboard import TableView


def export_runs(
    results: Results, words: Sequence[str], kind: str, folder: Path
) -> Iterator[object]:
    """Write runs as "eee" or "hub", or tables as "csv" or "latex"; yield lines that say what was written.

    `words` are datasets and, of "eee" and "hub", also runs; all datasets if there are none.

    Raises:
        UsageError: there are no runs, or a word is neither a dataset with runs nor a run.
        DataError: a record is damaged.
        EnvironmentProblem: huggingface_hub is too old.
    """
    words = words or find_datasets(results)
    if kind in ("csv", "latex"):
        for (dataset,) in [find_datasets(results, word) for word in words]:
            path = folder / f"{dataset}.{kind.replace('latex', 'tex')}"
            view = TableView(read_table(results, dataset))
            write_atomically(path, view.csv() if kind == "csv" else view.latex())
            yield path
        return
    datasets, records = results.datasets(), dict[str, RunRecord]()
    for word in words:
        chosen = results.records(word) if word in datasets else [RunRecord.read(results.find(word))]
        records |= {record.run_id: hide_folders(record) for record in chosen}
    for record in records.values():
        if kind == "eee":
            name, text = _log_file(record)
            write_atomically(folder / name, text)
        else:
            place = f"{_file_name(record.key.model)}-{record.run_id[:SHORT_ID]}"
            for name, content in hub_files(record, f"OWNER/{place}").items():
                write_atomically(folder / place / name, content)
    unlisted = [record.key.dataset for record in records.values() if not hub_texts(record)]
    if kind == "hub" and unlisted:
        names = ", ".join(dict.fromkeys(unlisted))
        yield f"no .eval_results for {names}: these texts were not read from a dataset on the hub"
    yield f"{format_count(len(records), 'run')} → {folder}"


def _log_file(record: RunRecord) -> tuple[str, str]:
    """Return path and content of a run's log, in the folders of Every Eval Ever; the same run has the same file."""
    log = evaluation_log(record)
    name = uuid.UUID(hashlib.sha256(log["evaluation_id"].encode()).hexdigest()[:32], version=4)
    text = json.dumps(log, indent=1, ensure_ascii=False, allow_nan=False)
    return f"data/longsumbench/{log['model_info']['id']}/{name}.json", f"{text}\n"


def evaluation_log(record: RunRecord) -> dict[str, Any]:
    """Return a run as a log of Every Eval Ever (eval.schema.json 0.3.0), where shares are 0–1."""
    checkpoint = record.system.checkpoint or ""
    on_hub = HUB_NAME.fullmatch(checkpoint)
    model = f"longsumbench/{_file_name(record.key.model)}"
    text = render_part(
        "every_eval_ever.json",
        record=record,
        model=checkpoint if record.zero_shot and on_hub else model,
        on_hub=on_hub,
        finished=f"{datetime.fromisoformat(record.finished).timestamp():.0f}",
        numbers=shared_numbers(record),
        texts=hub_texts(record),
        command=shared_command(record),
        settings=collect_settings(record),
    )
    log: dict[str, Any] = json.loads(text)
    return log


def _file_name(name: str) -> str:
    """Return a name that any file system accepts."""
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "_"
