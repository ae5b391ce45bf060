"""The outcome of a system changes only if a version rises: short runs of all built-in systems, compared with a file."""

from pathlib import Path

import outcome_versions
import pytest
import torch
from support.json_files import read_json

from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.core import registry

STORED = read_json(outcome_versions.FILE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of checkpoints, results and stages of all cases."""
    return tmp_path_factory.mktemp("outcomes")


@pytest.fixture(autouse=True)
def stages_of_this_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests compute in float32: no stage is shared with them."""
    monkeypatch.setenv(CACHE_VARIABLE, str(folder / "cache"))


def test_every_system_has_a_case() -> None:
    """The cases are those of the file, and all built-in systems have one.

    Except for person, which needs several references: no built-in dataset has them.
    """
    assert STORED["outcomes"].keys() == outcome_versions.CASES.keys()
    systems = {words.split()[0] for words in outcome_versions.CASES.values()}
    assert systems == registry.systems.shipped().keys() - {"person"}


@pytest.mark.parametrize("name", outcome_versions.CASES)
def test_the_outcome_is_that_of_its_version(name: str, folder: Path) -> None:
    """The same versions give the same losses, outputs and scores on any machine."""
    change = outcome_versions.describe_change(name, outcome_versions.run_case(name, folder))
    if change and STORED["libraries"] != outcome_versions.libraries():
        pytest.skip(f"the libraries of {outcome_versions.FILE.name}: {STORED['libraries']}")
    assert change == ""


def test_a_change_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other initial weights are a change that needs a raised version."""
    uniform = torch.nn.init.xavier_uniform_
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(
        "longsumbench.modeling.nn.initialization.nn.init.xavier_uniform_",
        lambda w: uniform(w, 1.001),
    )
    assert outcome_versions.describe_change(
        "trunc", outcome_versions.run_case("trunc", tmp_path)
    ) == (
        "the outcome of 'trunc' changed (losses): raise Trunc.version (models/seal/system.py) or that"
        " of the changed step (CONTRIBUTING.md), or find the cause; then write the file again with"
        " `python benchmarks/outcome_versions.py`"
    )


def test_a_changed_default_needs_a_raised_version() -> None:
    """The defaults are those of the file: run ids do not contain them. A new setting and a raised version are fine."""
    current = outcome_versions.current_defaults()
    assert outcome_versions.describe_changed_defaults(STORED["defaults"], current) == ""
