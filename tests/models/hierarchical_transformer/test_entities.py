"""Entities by capitals and by spaCy."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.models.hierarchical_transformer import entities
from longsumbench.models.hierarchical_transformer.entities import (
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
        ("we met Ann Lee in Rome", {"Ann Lee", "Rome"}),
        ("Vladimir Ray left.", {"Vladimir Ray"}),  # two at a beginning
        ("Rain fell.", set()),  # one at a beginning
        ("Rome fell. All left Rome.", {"Rome"}),  # one at a beginning that is a name elsewhere
        (
            "The Red House fell. When Rome fell we left.",
            {"Red House", "Rome"},
        ),  # no name begins with The or When
        ("US President Lee. IT is hard.", {"US President Lee"}),
        ("from Paris, Texas to the Bank of England", {"Paris", "Texas", "Bank", "England"}),
        ("by John F. Kennedy (New York) and “Big Ben”", {"John F Kennedy", "New York", "Big Ben"}),
        ("in Ann's Paris and Jean-Luc’s", {"Ann", "Paris", "Jean-Luc"}),
        ("that I know – I'm sure", set()),
        ("in München and Örebro", {"München", "Örebro"}),
        ("你好，世界。 and 42 3M", set()),
        ("", set()),
    ],
)
def test_worked_capitals(text: str, expected: set[str]) -> None:
    """Runs of capitalised words, and what a sentence's beginning tells."""
    assert capitalised(text) == expected


class StandIn:
    """The calls of a spaCy pipeline that are made: finds the names it knows."""

    max_length = 1_000
    pipe_names = ("entity_ruler",)
    meta: ClassVar = {"lang": "en", "name": "stand_in", "version": "1.2.0", "license": ""}

    def __init__(self, assigns: Sequence[str] = ("doc.ents", "token.ent_type")) -> None:
        self.assigns = assigns

    def get_pipe_meta(self, name: str) -> Any:
        """Tell what a component writes."""
        return SimpleNamespace(assigns=list(self.assigns))

    def pipe(self, texts: Iterable[str]) -> Iterator[Any]:
        """Yield what is found in each text."""
        for text in texts:
            found = [
                SimpleNamespace(text=name, label_=label)
                for name, label in NAMED.items()
                if name in text
            ]
            yield SimpleNamespace(ents=tuple(found))


@pytest.fixture(autouse=True)
def _nothing_loaded() -> Iterator[None]:
    """Forget the pipeline of another test."""
    entities._pipeline.cache_clear()
    yield
    entities._pipeline.cache_clear()


@pytest.fixture
def spacy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a module of that name in its place; `load` is to be set."""
    module: Any = ModuleType("spacy")
    module.__spec__ = ModuleSpec("spacy", None)
    module.loaded = []
    module.pipeline = StandIn()

    def load(name: str, exclude: Sequence[str]) -> StandIn:
        module.loaded.append(name)
        pipeline: StandIn = module.pipeline
        return pipeline

    module.load = load
    monkeypatch.setitem(sys.modules, "spacy", module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Return a folder that looks like a pipeline's."""
    (tmp_path / "config.cfg").touch()
    return str(tmp_path)


def test_spacys_entities_of_the_papers_types(spacy: Any, folder: str) -> None:
    """What spaCy finds counts if its type is one of the nine, as it is; a pipeline is loaded once."""
    assert available(folder)
    texts = ["Acme Corp on Monday", "", "Paris, Acme Corp"]
    expected = [{"Acme Corp"}, set(), {"Acme Corp", "Paris"}]
    assert find_entities("spacy", folder)(texts) == expected
    assert find_entities("spacy", folder)(texts) == expected
    assert spacy.loaded == [folder]
    assert pipeline_identity(folder) == "en_stand_in 1.2.0"


def test_real_spacy(tmp_path: Path) -> None:
    """The same of the library itself, with a pipeline of rules from a folder, where it is installed."""
    library = pytest.importorskip("spacy", reason="the extra spacy")
    pipeline = library.blank("en")
    patterns = [{"label": label, "pattern": name} for name, label in NAMED.items()]
    pipeline.add_pipe("entity_ruler").add_patterns(patterns)
    pipeline.to_disk(tmp_path / "rules")
    library.blank("en").to_disk(tmp_path / "blank")
    assert available(str(tmp_path / "rules"))
    found = find_entities("spacy", str(tmp_path / "rules"))(
        ["Acme Corp on Monday", "", "Paris, Acme Corp"]
    )
    assert found == [{"Acme Corp"}, set(), {"Acme Corp", "Paris"}]
    assert pipeline_identity(str(tmp_path / "rules")) == "en_pipeline 0.0.0"
    with pytest.raises(UsageError, match="finds no entities"):
        find_entities("spacy", str(tmp_path / "blank"))


def test_spacy_asked_for_and_missing(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """Without the package, one line says how to install it and what else to choose."""
    monkeypatch.setitem(sys.modules, "spacy", None)
    assert not available(folder)
    advice = r"pip install -e '\.\[spacy\]'.*spacy download en_core_web_sm.*or choose model\.entities=capitals$"
    with pytest.raises(EnvironmentProblem, match=advice):
        find_entities("spacy", folder)


@pytest.mark.parametrize("name", ["no_such_pipeline", "", "blank:en", "config.cfg"])
def test_a_missing_pipeline(name: str, spacy: Any) -> None:
    """Without the pipeline, one line says how to get one and what else to choose; nothing is loaded or downloaded."""
    assert not available(name)
    with pytest.raises(
        EnvironmentProblem,
        match=r"spacy download en_core_web_sm, or choose model\.entities=capitals$",
    ):
        find_entities("spacy", name)
    assert spacy.loaded == []
