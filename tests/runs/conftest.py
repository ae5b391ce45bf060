"""Fixtures of several tests of runs."""

from collections.abc import Callable

import pytest
from support.commands import Typed


@pytest.fixture
def typed(typed: Typed) -> Callable[..., tuple[int, str, list[str]]]:
    """A function that runs `longsumbench summarize`; it returns the exit code, stdout, and the lines of stderr."""

    def run(*words: object) -> tuple[int, str, list[str]]:
        code, out, err = typed("summarize", *words)
        return code, out, err.splitlines()

    return run
