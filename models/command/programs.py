"""Runs a program about one text, without a shell and a terminal, within limits; nothing that it started remains.

    words, text  --Popen, in a new session-->  files of standard output and error  -->  output, or an error

Output goes to files, not pipes: a child that outlives the program cannot make us wait for the end of a pipe.
"""

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Event
from typing import IO

from longsumbench.cache.artifacts import hash_file
from longsumbench.core.terminal_text import show_text
from longsumbench.errors import DataError, EnvironmentProblem
from longsumbench.files import open_regular
from longsumbench.formatting import escape_line

# Not ${name} of a shell or JavaScript, and not {{name}}.
PLACEHOLDER = re.compile(r"(?<![${])\{(\w+)\}")
_SECONDS_BETWEEN_CHECKS = 0.1  # at the size of the outputs
_QUOTED_BYTES = 300  # of standard error
# Waits for a line, or until its pipe is closed, because of a fault or because this process was killed. Then kills the group
# of a program and, without a line, deletes the folder with its text.
_WATCHER = 'read -r line; done=$?; kill -s KILL -- "-$1"; [ $done = 0 ] || rm -rf -- "$2"'


class _ProgramFault(Exception):
    """What a program did instead of writing a text; the message begins with a verb."""


@dataclass(frozen=True)
class Program:
    """A program with its arguments and limits.

    Attributes:
        words: the program and its arguments, with placeholders.
        seconds: how long it may run.
        size: most bytes that it may write.
        stopped: is set to end it early.
    """

    words: Sequence[str]
    seconds: float = 60.0
    size: int = 10_000
    stopped: Event = field(default_factory=Event)

    def write(self, text: str, num_words: str = "") -> str:
        """Return what the program writes about a text, without blanks at the ends.

        Its whole process group is killed when it ends, at a limit, if `stopped` is set, and if this process dies.

        Args:
            text: its standard input or, if it has the placeholder, the content of {file}.
            num_words: for {words}.

        Raises:
            EnvironmentProblem: it cannot start, exceeds a limit, fails, or writes no text.
        """
        placeholders = PLACEHOLDER.findall(" ".join(self.words))
        with (
            TemporaryDirectory(prefix="longsumbench-", ignore_cleanup_errors=True) as folder,
            TemporaryFile() as errors,
        ):
            source = Path(folder, "text.txt")
            output = Path(folder, "summary.txt")
            source.write_text(text, encoding="utf-8", errors="replace")
            values = {"file": f"{source}", "output": f"{output}", "words": num_words}
            words = [
                PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), word)
                for word in self.words
            ]
            try:
                with (
                    open(os.devnull if "file" in placeholders else source, "rb") as stdin,
                    open(os.devnull if "output" in placeholders else output, "wb") as stdout,
                ):
                    program = Popen(  # noqa: S603 - the user's command, without a shell
                        words, stdin=stdin, stdout=stdout, stderr=errors, start_new_session=True
                    )
            except OSError as error:
                raise EnvironmentProblem(f"'{words[0]}' cannot be started ({error})") from error
            try:
                self._wait(program, output, errors)
                return self._read(output)
            except _ProgramFault as fault:
                raise EnvironmentProblem(f"'{words[0]}' {fault}{_last_line(errors)}") from fault

    def _wait(self, program: Popen[bytes], output: Path, errors: IO[bytes]) -> None:
        """Wait until a program ends, check how, and kill what is left of its group."""
        deadline = time.monotonic() + self.seconds
        watcher = ["/bin/sh", "-c", _WATCHER, "sh", str(program.pid), str(output.parent)]
        try:
            with Popen(watcher, stdin=PIPE, stderr=DEVNULL, start_new_session=True) as watching:  # noqa: S603 - no text is in it
                while program.returncode is None:
                    with suppress(TimeoutExpired):
                        program.wait(_SECONDS_BETWEEN_CHECKS)
                    size = os.fstat(errors.fileno()).st_size
                    with suppress(OSError):
                        size = max(size, output.stat().st_size)
                    if size > self.size:
                        raise _ProgramFault(
                            f"wrote more than {self.size:,} bytes (model.output_limit)"
                        )
                    if self.stopped.is_set():
                        raise _ProgramFault("was interrupted")
                    if time.monotonic() > deadline:
                        raise _ProgramFault(
                            f"was not done after {self.seconds:g} seconds (model.timeout_seconds)"
                        )
                watching.communicate(b"\n")
        finally:
            program.kill()  # if there is no watcher
            program.wait()
        code = program.returncode
        if code:
            kind = "exit code" if code > 0 else "signal"
            raise _ProgramFault(f"ended with {kind} {abs(code)}")

    def _read(self, output: Path) -> str:
        try:
            with open_regular(output) as file:
                text = file.read().decode("utf-8-sig").strip()
        except OSError as error:
            raise _ProgramFault("wrote no file {output}") from error
        except UnicodeDecodeError as error:
            raise _ProgramFault("wrote bytes that are not UTF-8") from error
        if "\0" in text:
            raise _ProgramFault("wrote binary data")
        if not show_text(text).strip():
            raise _ProgramFault("wrote nothing")
        return text


def hash_files(words: Sequence[str]) -> dict[str, str]:
    """Return word → SHA-256 of the program's file, and of files that are further words of a command.

    Raises:
        EnvironmentProblem: there is no such program, or a file cannot be read.
    """
    program = shutil.which(words[0])
    if program is None:
        raise EnvironmentProblem(
            f"there is no program '{words[0]}' that can be run here (model.command): install it, or give its path"
        )
    paths = {words[0]: program}  # the first one
    for word in words[1:]:
        if os.path.isfile(word):
            paths.setdefault(word, word)
    try:
        return {word: hash_file(Path(path)) for word, path in paths.items()}
    except OSError as error:
        raise EnvironmentProblem(
            f"model.command has a file that cannot be read: {error}"
        ) from error


def check_program_files(hashes: Mapping[str, str]) -> None:
    """Check that the files of a program are those that were hashed by `hash_files`.

    Raises:
        DataError: one was changed.
    """
    current = hash_files([*hashes])
    for word, sha256 in hashes.items():
        if current.get(word) != sha256:
            problem = f"'{word}' (model.command) was changed while the run went on"
            raise DataError(f"{problem}: run the same command again, which is another run")


@cache
def read_version(words: tuple[str, ...]) -> str:
    """Return what a command prints as its program's version.

    Raises:
        EnvironmentProblem: it prints nothing, or fails.
    """
    try:
        return Program(words).write("")
    except EnvironmentProblem as problem:
        raise EnvironmentProblem(f"model.version_command: {problem}") from problem


def _last_line(errors: IO[bytes]) -> str:
    """Return the last line of standard error, after a colon; empty if there is none."""
    errors.seek(max(0, os.fstat(errors.fileno()).st_size - _QUOTED_BYTES))
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return f": {escape_line(lines[-1])}" if lines else ""
