"""A dataset whose facts are known, end to end: what is scored beside ROUGE, recorded, tabled and drawn."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from longsumbench import registry
from longsumbench.cli import main
from longsumbench.configuration import DatasetSettings, RunConfig, Scoring, settle
from longsumbench.corpora.corpus import BuiltIn, Corpus
from longsumbench.corpora.loading import load
from longsumbench.documents import Document, Example, Fact, Section
from longsumbench.metrics.metric import aggregate_measures, read_scores
from longsumbench.pipeline import Point, run, specify
from longsumbench.records import Results
from longsumbench.stages import StageStore, cache_folder

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
    return Example(f"{split}-{number}", None, None, (Document(None, sections),), (reference,), facts)


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
    known = {**registry.corpora.built_in, **targets}
    monkeypatch.setattr(registry, "corpora", replace(registry.corpora, built_in=known))


def configured(tmp_path: Path, dataset: str = "reports", **model: Any) -> RunConfig:
    """Return a configuration of Lead on the reports."""
    settings = settle(registry.systems.load("lead").Config, {"length": "13", **model}, "model.")
    scoring = Scoring(resamples=100)
    return RunConfig(settings, DatasetSettings(dataset), score=scoring, results_dir=str(tmp_path / "results"))


def silent(line: str) -> None:
    """Say nothing."""


def test_a_run_is_scored_beside_rouge(tmp_path: Path) -> None:
    """Lead reads thirteen words: the bridge is right wherever it stands in them, the mill never; the record says so."""
    config = configured(tmp_path)
    record = run(Point(config, say=silent))
    means = {name: measure["mean"] for name, measure in record.measures.items()}
    assert next(iter(means)) == "fact_recall"
    assert means["fact_recall"] == 50.0
    assert (means["fact_recall_single"], means["fact_recall_silent"]) == (100.0, 0.0)
    assert means["fact_recall_chance"] == 25.0
    assert (means["fact_recall_silent_other"], means["fact_recall_silent_distance_1"]) == (0.0, 0.0)
    tenths = [name for name in means if "position" in name]
    assert tenths == ["fact_recall_single_position_0", "fact_recall_single_position_2"]
    assert sum(record.measures[name]["n"] for name in tenths) == NUM_REPORTS
    assert not [name for name in means if "relayed" in name or "same" in name]
    assert record.signature.endswith("|v:1|fact_recall:1")


def test_the_record_holds_the_means_of_the_scores_file(tmp_path: Path) -> None:
    """Measures are those of scores.csv, whose first columns are ROUGE's."""
    config = configured(tmp_path)
    record = run(Point(config, say=silent))
    table = read_scores(Results(Path(config.results_dir)).find(record.run_id) / "scores.csv")
    assert list(table.columns[:12]) == [f"{kind}_{part}" for kind in record.scores for part in "prf"]
    assert aggregate_measures(table.iloc[:, 12:], 100) == record.measures


def test_rouge_is_the_same_without_facts(tmp_path: Path) -> None:
    """Naming a metric changes neither texts nor ROUGE; without one, nothing is added to scores or record."""
    with_facts = run(Point(configured(tmp_path), say=silent))
    plain = configured(tmp_path, "plain_reports")
    without = run(Point(plain, say=silent))
    assert (without.scores, without.fingerprint) == (with_facts.scores, with_facts.fingerprint)
    assert without.measures == {}
    assert with_facts.signature == f"{without.signature}|fact_recall:1"
    folder = Results(Path(plain.results_dir)).find(without.run_id)
    assert len(read_scores(folder / "scores.csv").columns) == 12


def test_another_version_of_a_metric_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose facts were counted in another way is not taken for finished."""
    config = configured(tmp_path)
    texts = load(config.dataset, StageStore(cache_folder()))
    system = registry.systems.load("lead")(config.model)
    before = specify(config, system, texts).run_id
    monkeypatch.setattr(registry.metrics.load("fact_recall"), "version", 2)
    assert specify(config, system, texts).run_id != before
    assert specify(config, system, replace(texts, metrics=())).run_id != before


def test_the_command_says_where_the_picture_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Table and picture stand beside each other, and `leaderboard` names the picture, though not among LaTeX."""
    for length in ("13", "reference"):
        run(Point(configured(tmp_path, length=length), say=silent))
    picture = tmp_path / "results" / "leaderboard" / "reports-recall.png"
    assert main(["leaderboard", "--results-dir", str(tmp_path / "results")]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr().out
    assert said.splitlines().count(str(picture)) == 1
    assert "chance reaches 25.0" in said
    assert main(["leaderboard", "reports", "--latex", "--results-dir", str(tmp_path / "results")]) == 0
    assert str(picture) not in capsys.readouterr().out
