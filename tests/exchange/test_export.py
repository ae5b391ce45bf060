"""`longsumbench export`: fields by hand, the schema of Every Eval Ever, the hub's own readers, names with odd signs."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # not annotated
from huggingface_hub import ModelCard, parse_eval_result_entries
from support.commands import Command
from support.paths import ROOT
from support.run_records import TRAINED, changed, measured, record

from longsumbench.exchange.export import evaluation_log
from longsumbench.exchange.model_card import hub_files, shared_command
from longsumbench.metrics.aggregate import MeasureMean
from longsumbench.runs.record import ImportedOutputs, RunRecord

HUB_TEXTS = {
    "source": "ccdv/pubmed-summarization@0123abc",
    "examples": {"test": 20},
    "licence": "unknown",
}
ODD = "a|b `<i>*x*_y: #z"


# Part of a log → its keys in the schema; those with a question mark may be missing
KEYS = {
    "": "schema_version evaluation_id evaluation_timestamp retrieved_timestamp source_metadata "
    "eval_library model_info evaluation_results",
    "source_metadata": "source_name source_type source_organization_name evaluator_relationship "
    "additional_details",
    "eval_library": "name version",
    "model_info": "name id additional_details",
    "evaluation_results": "evaluation_result_id evaluation_name source_data metric_config "
    "score_details generation_config",
    "source_data": "source_type dataset_name additional_details hf_repo? samples_number? url?",
    "metric_config": "metric_id metric_name metric_unit lower_is_better score_type min_score "
    "max_score additional_details",
    "score_details": "score uncertainty details?",
    "uncertainty": "num_samples confidence_interval?",
    "confidence_interval": "lower upper confidence_level method",
    "generation_config": "additional_details generation_args?",
    "generation_args": "temperature top_p",
}
# Key → its allowed values
CHOICES = {
    "schema_version": "0.3.0",
    "source_type": "documentation evaluation_run hf_dataset url other",
    "evaluator_relationship": "first_party third_party collaborative other",
    "deployment_type": "self_deployed externally_managed unknown",
    "model_availability": "open_weights closed_weights unknown",
    "score_type": "continuous",
}


def check_part(name: str, part: dict[str, Any]) -> None:
    """Check the keys, the choices and the texts of a part of a log, and of the parts in it."""
    keys = KEYS[name].split() if name in KEYS else []
    if keys:
        assert part.keys() <= {key.removesuffix("?") for key in keys}
        assert {key for key in keys if not key.endswith("?")} <= part.keys()
    for key, value in part.items():
        if key in CHOICES:
            assert value in CHOICES[key].split()
        if isinstance(value, dict):
            check_part(key, value)
        elif isinstance(value, list) and key in KEYS:
            for item in value:
                check_part(key, item)
        else:
            assert keys or isinstance(value, str)


def check_log(log: dict[str, Any]) -> dict[str, Any]:
    """Check a log by the types above; return it."""
    check_part("", log)
    for result in log["evaluation_results"]:
        config = result["metric_config"]
        assert config["min_score"] <= result["score_details"]["score"] <= config["max_score"]
    return log


def result_of(log: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the result of a measure."""
    (found,) = (
        row for row in log["evaluation_results"] if row["evaluation_result_id"].endswith(f"/{name}")
    )
    return dict(found)


def write_runs(folder: Path, *records: RunRecord) -> Path:
    """Write runs into a results folder."""
    for run in records:
        run.write(folder / "runs" / run.key.dataset / run.key.model / run.run_id)
    return folder


