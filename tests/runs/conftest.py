"""Fixtures of several tests of runs."""

from collections.abc import Callable

import pytest

from longsumbench.cli.main import main


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, list[str]]]:
    """A function that runs `longsumbench summarize`; it returns the exit code, stdout, and the lines of stderr."""

    def run(*words: object) -> tuple[int, str, list[str]]:
        code = main(["summarize", *map(str, words)])
        output = capsys.readouterr()
        return code, output.out, output.err.splitlines()

    return run
