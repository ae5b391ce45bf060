"""Runs that pages are made from: those of the current versions of the code."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support.toys import write_jsonl

from longsumbench.core import registry
from longsumbench.papers.points import FinishedRuns
from longsumbench.runs.pipeline import Point, run_point
from longsumbench.runs.plan import Planned, plan_lines
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.run_id import current_versions


def planned_lead(folder: Path, *words: str) -> Planned:
    """Return the point of Lead on made-up texts, with the results folder `folder / "r"`."""
    texts = write_jsonl(folder / "texts")
    line = ["model=lead", "dataset=jsonl", f"dataset.path={texts}", f"results_dir={folder / 'r'}", "baselines=false"]
    (point,) = plan_lines([[*line, *words]])[0]
    return point


def find_all(point: Planned) -> tuple[RunRecord | None, list[RunRecord]]:
    """Return the run that a page uses, and the outdated ones."""
    runs = FinishedRuns(Results(Path(point.config.results_dir)))
    return runs.find(point), runs.find_outdated(point)


@pytest.mark.parametrize(
    "versions", [{}, {"system": 0}, {"score": 0}, {"gone": 1}, {"metric gone": 1}], ids=lambda changes: str(changes)
)
def test_a_page_uses_runs_of_the_current_versions_only(versions: Mapping[str, int], tmp_path: Path) -> None:
    """A run is used while its versions are the current ones; with other versions, or none, it is outdated."""
    point = planned_lead(tmp_path)
    record = run_point(Point(point.config))
    assert find_all(point) == (record, [])
    outdated = replace(record, versions={**record.versions, **versions} if versions else {})
    outdated.write(Results(tmp_path / "r").run_folder(record))
    assert find_all(point) == (None, [outdated])


def test_a_raised_version_makes_runs_outdated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the version of a system is raised, the same settings are another run, and pages use that one."""
    point = planned_lead(tmp_path)
    first = run_point(Point(point.config))
    monkeypatch.setattr(registry.systems.load("lead"), "version", 99)
    assert find_all(point) == (None, [first])
    second = run_point(Point(point.config))
    assert second.run_id != first.run_id
    assert find_all(point) == (second, [first])


def test_versions_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """They include those of a learned ranker and of the dataset's metrics."""
    lead = registry.systems.load("lead")
    monkeypatch.setattr(registry.rankers.load("lstm"), "version", 7)
    plain, ranked = (current_versions(lead(lead.Config(rank=rank)), ["fact_recall"]) for rank in ("none", "lstm"))
    assert plain["metric fact_recall"] == registry.metrics.load("fact_recall").version
    assert ranked == {**plain, "ranker": 7}
