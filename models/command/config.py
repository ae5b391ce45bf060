"""Settings of programs and of functions of Python (`model.*`)."""

import shlex
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from longsumbench.core import (
    AskedWords,
    Capabilities,
    Count,
    Decoding,
    OneOf,
    Seconds,
    SystemConfig,
    Text,
    TrainConfig,
    setting,
)
from longsumbench.errors import UsageError
from longsumbench.models.command.programs import PLACEHOLDER, hash_files, read_version

_Input = Annotated[str, OneOf("text", "json")]

_PLACEHOLDERS = ("file", "output", "words")


@dataclass
class _ForeignConfig(SystemConfig):
    """The limits of code that is not the suite's."""

    timeout_seconds: Seconds = setting(
        600.0, "longest time for one text", "seconds", decides="nothing"
    )
    output_limit: Count = setting(
        1_000_000,
        "most that is written for one text, and most that is reported",
        "bytes",
        decides="nothing",
    )

    version = 2
    decided_by = frozenset({"decode"})  # `decode.failed`
    capabilities = Capabilities(reads_layout=True)


@dataclass
class CommandConfig(_ForeignConfig):
    """Any program: it is given a text, and what it writes is the summary."""

    name: Text = setting("command", "name of the system")
    command: Text | None = setting(
        None,
        "the program and its arguments; {file}: a file with the text (else standard input) | {output}: a file for the"
        " summary (else standard output) | {words}: length to ask for",
    )
    version_command: Text | None = setting(
        None, "a command that prints the program's version, which is part of the run's id"
    )
    input: _Input = setting(
        "text", "text: title, headings and paragraphs | json: title, query, documents"
    )
    length: AskedWords = setting(
        "train", "{words}: a number | train: mean length of the training targets", "words"
    )
    parallel: Count = setting(1, "programs at once", "programs", decides="nothing")

    @property
    def words(self) -> list[str]:
        """The words of the command; no shell reads them.

        Raises:
            UsageError: there is no command, or it has a quote that is not closed.
        """
        return _split_command("command", self.command)

    @property
    def placeholders(self) -> list[str]:
        """The names in braces that the command has."""
        return PLACEHOLDER.findall(self.command or "")

    @cached_property
    def program(self) -> dict[str, Any]:
        """The version that the program prints, and the hashes of its file and of files that are words, at first use.

        Raises:
            EnvironmentProblem: there is no such program, or it prints no version.
        """
        program: dict[str, Any] = {"program_files": hash_files(self.words)}
        if self.version_command:
            words = _split_command("version_command", self.version_command)
            program["program_version"] = read_version(tuple(words))
        return program

    def identity(self) -> dict[str, Any]:
        """Return the settings, and `program`."""
        return {**super().identity(), **self.program}

    def without_effect(self, train: TrainConfig, decode: Decoding) -> set[str]:
        """Return the length if the program is not asked for one."""
        return set() if "words" in self.placeholders else {"length"}

    def __post_init__(self) -> None:
        for name in self.placeholders:
            if name not in _PLACEHOLDERS:
                raise UsageError(
                    f"model.command has {{{name}}}: it may have {{file}}, {{output}} and {{words}}; other braces need a"
                    f" blank, as in {{ {name} }}"
                )


def _split_command(name: str, command: str | None) -> list[str]:
    try:
        words = shlex.split(command or "")
    except ValueError as error:
        raise UsageError(f"model.{name}={command} cannot be read ({error}): close it") from error
    if not words:
        raise UsageError(
            f"model.{name} is missing: give a program and its arguments, as in model.{name}='my_tool {{file}}'"
        )
    return words


@dataclass
class FunctionConfig(_ForeignConfig):
    """A function of Python, (text, query=…) → summary: `longsumbench.run(model=function)`."""

    name: Text = setting("function", "name of the system")
    function: Text | None = setting(
        None, "its name and a hash of all that it reaches; run(model=function) sets it"
    )
