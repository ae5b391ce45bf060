"""One run: what decides its id, what is found again, what its record says."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # not annotated
from support.json_files import read_json, read_rows, write_rows
from support.processes import start_command
from support.toys import TINY, tiny_recipe, toy_words, write_jsonl
from support.watching import Watching, with_watching

from longsumbench.cache.artifacts import CACHE_VARIABLE, ArtifactCache, cache_folder
from longsumbench.core import (
    DatasetSettings,
    Decoding,
    RunConfig,
    Scoring,
    build_settings,
    registry,
)
from longsumbench.corpora.loading.load import load_texts
from longsumbench.runs import pipeline
from longsumbench.runs.evidence import read_stored_inputs, stored_indices
from longsumbench.runs.pipeline import build_run_key, run_point, score_baselines
from longsumbench.runs.plan import PlannedRun
from longsumbench.runs.record import RecordedConfig, RunRecord
from longsumbench.runs.results import Results, read_run_config, write_run_config

PREDICTIONS = "predictions.jsonl"


def configured(folder: Path, model: str = "lead", **changes: Any) -> RunConfig:
    """Return a configuration that takes seconds; results go next to the dataset."""
    schema = registry.systems.load(model).Config
    settings = TINY if model == "trunc" else {}
    config = RunConfig(
        build_settings(schema, settings, "model."),
        DatasetSettings("jsonl", str(folder)),
        tiny_recipe(max_steps=4),
        Decoding(batch_size=4, max_length=10, device="cpu"),
        Scoring(resamples=100),
        results_dir=str(folder.parent / "results"),
    )
    return replace(config, **changes)


def run_id(config: RunConfig) -> str:
    """Return the id of the run that a configuration means."""
    texts = load_texts(config.dataset, ArtifactCache(cache_folder()))
    return build_run_key(config, texts).run_id


def write_test_rows(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Replace the test split of a dataset."""
    write_rows(folder / "test.jsonl", rows)


def find_folder(config: RunConfig, record: RunRecord) -> Path:
    """Return a finished run's folder."""
    return Results(Path(config.results_dir)).find(record.run_id)


def with_baselines(point: PlannedRun) -> list[RunRecord]:
    """Do a run and those of the baselines that are not the run itself, as the command does."""
    return [run_point(point), *score_baselines(point, set())]


@pytest.mark.parametrize("model", ["lead", "trunc"])
def test_where_and_how_fast_does_not_decide(model: str, toy: Path, tmp_path: Path) -> None:
    """Device, workers, results folder, the same texts elsewhere, and what is done next to a run, leave its id alone."""
    config = configured(toy, model)
    other = replace(
        config,
        device="cuda",
        train=replace(config.train, device="cuda", workers=3),
        decode=replace(config.decode, device="cuda", evidence="all", reference_evidence=True),
        results_dir=str(tmp_path / "elsewhere"),
        dataset=replace(config.dataset, path=str(write_jsonl(tmp_path / "copy"))),
        overwrite=True,
        baselines=False,
    )
    assert run_id(other) == run_id(config)


@pytest.mark.parametrize(
    ("model", "decided_by"),
    [
        ("lead", set()),
        ("random", {"seed", "decode.seed"}),
        ("trunc", {"seed", "decode.seed", "train.max_steps", "decode.num_beams"}),
    ],
)
def test_what_decides_a_run(model: str, decided_by: set[str], toy: Path) -> None:
    """Another split, number of examples or scoring for every system; seed, recipe and search where it depends on them."""
    config = configured(toy, model)
    changes: dict[str, Any] = {
        "dataset.split": "validation",
        "decode.limit": 3,
        "score.mode": "perl",
        "dataset.limit": 5,
    }
    always = set(changes)
    changes |= {"decode.seed": 9, "train.max_steps": 5, "decode.num_beams": 2}
    others = {"seed": replace(config, seed=2)}
    for key, value in changes.items():
        section, _, name = key.partition(".")
        wordnet = {"wordnet": "none"} if section == "score" else {}
        settings = replace(vars(config)[section], **{name: value}, **wordnet)
        others[key] = replace(config, **{section: settings})
    differing = {name for name, other in others.items() if run_id(other) != run_id(config)}
    assert differing == decided_by | always
    settings_hash = PlannedRun(config).settings_hash
    differing = {name for name in others if PlannedRun(others[name]).settings_hash != settings_hash}
    assert differing >= decided_by


