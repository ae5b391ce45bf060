"""A dataset whose facts are known, end to end: what is scored next to ROUGE, recorded, tabled and drawn."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.commands import Command
from support.run_records import changed

from longsumbench.core import (
    BuiltIn,
    Corpus,
    DatasetSettings,
    Document,
    Example,
    Fact,
    RunConfig,
    Scoring,
    Section,
    build_settings,
    registry,
)
from longsumbench.metrics.aggregate import read_scores
from longsumbench.metrics.evaluate import DEFAULT_METRICS
from longsumbench.models.baselines.system import Lead
from longsumbench.runs.pipeline import run_point
from longsumbench.runs.plan import PlannedRun
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

FIRMS = ("adler", "york", "wells", "dahl")
NUM_REPORTS = 12  # in a split


def report(number: int, split: str) -> Example:
    """A report of four sections: one decides on the bridge, the last two together on the mill."""
    chance = random.Random(f"{split}{number}")
    bridge, mill = chance.choices(FIRMS, k=2)
    place = chance.randrange(2)
    texts = ["nobody had time to read it .", "nobody had time to read it ."]
    texts[place] = f"the bridge goes to {bridge} ."
    texts += ["the mill goes to the lower bid .", f"the lower bid is from {mill} ."]
    sections = tuple(Section(None, ((text,),)) for text in texts)
    facts = (
        Fact("single", "bridge", bridge, FIRMS, place / 4, 0),
        Fact("silent", "mill", mill, FIRMS, 0.5, 1),
    )
    reference = (f"the bridge goes to {bridge} .", f"the mill goes to {mill} .")
    return Example(
        f"{split}-{number}", None, None, (Document(None, sections),), (reference,), facts
    )


def reports(settings: DatasetSettings) -> Iterator[tuple[str, Example]]:
    """Yield the reports of all splits."""
    for split in ("train", "validation", "test"):
        yield from ((split, report(number, split)) for number in range(NUM_REPORTS))


CORPUS = Corpus(
    name="reports",
    title="made-up reports",
    licence="none",
    homepage="",
    version=1,
    built_in=BuiltIn(reports, lambda settings: {"reports": 1}),
    metrics=("fact_recall",),
)
SILENT_CORPUS = replace(CORPUS, metrics=())  # the same texts, scored by ROUGE alone


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the two datasets under their names."""
    targets = {"reports": f"{__name__}:CORPUS", "plain_reports": f"{__name__}:SILENT_CORPUS"}
    known = {**registry.corpora.shipped(), **targets}
    monkeypatch.setattr(registry, "corpora", replace(registry.corpora, built_in=known))


def configured(tmp_path: Path, dataset: str = "reports", **model: Any) -> RunConfig:
    """Return a configuration of Lead on the reports."""
    settings = build_settings(
        registry.systems.load("lead").Config, {"length": "13", **model}, "model."
    )
    scoring = Scoring(resamples=100)
    return RunConfig(
        settings, DatasetSettings(dataset), score=scoring, results_dir=str(tmp_path / "results")
    )


DEFAULT_COLUMNS = ["entity_precision", "number_precision", "copied_bigrams", "copied_longest"]


def asking(config: RunConfig, *metrics: str, **models: Any) -> RunConfig:
    """Return a configuration that asks for metrics."""
    return replace(
        config, score=replace(config.score, metrics=list(metrics), device="cpu", **models)
    )


def files_of(config: RunConfig, record: RunRecord) -> Path:
    """Return the folder of a finished run."""
    return Results(Path(config.results_dir)).find(record.run_id)


def test_a_run_is_scored_beside_rouge(tmp_path: Path) -> None:
    """Lead reads thirteen words: the bridge is right wherever it is in them, the mill never; the record says so."""
    config = configured(tmp_path)
    record = run_point(PlannedRun(config))
    means = {name: measure.mean for name, measure in record.evaluation.measures.items()}
    assert record.evaluation.ranked_by == next(iter(means)) == "fact_recall"
    assert (means["fact_recall"], means["fact_recall_chance"]) == (50.0, 25.0)
    assert (means["fact_recall_single"], means["fact_recall_silent"]) == (100.0, 0.0)
    tenths = [name for name in means if "position" in name]
    assert tenths == ["fact_recall_single_position_0", "fact_recall_single_position_2"]
    assert sum(record.evaluation.measures[name].n for name in tenths) == NUM_REPORTS
    assert record.evaluation.signature.endswith("|v:1|fact_recall:1")


def test_rouge_is_the_same_without_facts(tmp_path: Path) -> None:
    """Naming a metric changes neither texts nor ROUGE; without one, only the default metrics are added."""
    with_facts = run_point(PlannedRun(configured(tmp_path)))
    plain = configured(tmp_path, "plain_reports")
    without = run_point(PlannedRun(plain))
    assert without.evaluation.scores == with_facts.evaluation.scores
    assert without.key.fingerprint == with_facts.key.fingerprint
    # the reports have no names and no numbers
    assert list(without.evaluation.measures) == DEFAULT_COLUMNS[2:]
    assert tuple(without.evaluation.measured_by) == DEFAULT_METRICS
    assert with_facts.evaluation.signature == f"{without.evaluation.signature}|fact_recall:1"
    columns = read_scores(files_of(plain, without) / "scores.csv").columns
    assert list(columns[12:]) == [
        "rougeLsum_floor",
        *DEFAULT_COLUMNS,
        "group",
    ]  # two reports are equal


def test_a_finished_run_is_scored_by_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_lines: list[str]
) -> None:
    """Nothing is fitted or summarized again, what was scored stays to the last bit, and all is as if asked at once."""
    plain = configured(tmp_path)
    folder = files_of(plain, run_point(PlannedRun(plain)))
    before = RunRecord.read(folder)
    scores = read_scores(folder / "scores.csv")
    with monkeypatch.context() as blocked:
        for step in ("fit", "summarize"):
            blocked.setattr(Lead, step, None, raising=False)
        after = run_point(PlannedRun(asking(plain, "extractive", "repetition")))
    assert [line.partition(" on ")[0] for line in log_lines] == [
        "already finished, except for extractive, repetition: lead"
    ]
    names = ("measures", "units", "measured_by")
    assert changed(after, **{name: vars(before.evaluation)[name] for name in names}) == before
    earlier = list(before.evaluation.measures)
    assert list(after.evaluation.measures)[: len(earlier)] == earlier
    assert read_scores(folder / "scores.csv")[list(scores.columns)].equals(scores)
    again = run_point(
        PlannedRun(asking(replace(plain, overwrite=True), "extractive", "repetition"))
    )
    assert again.run_id == after.run_id
    assert again.evaluation == after.evaluation


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        ("[support]", 2, "score.support_model is missing"),
        (
            "[coherence] score.coherence_model=nobody/has-this",
            4,
            "no copy of it is on this machine",
        ),
        ("[] score.mode=perl score.wordnet=no/such/folder", 2, "does not have adj.exc"),
    ],
)
def test_what_is_missing_is_said_before_the_run(
    asked: str,
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_command: Command,
) -> None:
    """A metric that cannot be had ends the command in one line before anything is read, fitted or written."""
    monkeypatch.setattr(
        "longsumbench.modeling.checkpoints.unreachable", lambda: "offline mode is set"
    )
    results = tmp_path / "results"
    words = f"run model=lead dataset=plain_reports results_dir={results} score.metrics={asked}"
    said = run_command(code, *words.split()).err.strip()
    assert message in said
    assert "\n" not in said
    assert not results.exists()
