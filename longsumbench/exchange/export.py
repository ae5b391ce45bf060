"""`longsumbench export`: runs in the format of Every Eval Ever or the Hugging Face hub, tables as CSV or LaTeX."""

import hashlib
import json
import math
import re
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from longsumbench.cache.hub import HUB_NAME
from longsumbench.exchange.model_card import hub_files, hub_texts, shared_command, shared_numbers
from longsumbench.files import write_atomically
from longsumbench.formatting import format_count
from longsumbench.leaderboards.table import find_datasets, read_table
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import SHORT_ID, RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import collect_settings, hide_folders
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
    finished = f"{datetime.fromisoformat(record.finished).timestamp():.0f}"
    model = _describe_model(record)
    details = {"command": shared_command(record), "run": record.run_id}
    if record.imported:
        details = {"outputs": record.imported.origin or record.imported.file, **details}
    is_ours = not (record.imported or record.zero_shot)
    results = [_describe_result(record, *item) for item in shared_numbers(record).items()]
    return {
        "schema_version": "0.3.0",
        "evaluation_id": f"longsumbench.{record.key.dataset}.{record.run_id}/{model['id']}/{finished}",
        "evaluation_timestamp": record.finished,
        "retrieved_timestamp": finished,
        "source_metadata": {
            "source_name": "longsumbench",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "first_party" if is_ours else "third_party",
            "additional_details": details,
        },
        "eval_library": {"name": "longsumbench", "version": record.environment.longsumbench},
        "model_info": model,
        "evaluation_results": results,
    }


def _describe_model(record: RunRecord) -> dict[str, Any]:
    checkpoint = record.system.checkpoint or ""
    on_hub, served = bool(HUB_NAME.fullmatch(checkpoint)), record.system.engine == "api"
    own_name = f"longsumbench/{_file_name(record.key.model)}"
    deployment = "externally_managed" if served else "self_deployed"
    details = {
        "deployment_type": "unknown" if record.imported else deployment,
        "model_availability": "open_weights" if on_hub and not served else "unknown",
    }
    if checkpoint:
        details |= {"checkpoint": checkpoint, "revision": record.system.revision or "unknown"}
    if record.key.seed is not None:
        details["seed"] = f"{record.key.seed}"
    return {
        "name": record.key.model,
        "id": checkpoint if record.zero_shot and on_hub else own_name,
        "additional_details": {**details, "variant": record.variant},
    }


def _describe_texts(record: RunRecord) -> dict[str, Any]:
    repository, revision = hub_texts(record) or (None, "unknown")
    source: dict[str, Any] = {"source_type": "other"}
    if repository:
        size = record.evaluation.n
        source = {"source_type": "hf_dataset", "hf_repo": repository, "samples_number": size}
    elif record.texts.homepage:
        source = {"source_type": "url", "url": [record.texts.homepage]}
    details = {
        "split": record.key.split,
        "fingerprint": record.key.fingerprint,
        "revision": revision,
        "licence": record.texts.licence or "unknown",
    }
    return {"dataset_name": record.key.dataset, **source, "additional_details": details}


def _describe_result(record: RunRecord, name: str, number: Estimate) -> dict[str, Any]:
    """Return a score of a run with its interval, how it was computed, and the settings of the run."""
    score: dict[str, Any] = {"score": number.mean / 100}
    uncertainty: dict[str, Any] = {}
    if not math.isnan(number.low):
        uncertainty["confidence_interval"] = {
            "lower": number.low / 100,
            "upper": number.high / 100,
            "confidence_level": 0.95,
            "method": "bootstrap over examples",
        }
    if rouge := record.evaluation.scores.get(name):
        metric_id, metric_name = name.replace("rouge", "rouge-").lower(), f"{name} F1"
        score["details"] = {"precision": f"{rouge.p / 100}", "recall": f"{rouge.r / 100}"}
        uncertainty["num_samples"] = record.evaluation.n
    else:
        metric_id, metric_name = f"longsumbench.{name}", name
        uncertainty["num_samples"] = record.evaluation.measures[name].n
    generation: dict[str, Any] = {}
    if not record.imported:
        decode = record.config.decode
        generation["generation_args"] = {"temperature": decode.temperature, "top_p": decode.top_p}
    generation["additional_details"] = dict(sorted(collect_settings(record).items()))
    return {
        "evaluation_result_id": f"{record.run_id}/{name}",
        "evaluation_name": f"longsumbench.{record.key.dataset}",
        "source_data": _describe_texts(record),
        "metric_config": {
            "metric_id": metric_id,
            "metric_name": metric_name,
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
            "additional_details": {"signature": record.evaluation.signature},
        },
        "score_details": {**score, "uncertainty": uncertainty},
        "generation_config": generation,
    }


def _file_name(name: str) -> str:
    """Return a name that any file system accepts."""
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "_"