@pytest.mark.parametrize("model", registry.systems.targets())
def test_a_configuration_is_read_as_it_was_written(model: str, tmp_path: Path) -> None:
    """Settings of every system, and unusual values, are the same in the process that reads `config.yaml`."""
    dataset = DatasetSettings("jsonl", path="/texts/${x}/ é", limit=3)
    config = RunConfig(registry.systems.load(model).Config(), dataset, seed=7, timeout_minutes=0.1)
    config.score.metrics = ["fact_recall"]
    write_run_config(config, tmp_path)
    assert read_run_config(tmp_path) == config


def test_a_trained_run_is_complete(toy: Path) -> None:
    """Its record says what it was, on which texts and at what cost; its files are in the data's order."""
    config = configured(toy, "trunc", seed=3)
    record = run_point(PlannedRun(config, variant="x=1", command=("longsumbench", "run")))
    folder = find_folder(config, record)
    written = read_json(folder / "record.json")
    assert {**written, "verified": None} == json.loads(json.dumps(asdict(record)))
    key = record.key
    assert (key.model, key.dataset, key.split, key.seed) == ("trunc", "jsonl", "test", 3)
    assert (record.variant, record.command) == ("x=1", ("longsumbench", "run"))
    assert record.config == RecordedConfig.of(config)
    timings = record.costs.timings
    assert timings.total >= timings.fit + timings.summarize + timings.score > 0
    fit = record.fit
    assert (fit.steps, fit.examples, fit.ended_by) == (4, 32, "max_steps")
    assert record.ledger.source is not None
    assert record.ledger.source.tokens > record.ledger.source.words > 0
    assert (record.costs.peak_memory_gb or 0) > 0.01
    ids = [row["id"] for row in read_rows(toy / "test.jsonl")]
    assert [row["id"] for row in read_rows(folder / PREDICTIONS)] == ids
    scores = (folder / "scores.csv").read_text().splitlines()
    assert [line.partition(",")[0] for line in scores] == ["id", *ids]
    assert yaml.safe_load((folder / "config.yaml").read_text()) == asdict(config)


def test_copied_words_are_counted(toy: Path) -> None:
    """Of a system without weights: Lead has seen only what it copies, LexRank all of the source; others write."""
    lead, lexrank, trunc = (
        run_point(PlannedRun(configured(toy, model))) for model in ("lead", "lexrank", "trunc")
    )
    assert lead.ledger.words_copied == lead.ledger.source.words_seen < lead.ledger.source.words  # type: ignore[union-attr]
    words, seen = lexrank.evaluation.outputs, lexrank.ledger.source
    assert words is not None
    assert seen is not None
    assert lexrank.ledger.words_copied == words.words * lexrank.evaluation.n < seen.words_seen
    assert trunc.ledger.words_copied is None


def test_the_second_time_nothing_is_done(
    toy: Path, monkeypatch: pytest.MonkeyPatch, log_lines: list[str]
) -> None:
    """A finished run is found, said in one line, and none of its files is touched."""
    config = configured(toy)
    first = PlannedRun(config)
    record = run_point(first)
    monkeypatch.setattr(pipeline, "_carry_out", lambda *_: pytest.fail("done again"))
    again = PlannedRun(config)
    assert run_point(again).run_id == record.run_id
    assert log_lines == [f"already finished: lead on jsonl, {find_folder(config, record)}"]
    assert (first.carried_out, again.carried_out) == (True, False)


def test_a_name_decides_nothing(toy: Path) -> None:
    """A finished run that is named, or renamed, keeps its id and its outputs."""
    config, names, runs = configured(toy), [], set()
    for name in (None, "short one", "nine", None):
        record = run_point(PlannedRun(replace(config, name=name)))
        names.append(RunRecord.read(find_folder(config, record)).config.name)
        runs.add((record.run_id, record.finished))
    assert (names, len(runs)) == ([None, "short one", "nine", "nine"], 1)


