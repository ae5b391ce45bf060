"""Commands as a user types them, in this process."""

from collections.abc import Callable

import pytest

from longsumbench.cli.main import main

Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Typed:
    """Run a command; return its exit code, stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(map(str, words)))
        return code, *capsys.readouterr()

    return run
