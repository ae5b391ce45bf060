"""Options and fixtures of all tests: nothing is read from or written to the user's own cache."""

from pathlib import Path

import pytest

from longsumbench.stages import CACHE_VARIABLE, StageStore


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --slow."""
    parser.addoption("--slow", action="store_true", help="also run the tests that take minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests unless they are asked for."""
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: run with --slow"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep stages in a folder of the test session, shared between its tests as a user's runs share theirs."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def stages(tmp_path: Path) -> StageStore:
    """An empty stage store."""
    return StageStore(tmp_path / "stages")