def test_overwriting_does_it_again(toy: Path, log_lines: list[str]) -> None:
    """With overwrite=true a finished run is thrown away and done again, its training too."""
    config = configured(toy, "trunc")
    folder = find_folder(config, run_point(PlannedRun(config)))
    (folder / PREDICTIONS).write_text("")
    checkpoint = (folder / "work" / "checkpoint" / "fit.json").resolve()
    before = checkpoint.stat().st_mtime_ns
    run_point(PlannedRun(replace(config, overwrite=True)))
    assert not log_lines
    assert (folder / PREDICTIONS).read_text().count("\n") == 8
    assert checkpoint.stat().st_mtime_ns > before


def test_a_record_that_came_with_a_checkout_is_no_finished_run(toy: Path) -> None:
    """Records are committed, predictions are not: where only the record exists, the run is done, to the same scores."""
    config = configured(toy)
    record = run_point(PlannedRun(config))
    (find_folder(config, record) / "predictions.jsonl").unlink()
    again = PlannedRun(config)
    assert run_point(again).evaluation.scores == record.evaluation.scores
    assert again.carried_out


def test_baselines_stand_beside_a_run(toy: Path, log_lines: list[str]) -> None:
    """The first run on a dataset brings lead, random and oracle along, on the same examples; another seed finds them."""
    config = configured(toy, "oracle")
    records = with_baselines(PlannedRun(config))
    assert [record.key.model for record in records] == ["oracle", "lead", "random"]
    assert len({record.evaluation.examples for record in records}) == 1
    again = with_baselines(PlannedRun(replace(config, seed=2)))
    assert [record.run_id for record in again] == [record.run_id for record in records]
    assert len(log_lines) == 1  # of the run itself; baselines are found without a word
    assert len(with_baselines(PlannedRun(replace(config, baselines=False)))) == 1


@pytest.mark.parametrize(
    ("model", "changes", "variant"),
    [
        ("lexrank", {"model": {"length": "3"}}, "length=3"),
        ("ea", {"decode": {"mode": "extract", "extract_length": "3"}}, "length=3"),
    ],
)
def test_baselines_are_as_long_as_their_run(
    model: str, changes: dict[str, dict[str, Any]], variant: str, toy: Path
) -> None:
    """They take the words that the run is asked for, and name them as a typed setting."""
    config = configured(toy, model)
    for section, values in changes.items():
        config = replace(config, **{section: replace(vars(config)[section], **values)})
    records = {record.key.model: record for record in score_baselines(PlannedRun(config), set())}
    variants = {name: record.variant for name, record in records.items()}
    assert variants == {"lead": variant, "random": variant, "oracle": ""}
    outputs = records["lead"].evaluation.outputs
    assert outputs is not None
    assert outputs.words == 3


def test_texts_with_queries_have_a_baseline_that_goes_by_them(
    toy: Path, log_lines: list[str]
) -> None:
    """Where examples have queries, one baseline copies what answers them; one without a query ends no run."""
    document = "Rain fell on the town. The fox left its den. Snow came later."
    row = {"id": "a", "title": None, "document": document, "summary": "The fox left."}
    asked = {**row, "query": "What did the fox do?"}
    write_test_rows(toy, [asked])
    config = configured(toy, "lead")
    config = replace(config, model=replace(config.model, length="5"))
    *_, ranker = with_baselines(PlannedRun(config))
    assert (ranker.key.model, ranker.variant) == ("ranker", "length=5,rank=bm25")
    predictions = (find_folder(config, ranker) / PREDICTIONS).read_text()
    assert json.loads(predictions)["prediction"] == "The fox left its den."
    write_test_rows(toy, [asked, {**row, "id": "b"}])
    names = [record.key.model for record in with_baselines(PlannedRun(config))]
    assert names == ["lead", "random", "oracle"]
    line = "ranker was not run with these settings: example 'b' has no title and no query"
    assert log_lines[-1].startswith(line)