def test_the_fields_of_a_log_by_hand() -> None:
    """By hand: 40 with the interval 39 to 40.6 is 0.4, 0.39 to 0.406; the times are those of the run's end."""
    log = check_log(evaluation_log(record("trunc", 40.0, fit=TRAINED, seed=3)))
    assert log["retrieved_timestamp"] == "1767225600"  # 2026-01-01T00:00:00Z
    assert log["evaluation_id"] == "longsumbench.arxiv.trunc0000000/longsumbench/trunc/1767225600"
    assert log["source_metadata"]["evaluator_relationship"] == "first_party"
    assert log["model_info"]["additional_details"]["seed"] == "3"
    result = result_of(log, "rougeLsum")
    score = result["score_details"]
    assert score["score"] == pytest.approx(0.4)
    assert score["uncertainty"]["num_samples"] == 20
    interval = score["uncertainty"]["confidence_interval"]
    assert [interval[name] for name in ("lower", "upper", "confidence_level")] == pytest.approx(
        [0.39, 0.406, 0.95]
    )
    details = {name: float(value) for name, value in score["details"].items()}
    assert details == pytest.approx({"precision": 0.5, "recall": 0.35})
    assert result["metric_config"]["metric_id"] == "rouge-lsum"
    assert result["evaluation_name"] == "longsumbench.arxiv"
    assert result["source_data"]["source_type"] == "other"
    assert result["generation_config"]["additional_details"]["train.max_steps"]


def test_measures_of_which_more_is_better() -> None:
    """Descriptions of outputs, which have no better side, are left out; an unknown interval is left out."""
    measures = measured({"fact_recall": 50.0, "entity_precision": 90.0, "copied_bigrams": 70.0})
    measures["number_precision"] = MeasureMean(75.0, math.nan, math.nan, 1)
    log = check_log(evaluation_log(record("seal", 40.0, dataset="probe", measures=measures)))
    names = [row["evaluation_result_id"].partition("/")[2] for row in log["evaluation_results"]]
    assert names[4:] == ["fact_recall", "entity_precision", "number_precision"]
    assert result_of(log, "fact_recall")["metric_config"]["metric_id"] == "longsumbench.fact_recall"
    score = result_of(log, "number_precision")["score_details"]
    assert score == {"score": 0.75, "uncertainty": {"num_samples": 1}}


def test_who_made_the_outputs() -> None:
    """Imported outputs and checkpoints of others are not ours; a server is not deployed by us."""
    imported = record("theirs", 30.0, imported=ImportedOutputs("out.jsonl", "ab", "a paper"))
    checkpoint = record(
        "seq2seq", 30.0, system={"checkpoint": "facebook/bart-large-cnn", "revision": "ab"}
    )
    served = record("prompt", 30.0, system={"checkpoint": "some-model", "engine": "api"})
    logs = [check_log(evaluation_log(run)) for run in (imported, checkpoint, served)]
    assert {log["source_metadata"]["evaluator_relationship"] for log in logs} == {"third_party"}
    assert logs[0]["source_metadata"]["additional_details"]["outputs"] == "a paper"
    assert "generation_args" not in result_of(logs[0], "rouge1")["generation_config"]
    names = ["longsumbench/theirs", "facebook/bart-large-cnn", "longsumbench/prompt"]
    assert [log["model_info"]["id"] for log in logs] == names
    details = [log["model_info"]["additional_details"] for log in logs]
    assert [(entry["deployment_type"], entry["model_availability"]) for entry in details] == [
        ("unknown", "unknown"),
        ("self_deployed", "open_weights"),
        ("externally_managed", "unknown"),
    ]


def test_packed_reference_runs_fit_the_schema(tmp_path: Path, run_command: Command) -> None:
    """Two datasets with baselines, trained systems and imported outputs; a second export has the same bytes."""
    words = f"export pubmed qmsum --format eee --results-dir {ROOT / 'results' / 'reference'}"
    contents = []
    for name in ("once", "again"):
        folder = tmp_path / name
        printed = run_command(0, *words.split(), "--output", folder).out
        paths = sorted(folder.rglob("*.json"))
        contents.append({path.relative_to(folder).as_posix(): path.read_bytes() for path in paths})
    assert contents[0] == contents[1]
    assert printed.splitlines()[-1] == f"31 runs → {folder}"
    logs = [check_log(json.loads(content)) for content in contents[0].values()]
    assert len(logs) == len({log["evaluation_id"] for log in logs}) == 31
    for path, log in zip(contents[0], logs, strict=True):
        assert path.startswith(f"data/longsumbench/{log['model_info']['id']}/")


