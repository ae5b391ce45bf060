"""The outcome of a system changes only if a version rises: short runs of all built-in systems, compared with a file."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from support.paths import ROOT

from longsumbench.api import registry
from longsumbench.cache.artifacts import CACHE_VARIABLE


def load_script() -> ModuleType:
    """Return benchmarks/outcome_versions.py."""
    spec = importlib.util.spec_from_file_location("outcome_versions", ROOT / "benchmarks" / "outcome_versions.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


OUTCOMES = load_script()
STORED = json.loads(OUTCOMES.FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of checkpoints, results and stages of all cases."""
    return tmp_path_factory.mktemp("outcomes")


@pytest.fixture(autouse=True)
def stages_of_this_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests compute in float32: no stage is shared with them."""
    monkeypatch.setenv(CACHE_VARIABLE, str(folder / "cache"))


def test_every_system_has_a_case() -> None:
    """The cases are those of the file, and all built-in systems have one."""
    assert STORED["outcomes"].keys() == OUTCOMES.CASES.keys()
    assert {words.split()[0] for words in OUTCOMES.CASES.values()} == registry.systems.built_in.keys()


@pytest.mark.parametrize("name", OUTCOMES.CASES)
def test_the_outcome_is_that_of_its_version(name: str, folder: Path) -> None:
    """The same versions give the same losses, outputs and scores on any machine."""
    change = OUTCOMES.describe_change(name, OUTCOMES.run_case(name, folder))
    if change and STORED["libraries"] != OUTCOMES.libraries():
        pytest.skip(f"the libraries of {OUTCOMES.FILE.name}: {STORED['libraries']}")
    assert change == ""


def test_a_change_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other initial weights are a change that needs a raised version."""
    uniform = torch.nn.init.xavier_uniform_
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr("longsumbench.modeling.nn.initialization.nn.init.xavier_uniform_", lambda w: uniform(w, 1.001))
    assert OUTCOMES.describe_change("trunc", OUTCOMES.run_case("trunc", tmp_path)) == (
        "the outcome of 'trunc' changed (losses): raise Trunc.version (models/seal/system.py) or that"
        " of the changed step (CONTRIBUTING.md), or find the cause; then write the file again with"
        " `python benchmarks/outcome_versions.py`"
    )


@pytest.mark.parametrize(
    "change", [{"versions": {}}, {"settings": "other"}, {"versions": {"fit": 99}, "outputs": "other"}]
)
def test_a_raised_version_needs_a_new_file(change: dict[str, Any]) -> None:
    """With other versions or settings the outcomes are not compared."""
    assert OUTCOMES.describe_change("etads", {**STORED["outcomes"]["etads"], **change}) == (
        "'etads' has other versions or settings than in tests/runs/outcome_versions.json: write the file again with"
        " `python benchmarks/outcome_versions.py`"
    )
