"""Commands as a user types them, in this process."""

from collections.abc import Callable
from typing import Any

import pytest

from longsumbench.cli.main import main

Typed = Callable[..., tuple[int, str, str]]
Command = Callable[..., Any]


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Typed:
    """Run a command; return its exit code, stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(map(str, words)))
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def run_command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command that must end with a code; return what it prints, as `out` and `err`."""

    def run(code: int, *words: object) -> Any:
        capsys.readouterr()
        assert main(list(map(str, words))) == code
        return capsys.readouterr()

    return run
