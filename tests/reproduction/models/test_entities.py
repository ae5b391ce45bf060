"""Entities by capitals and by spaCy."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from longsumbench.errors import EnvironmentProblem
from longsumbench_reproduction.models import entities
from longsumbench_reproduction.models.entities import (
    available,
    capitalised,
    find_entities,
    pipeline_identity,
)

NAMED = {
    "Acme Corp": "ORG",
    "Paris": "GPE",
    "Monday": "DATE",
}  # what the pipelines of the tests know


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Vladimir Ray left.", {"Vladimir Ray"}),  # two at a beginning
        ("Rome fell. All left Rome.", {"Rome"}),  # one at a beginning that is a name elsewhere
        (
            "The Red House fell. When Rome fell we left.",
            {"Red House", "Rome"},
        ),  # no name begins with The or When
        ("by John F. Kennedy (New York) and “Big Ben”", {"John F Kennedy", "New York", "Big Ben"}),
        ("in Ann's Paris and Jean-Luc’s", {"Ann", "Paris", "Jean-Luc"}),
        ("that I know – I'm sure", set()),
        ("你好，世界。 and 42 3M", set()),
    ],
)
def test_worked_capitals(text: str, expected: set[str]) -> None:
    """Runs of capitalised words, and what a sentence's beginning tells."""
    assert capitalised(text) == expected


@pytest.fixture(autouse=True)
def _nothing_loaded() -> Iterator[None]:
    """Forget the pipeline of another test."""
    entities._pipeline.cache_clear()
    yield
    entities._pipeline.cache_clear()


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Return a folder that looks like a pipeline's."""
    (tmp_path / "config.cfg").touch()
    return str(tmp_path)


def test_real_spacy(tmp_path: Path) -> None:
    """The same of the library itself, with a pipeline of rules from a folder, where it is installed."""
    library = pytest.importorskip("spacy", reason="the extra spacy")
    pipeline = library.blank("en")
    patterns = [{"label": label, "pattern": name} for name, label in NAMED.items()]
    pipeline.add_pipe("entity_ruler").add_patterns(patterns)
    pipeline.to_disk(tmp_path / "rules")
    assert available(str(tmp_path / "rules"))
    found = find_entities("spacy", str(tmp_path / "rules"))(
        ["Acme Corp on Monday", "", "Paris, Acme Corp"]
    )
    assert found == [{"Acme Corp"}, set(), {"Acme Corp", "Paris"}]
    assert pipeline_identity(str(tmp_path / "rules")) == "en_pipeline 0.0.0"


def test_spacy_asked_for_and_missing(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """Without the package, one line says how to install it and what else to choose."""
    monkeypatch.setitem(sys.modules, "spacy", None)
    assert not available(folder)
    advice = r"pip install -e '\.\[spacy\]'.*spacy download en_core_web_sm.*or choose model\.entities=capitals$"
    with pytest.raises(EnvironmentProblem, match=advice):
        find_entities("spacy", folder)


@pytest.mark.parametrize("name", ["no_such_pipeline", ""])
def test_a_missing_pipeline(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the pipeline, one line says how to get one and what else to choose."""
    monkeypatch.setattr(entities, "find_spec", lambda package: package)
    assert not available(name)
    advice = r"spacy download en_core_web_sm, or choose model\.entities=capitals$"
    with pytest.raises(EnvironmentProblem, match=advice):
        find_entities("spacy", name)
