"""Parts that all commands share: the parser, the description of a command, common flags."""

import argparse
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from longsumbench.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from longsumbench.runs.results import Results

_EXIT_CODES = """\
exit codes: 0 done, 1 some points failed, 2 wrong usage or configuration, 3 bad data,
4 environment (network, disk, memory), 70 unexpected error (see the log that it names), 130 interrupted
"""


class Parser(argparse.ArgumentParser):
    """As ArgumentParser, except: wrong usage raises `UsageError`."""

    def __init__(self, prog: str, **about: Any) -> None:
        raw = argparse.RawDescriptionHelpFormatter
        super().__init__(prog, **about, epilog=_EXIT_CODES, formatter_class=raw, allow_abbrev=False)

    def flags(self) -> list[str]:
        """Return the known flags ("--show")."""
        return [flag for flag in self._option_string_actions if flag.startswith("--")]

    def error(self, message: str) -> NoReturn:
        """Raise argparse's message as a `UsageError`."""
        if choice := re.search(r"argument (\w+): invalid choice: '(.*)' \(choose from (.*)\)", message):
            what, word, choices = choice.groups()
            known = re.findall(r"[\w-]+", choices)
            message = f"unknown {what.lower()} '{word}'{did_you_mean(word, known)}; known: {', '.join(known)}"
        raise UsageError(f"{message} (see {self.prog} --help)")


class Command(NamedTuple):
    """A command: its name, its line in the list of commands, its help, its two functions, and a line after Ctrl-C."""

    name: str
    summary: str
    description: str
    add_arguments: Callable[[Parser], None]
    execute: Callable[[argparse.Namespace, Sequence[str]], None]
    interrupted: str = "finished work is kept, the same command continues it"


def add_results_dir(command: Parser) -> None:
    """Add `--results-dir`."""
    command.add_argument(
        "--results-dir", default="results", metavar="FOLDER", help="where the runs are (default: results)"
    )


def results_of(options: argparse.Namespace) -> "Results":
    """Return the results in the folder of `--results-dir`."""
    from longsumbench.runs.results import Results

    return Results(Path(options.results_dir).expanduser())


def output_folder(name: str | None, default: Path) -> Path:
    """Return the folder that `--output` names, or the default, after making it.

    Raises:
        EnvironmentProblem: nothing can be written there.
    """
    from longsumbench.files import writable_folder

    return writable_folder(Path(name).expanduser() if name else default, "--output")


def output_file(name: str | None, flag: str) -> Path | None:
    """Return the file that a flag names, after checking that it can be written; None without the flag.

    Raises:
        UsageError: the path is a folder, a pipe, a device or a loop of links.
        EnvironmentProblem: the folder is not writable.
    """
    from longsumbench.files import writable_folder

    if name is None:
        return None
    table = Path(os.path.realpath(Path(name).expanduser()))
    if os.path.lexists(table) and not table.is_file():
        what = "a folder" if table.is_dir() else "not a file (a pipe, a device or a loop of links)"
        raise UsageError(f"{flag} {name or '.'} is {what}: give a file name")
    writable_folder(table.parent, flag)
    return table
