"""Run ids, records, atomic files, and the layout of a results folder."""

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from support.json_files import change_json, read_json, write_json
from support.paths import ROOT
from support.run_records import changed, measured, record

from longsumbench.core import Cut, FitReport, Truncation
from longsumbench.errors import DataError, UsageError
from longsumbench.files import write_atomically
from longsumbench.metrics.evaluate import CheckpointMeans
from longsumbench.metrics.output_stats import OutputStats
from longsumbench.runs.record import ImportedOutputs, RunRecord, output_problems
from longsumbench.runs.results import Results

RECORD = changed(
    record(
        "lead",
        30,
        source=Truncation(10, 8, (Cut("length", 2, 1),)),
        measures=measured({"recall": 50.0}),
    ),
    run_id="7825224a5014",
    dataset="aclsum",
    outputs=OutputStats(3, 3, 3, 0),
    checkpoints=(CheckpointMeans(2, 0.5, {"rouge1_f": 30.0}),),
    fit=FitReport(steps=2, validation_losses=((1, 2.0), (2, 1.5)), targets=Truncation(5, 4)),
)


def finished(results: Results, run_id: str, dataset: str = "aclsum", model: str = "lead") -> Path:
    folder = results.root / "runs" / dataset / model / run_id
    changed(RECORD, run_id=run_id, dataset=dataset, model=model).write(folder)
    return folder


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    """What is read equals what was written."""
    RECORD.write(tmp_path)
    assert RunRecord.read(tmp_path) == RECORD


DAMAGED = """
{"fit": {"steps": null}} → Expected `int`, got `null` - at `$.fit.steps`
{"evaluation": {"scores": {}}} → scores has no rouge1
{"evaluation": {"ranked_by": "x"}} → ranked_by='x' was not measured
"""


@pytest.mark.parametrize("line", DAMAGED.strip().splitlines())
def test_a_damaged_field_is_named(line: str, tmp_path: Path) -> None:
    """A record with a wrong value is one clear line."""
    changes, problem = line.split(" → ")
    RECORD.write(tmp_path)
    path = tmp_path / "record.json"
    values = read_json(path)
    for name, change in json.loads(changes).items():
        values[name] |= change
    write_json(path, values)
    with pytest.raises(DataError, match=re.escape(f"{path}: not a run's record ({problem}")):
        RunRecord.read(tmp_path)


def test_other_fields_are_dropped(tmp_path: Path) -> None:
    """A field that no longer exists is left out; a file cannot say that its run is verified: tables look at the files."""
    RECORD.write(tmp_path)
    change_json(tmp_path / "record.json", cross_check=1, verified=True)
    assert RunRecord.read(tmp_path) == RECORD


def test_settings_and_metadata_of_plugins_are_kept(tmp_path: Path) -> None:
    """A record of a system and a dataset that are not installed is read and written unchanged."""
    run = record(
        "gone",
        30,
        config={"model": {"depth": 3}},
        texts={"licence": "none", "examples": {"train": 7}, "years": [1, 2]},
    )
    run.write(tmp_path)
    stored = RunRecord.read(tmp_path)
    assert stored == run
    assert (stored.config.model["depth"], stored.texts.more) == (3, {"years": [1, 2]})


def test_every_committed_record_is_read() -> None:
    """The committed records, the oldest included, have the shape that is checked."""
    committed = Results(ROOT / "results/reference").run_folders()
    assert len(committed) > 100
    assert [RunRecord.read(folder).run_id for folder in committed] == [
        folder.name for folder in committed
    ]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_content(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When writing fails half-way the old file stays and nothing else is left next to it."""

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "record.json"
    write_atomically(path, "old")
    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            "ab",
            "2 runs are called 'ab': abc111 (lead on aclsum), abd222 (lead on aclsum); type the id of one",
        ),
        (
            "lead",
            "2 runs are called 'lead': abc111 (lead on aclsum), abd222 (lead on aclsum); type",
        ),
        ("a*1", "no finished run is called 'a*1'"),
    ],
)
def test_a_run_that_is_not_meant_clearly_is_an_error(
    run: str, message: str, tmp_path: Path
) -> None:
    """RUN is a folder, an id, a prefix that only one id has, or a model with one run; a pattern is no name."""
    results = Results(tmp_path)
    folder = finished(results, "abc111")
    assert results.find("lead") == folder
    finished(results, "abd222")
    assert [results.find(name) for name in (str(folder), "abc111", "abc")] == [folder] * 3
    with pytest.raises(UsageError, match=re.escape(message)):
        results.find(run)


def test_only_finished_runs_are_listed(tmp_path: Path) -> None:
    """Records come sorted by model and id; a folder without a record is no run, and its dataset is not listed."""
    results = Results(tmp_path)
    for run_id, model in (("b", "random"), ("a", "random"), ("c", "lead")):
        finished(results, run_id, model=model)
    (tmp_path / "runs" / "arxiv" / "lead" / "d").mkdir(parents=True)
    assert [one.run_id for one in results.records("aclsum")] == ["c", "a", "b"]
    assert results.datasets() == ["aclsum"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"fit": FitReport(steps=5)}, True),
        ({"system": {"checkpoint": "a/model", "engine": "api"}}, False),
        ({"imported": ImportedOutputs("out.jsonl", "0"), "fit": FitReport(steps=5)}, False),
    ],
)
def test_the_remedy_for_loops_is_named_where_it_works(changes: dict[str, Any], named: bool) -> None:
    """`decode.no_repeat_ngram` is named for a model that wrote here without it: no server, and no import."""
    outputs = OutputStats(count=20, compared=20, distinct=20, repetitive=0, loops=8)
    run = record("trunc", 10, outputs=outputs, outputs_cut=0, **changes)
    (line,) = output_problems(run, outputs)
    assert line.startswith("8 of 20 outputs repeat more than 30 %")
    assert ("decode.no_repeat_ngram" in line) == named
