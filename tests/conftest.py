"""Options and fixtures of all tests: nothing is read from or written to the user's own cache."""

import os
from pathlib import Path

import pytest

from longsumbench.stages import CACHE_VARIABLE, StageStore

ASKED_FOR = {"slow": "takes minutes", "slurm": "needs a SLURM, which tests/slurm/start.sh starts"}

if "PYTEST_XDIST_WORKER" in os.environ:  # before torch counts the cores: test processes side by side share them
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --slow and --slurm."""
    for name, what in ASKED_FOR.items():
        parser.addoption(f"--{name}", action="store_true", help=f"also run what {what}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are run only when asked for."""
    for name, what in ASKED_FOR.items():
        if not config.getoption(f"--{name}"):
            for item in items:
                if item.get_closest_marker(name):
                    item.add_marker(pytest.mark.skip(reason=f"{what}: run with --{name}"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep stages in a folder of the test session, shared between its tests as a user's runs share theirs."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print no line because something took long: what a test compares must not depend on speed."""
    monkeypatch.setattr("longsumbench.progress.SECONDS_UNTIL_SHOWN", 1e6)
    monkeypatch.setattr("longsumbench.progress.SECONDS_BETWEEN_LINES", 1e6)


@pytest.fixture
def stages(tmp_path: Path) -> StageStore:
    """An empty stage store."""
    return StageStore(tmp_path / "stages")
