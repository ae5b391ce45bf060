"""What the checks of small inputs share: a case with its outcome, and commands whose output is kept."""

import io
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from longsumbench.cli.main import main as run_command
from longsumbench.core import Summary
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord

BAD_DATA = 3


class Outcome(NamedTuple):
    """A case, what is right, and what the suite did."""

    case: str
    right: object
    here: object

    @property
    def is_right(self) -> bool:
        """True if the suite did what is right."""
        return self.right == self.here


class Printed(NamedTuple):
    """The exit code of a command, and what it printed."""

    code: int
    out: str
    err: str


def print_command(*words: str) -> Printed:
    """Run a command; return its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command(list(words))
    return Printed(code, out.getvalue(), err.getvalue())


def command(*words: str) -> int:
    """Return the exit code of a command, which prints nothing."""
    return print_command(*words).code


def summaries_in(results: str) -> list[Summary]:
    """Return the summaries of all runs in a results folder."""
    paths = sorted(Path(results).glob("runs/*/*/*/predictions.jsonl"))
    return [summary for path in paths for summary in read_summaries(path)]


def records_in(results: str) -> Iterator[RunRecord]:
    """Yield the records of all runs in a results folder."""
    for path in sorted(Path(results).glob("runs/*/*/*/record.json")):
        yield RunRecord.read(path.parent)