def test_baselines_that_need_a_train_split_are_left_out(
    tmp_path: Path, log_lines: list[str]
) -> None:
    """Without a training split, lead and random are left out of the table, each in one line."""
    config = configured(write_jsonl(tmp_path / "toy", train=0, validation=0), "oracle")
    assert [record.key.model for record in with_baselines(PlannedRun(config))] == ["oracle"]
    assert [line.partition(":")[0] for line in log_lines] == [
        "lead was not run with these settings",
        "random was not run with these settings",
    ]


def test_two_processes_do_a_run_once(tmp_path: Path) -> None:
    """Started twice at the same time, a run is done by one process; the other waits, says so, and finds it finished."""
    words = ["run", "model=oracle", *toy_words(tmp_path), "decode.batch_size=1"]
    processes = [start_command(*words) for _ in range(2)]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    assert sum("already finished" in text for text in errors) == 1, errors
    (record,) = tmp_path.glob("results/runs/*/*/*/record.json")
    assert RunRecord.read(record.parent).evaluation.n == 8


@pytest.fixture
def watched(toy: Path, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    """A run of a system that keeps evidence, with that of two examples; each test has a cache of its own."""
    monkeypatch.setattr(registry, "systems", with_watching())
    monkeypatch.setattr(Watching, "batches", [])
    monkeypatch.setenv(CACHE_VARIABLE, str(toy.parent / "cache"))
    config = configured(toy, "watching")
    return replace(config, decode=replace(config.decode, evidence="2"))


def evidence_folder(config: RunConfig) -> Path:
    """Return where a run's evidence is."""
    return Path(config.results_dir) / "runs" / "jsonl" / "watching" / run_id(config) / "evidence"


def asking(config: RunConfig, evidence: str) -> RunConfig:
    """Return the same run with other evidence."""
    return replace(config, decode=replace(config.decode, evidence=evidence))


def outcome(config: RunConfig) -> dict[str, bytes]:
    """Return the files that a run is judged by."""
    folder = evidence_folder(config).parent
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_finished_run_is_given_more(watched: RunConfig, log_lines: list[str]) -> None:
    """One line says of how many examples evidence and inputs are added; record, predictions and scores stay."""
    run_point(PlannedRun(watched))
    folder, before = evidence_folder(watched), outcome(watched)
    assert stored_indices(folder) == {0, 1}
    all_of_it = replace(watched, decode=replace(watched.decode, keep_inputs="3", evidence="all"))
    point = PlannedRun(all_of_it)
    run_point(point)
    assert stored_indices(folder) == set(range(8))
    assert len(read_stored_inputs(folder.parent / "inputs.jsonl")) == 3
    assert {**outcome(watched), **before} == outcome(watched)
    what = "the evidence of 6 examples and the inputs of 3 examples"
    message = f"already finished, except for {what}: watching on jsonl, {folder.parent}"
    assert (log_lines, point.carried_out) == ([message], False)
    asked = len(Watching.batches)
    for fewer in ("all", "none"):
        run_point(PlannedRun(asking(all_of_it, fewer)))
    assert log_lines[1:] == [f"already finished: watching on jsonl, {folder.parent}"] * 2
    assert (len(Watching.batches), stored_indices(folder)) == (asked, set(range(8)))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("no weights", "the checkpoint of that run is not in the cache; overwrite=true repeats"),
        ("other weights", "the weights in the cache may differ from those"),
        (
            "other summaries",
            "no evidence of 6 examples added: their summaries differ on this machine",
        ),
    ],
)
def test_other_weights_give_no_evidence(
    change: str,
    problem: str,
    watched: RunConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log_lines: list[str],
) -> None:
    """Weights that are gone, trained anew, or write other summaries leave a finished run as it is; a line says so."""
    record = run_point(PlannedRun(watched))
    before = outcome(watched)
    if change == "no weights":
        shutil.rmtree(cache_folder() / "checkpoint")
    elif change == "other weights":
        run_point(PlannedRun(replace(watched, results_dir=str(tmp_path / "other"), overwrite=True)))
    else:
        monkeypatch.setattr(Watching, "suffix", " But.")
    assert run_point(PlannedRun(asking(watched, "all"))).run_id == record.run_id
    assert problem in log_lines[1]
    assert (stored_indices(evidence_folder(watched)), outcome(watched)) == ({0, 1}, before)
