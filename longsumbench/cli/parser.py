"""Parts that all commands share: the parser, the description of a command and its arguments, common arguments."""

import argparse
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from longsumbench.errors import UsageError, did_you_mean
from longsumbench.formatting import break_command, plain_table, print_text

if TYPE_CHECKING:
    from longsumbench.runs.results import Results

_EPILOG = """\
anywhere: -q, --quiet: only warnings and errors; -v, --verbose: debug messages, and the traceback of an error
exit codes: 0 done, 1 some runs failed, 2 wrong usage or configuration, 3 bad data,
4 environment (network, disk, memory), 70 unexpected error (see the log that it names), 130 interrupted
"""
# Columns; longer lines are hard to read
_WIDEST_HELP = 120
# An example or a label of a help text, and its meaning
_ITEM = re.compile(r"(?:  \S.*?  +|[\w ]{4,9}: +)(?P<meaning>\S.*)|  \S.*")


class Parser(argparse.ArgumentParser):
    """As ArgumentParser, except: wrong usage raises `UsageError`, and the help is as wide as the terminal."""

    def __init__(self, prog: str, **settings: Any) -> None:
        raw = argparse.RawDescriptionHelpFormatter
        super().__init__(prog, **settings, epilog=_EPILOG, formatter_class=raw, allow_abbrev=False)

    def flags(self) -> list[str]:
        """Return the known flags ("--show")."""
        return [flag for flag in self._option_string_actions if flag.startswith("--")]

    def format_help(self) -> str:
        """Return the help; its description and its end are broken into lines that fit the terminal."""
        width = min(shutil.get_terminal_size().columns, _WIDEST_HELP)
        self.description = _fit_help(self.description or "", width)
        self.epilog = _fit_help(self.epilog or "", width)
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Raise argparse's message as a `UsageError`."""
        if choice := re.search(
            r"argument (\w+): invalid choice: '(.*)' \(choose from (.*)\)", message
        ):
            kind, word, choices = choice.groups()
            names = re.findall(r"[\w-]+", choices)
            message = f"unknown {kind.lower()} '{word}'{did_you_mean(word, names)}; known: {', '.join(names)}"
        elif missing := re.match(r"the following arguments are required: ([^ ,]+)", message):
            for action in self._actions:
                if missing[1] in (action.option_strings or [f"{action.metavar or action.dest}"]):
                    message += f"; {missing[1]}: {action.help or 'run, leaderboard, …'}"
        raise UsageError(f"{message} (see {self.prog} --help)")


def print_choices(command: str, choices: Mapping[str, str]) -> None:
    """Print what can follow a command (word → meaning), each as a command that can be typed."""
    print_text(plain_table([[f"{command} {word}", meaning] for word, meaning in choices.items()]))


def check_blanks(words: Sequence[str]) -> None:
    """Check that no blank divides a list of values (`model=lead, random`) or a setting (`model = lead`).

    Raises:
        UsageError: there is one; the message has the words without it.
    """
    for index, word in enumerate(words):
        # What the words from here on would be without blanks, and as they were typed
        joined, with_blanks = word, word
        of_columns = words[index - 1 : index] == ["--columns"]
        for next_word in words[index + 1 :]:
            unfinished = joined.endswith((",", "=")) and ("=" in joined or of_columns)
            starts_anew = re.match(r"-|[\w./]+=", next_word)
            if not next_word.startswith((",", "=")) and (starts_anew or not unfinished):
                break
            joined, with_blanks = f"{joined}{next_word}", f"{with_blanks} {next_word}"
        if joined != word:
            raise UsageError(
                f"{_describe_blank(with_blanks)} divides '{with_blanks}': write {joined}"
            )


def _describe_blank(text: str) -> str:
    """Return where the first blank next to a comma or "=" is: "a blank after ','"."""
    match = re.search(r"([,=]) | ([,=])", text)
    assert match is not None
    return f"a blank after '{match[1]}'" if match[1] else f"a blank before '{match[2]}'"