def test_the_hub_reads_what_is_written_for_it(tmp_path: Path, run_command: Command) -> None:
    """The hub's library reads scores, dataset and revision; texts that are not from the hub are named once."""
    listed = record("seal", 40.0, dataset="pubmed", texts=HUB_TEXTS)
    results = write_runs(tmp_path / "results", listed, record("lead", 30.0), record("random", 20.0))
    words = ["--format", "hub", "--results-dir", str(results)]
    output = run_command(0, "export", "pubmed", "lead0", *words)
    folder = results / "export" / "hub"
    reason = "no .eval_results for arxiv: these texts were not read from a dataset on the hub"
    assert output.out.splitlines() == [reason, f"2 runs → {folder}"]
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    scores = "seal-seal0000/.eval_results/longsumbench.yaml"
    assert files == {"lead-lead0000/README.md", "seal-seal0000/README.md", scores}
    written = yaml.safe_load((folder / scores).read_text())
    entries = parse_eval_result_entries(written)
    values = {entry.task_id: entry.value for entry in entries}
    assert values == {"rouge1": 43.0, "rouge2": 31.0, "rougeL": 35.0, "rougeLsum": 40.0}
    assert {(entry.dataset_id, entry.dataset_revision, entry.date) for entry in entries} == {
        ("ccdv/pubmed-summarization", "0123abc", listed.finished)
    }


def test_odd_names_stay_text(tmp_path: Path) -> None:
    """A name with signs of Markdown, YAML, HTML and JSON changes no table, key or folder."""
    texts, command = {**HUB_TEXTS, "licence": ODD}, ("longsumbench", ODD)
    odd = record(ODD, 40.0, dataset="pubmed", texts=texts, command=command)
    odd = changed(odd, run_id="0123456789ab", variant=ODD, signature=ODD)
    model = check_log(evaluation_log(odd))["model_info"]
    assert (model["name"], model["id"]) == (ODD, "longsumbench/a_b_i_x__y_z")
    files = hub_files(odd, "OWNER/name")
    usual = hub_files(record("plain", 40.0, dataset="pubmed", texts=HUB_TEXTS), "OWNER/name")
    card, plain = ModelCard(files["README.md"]), ModelCard(usual["README.md"])
    assert "<i>" not in card.text.replace(shared_command(odd), "")
    for start in ("\n|", "\n```\n"):
        assert card.text.count(start) == plain.text.count(start)
    entries = yaml.safe_load(files[".eval_results/longsumbench.yaml"])
    assert all(entry["notes"].endswith(ODD) for entry in entries)


def test_tables_are_those_of_the_leaderboard(tmp_path: Path, run_command: Command) -> None:
    """Byte for byte; the paths are printed."""
    results = write_runs(tmp_path / "results", record("lead", 30.0), record("random", 20.0))
    place = ("--results-dir", results)
    run_command(0, "leaderboard", *place)
    for kind, ending in (("csv", "csv"), ("latex", "tex")):
        path = tmp_path / "out" / f"arxiv.{ending}"
        words = ("export", "arxiv", "--format", kind, "--output", path.parent)
        assert run_command(0, *words, *place).out == f"{path}\n"
        assert path.read_bytes() == (results / "leaderboard" / path.name).read_bytes()


def test_a_file_is_no_folder(here: Path, run_command: Command) -> None:
    """The line says how to choose another folder."""
    write_runs(here / "results", record("lead", 30.0))
    (here / "taken").write_text("")
    output = run_command(4, "export", "--format", "eee", "--output", "taken")
    assert "choose another folder by --output" in output.err
