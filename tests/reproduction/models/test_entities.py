"""Entities by capitals and by spaCy."""

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


# Two words at a beginning; one that is a name elsewhere; no name begins with The or When.
CAPITALS = """
Vladimir Ray left. → Vladimir Ray
Rome fell. All left Rome. → Rome
The Red House fell. When Rome fell we left. → Red House, Rome
by John F. Kennedy (New York) and “Big Ben” → John F Kennedy, New York, Big Ben
in Ann's Paris and Jean-Luc’s → Ann, Paris, Jean-Luc
that I know – I'm sure →
你好，世界。 and 42 3M →
"""


@pytest.mark.parametrize("line", CAPITALS.strip().splitlines())
def test_worked_capitals(line: str) -> None:
    """Runs of capitalised words, and what a sentence's beginning tells."""
    text, _, names = line.partition(" →")
    assert capitalised(text) == {name.strip() for name in names.split(",")} - {""}


@pytest.fixture(autouse=True)
def _nothing_loaded() -> Iterator[None]:
    """Forget the pipeline of another test."""
    entities._pipeline.cache_clear()
    yield
    entities._pipeline.cache_clear()


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


@pytest.mark.parametrize(
    ("package", "name", "advice"),
    [
        (None, "FOLDER", r"pip install -e '\.\[spacy\]'.*spacy download en_core_web_sm.*"),
        ("spacy", "no_such_pipeline", "spacy download en_core_web_sm, "),
        ("spacy", "", "spacy download en_core_web_sm, "),
    ],
)
def test_what_is_missing(
    package: str | None, name: str, advice: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the package or the pipeline, one line says how to get it and what else to choose."""
    (tmp_path / "config.cfg").touch()
    name = name.replace("FOLDER", str(tmp_path))
    monkeypatch.setattr(entities, "find_spec", lambda _: package)
    assert not available(name)
    with pytest.raises(EnvironmentProblem, match=rf"{advice}or choose model\.entities=capitals$"):
        find_entities("spacy", name)