def _fit_help(text: str, width: int) -> str:
    """Break a help text into lines: prose is filled, and the meaning of an item keeps its column if that has room."""
    fitted, prose = list[str](), list[str]()
    for line in [*re.sub(r"\n {8,}(?=\S)", "  ", text).splitlines(), ""]:
        item = _ITEM.fullmatch(line)
        if line and not item:
            prose.append(line)
            continue
        fitted += textwrap.wrap(" ".join(prose), width, break_on_hyphens=False)
        prose.clear()
        if item is None or len(line) <= width:
            fitted.append(line)
            continue
        meaning = item["meaning"] or ""
        head = line.removesuffix(meaning)
        # A long head has its own line; its meaning follows as a comment.
        below = len(head) > width * 0.6
        indent = "      # " if below else " " * len(head)
        rest = re.sub(" {2,}", "  ", meaning)
        lines = textwrap.wrap(rest, width - len(indent), break_on_hyphens=False)
        fitted.append(break_command(head.rstrip(), width) if below else head + lines.pop(0))
        fitted += [indent + row for row in lines]
    return "\n".join(fitted)


class Argument:
    """An argument of a command, as `ArgumentParser.add_argument` takes it. A flag without `metavar` takes no value.

    Args:
        names: "overrides", or "-m --multirun".
        meaning: its help.
        metavar: what the help shows for its value.
        settings: everything else.
    """

    def __init__(
        self, names: str, meaning: str, metavar: str | None = None, **settings: Any
    ) -> None:
        self.names, self.settings = names.split(), settings
        settings |= {"help": meaning, "metavar": metavar}
        if names.startswith("-") and metavar is None:
            settings.pop("metavar")
            settings.setdefault("action", "store_true")


class Command(NamedTuple):
    """A command: its name, its line in the list of commands, its help, its arguments, what it does, a line after Ctrl-C."""

    name: str
    summary: str
    description: str
    arguments: tuple[Argument, ...]
    execute: Callable[[argparse.Namespace], None]
    interrupted: str = "finished work is kept, the same command continues it"


# Arguments of several commands
OVERRIDES = Argument("overrides", "settings, as listed above", "KEY=VALUE", nargs="*", default=[])
_FILE_ENDINGS = (".csv", ".html", ".json", ".jsonl", ".md", ".png", ".svg", ".tex", ".txt")
RUN = Argument("run", "a run's folder, its id or its beginning, or a model with one run", "RUN")
RESULTS_DIR = Argument(
    "--results-dir", "where the runs are (default: results)", "FOLDER", default="results"
)


def split_names(text: str | None) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def open_results(options: argparse.Namespace) -> "Results":
    """Return the results in the folder of `--results-dir`."""
    from longsumbench.runs.results import Results

    return Results.at(options.results_dir)


def output_folder(name: str | None, default: Path) -> Path:
    """Return the folder that `--output` names, or the default, after making it.

    Raises:
        UsageError: it has the ending of a file.
        EnvironmentProblem: nothing can be written there.
    """
    from longsumbench.files import writable_folder

    folder = Path(name).expanduser() if name else default
    if folder.suffix in _FILE_ENDINGS and not folder.exists():
        raise UsageError(
            f"{folder} is to be a folder, and has the name of a file: choose another by --output"
        )
    return writable_folder(folder, "--output")


def output_file(name: str | None, flag: str) -> Path | None:
    """Return the file that a flag names, after checking that it can be written; None without the flag.

    Raises:
        UsageError: the path is a folder, a pipe, a device or a loop of links.
        EnvironmentProblem: the folder is not writable.
    """
    from longsumbench.files import writable_folder

    if name is None:
        return None
    # A link may lead to a place where nothing is yet.
    table = Path(os.path.realpath(Path(name).expanduser()))
    if os.path.lexists(table) and not table.is_file():
        kind = "a folder" if table.is_dir() else "not a file (a pipe, a device or a loop of links)"
        raise UsageError(f"{flag} {name or '.'} is {kind}: give a file name")
    writable_folder(table.parent, flag)
    return table
