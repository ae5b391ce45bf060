"""Runs a program about one text, without a shell and a terminal, within limits; nothing that it started remains.

    words, text  --Popen, in a session of its own-->  files of standard output and error  -->  output, or an error

Output goes to files, not pipes: a child that outlives the program cannot make us wait for the end of a pipe.
"""

import os
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from tempfile import TemporaryFile
from threading import Event
from typing import IO

from longsumbench.errors import EnvironmentProblem
from longsumbench.files import hash_regular, open_regular
from longsumbench.formatting import escape_line

_SECONDS_BETWEEN_CHECKS = 0.1  # at the size of the outputs
_QUOTED_BYTES = 300  # of standard error
# Waits until its pipe is closed, also because this process was killed; then kills the group of a program.
_WATCHER = 'read -r line; kill -s KILL -- "-$1"'


class _ProgramFault(Exception):
    """What a program did instead of writing a text; the message begins with a verb."""


@dataclass(frozen=True)
class ProgramLimits:
    """What a program may take for one text: seconds, and bytes of each output."""

    seconds: float
    size: int


_OF_VERSION = ProgramLimits(60.0, 10_000)


def hash_files(words: Sequence[str]) -> dict[str, str]:
    """Return word → SHA-256 of the program's file, and of files that are further words of a command.

    Raises:
        EnvironmentProblem: there is no such program.
    """
    program = shutil.which(words[0])
    if program is None:
        raise EnvironmentProblem(
            f"there is no program '{words[0]}' that can be run here (model.command): install it, or give its path"
        )
    paths = {words[0]: program}
    for word in words[1:]:
        if os.path.isfile(word):
            paths[word] = word
    return {word: hash_regular(Path(path)) for word, path in paths.items()}


@cache
def version_of(words: tuple[str, ...]) -> str:
    """Return what a command prints as its program's version.

    Raises:
        EnvironmentProblem: it prints nothing, or fails.
    """
    try:
        return run_program(words, "", _OF_VERSION, Event())
    except EnvironmentProblem as problem:
        raise EnvironmentProblem(f"model.version_command: {problem}") from problem


def run_program(
    words: Sequence[str],
    text: str,
    limits: ProgramLimits,
    stopped: Event,
    output: Path | None = None,
) -> str:
    """Return what a program writes, without blanks at the ends.

    Its whole process group is killed when it ends, at a limit, if `stopped` is set, and if this process dies.

    Args:
        words: the program and its arguments.
        text: its standard input.
        limits: of time and size.
        stopped: is set to end it early.
        output: the file that it writes; None: its standard output.

    Raises:
        EnvironmentProblem: it cannot start, exceeds a limit, fails, or writes no text.
    """
    with TemporaryFile() as source, TemporaryFile() as written, TemporaryFile() as errors:
        source.write(text.encode(errors="replace"))
        source.seek(0)
        try:
            program = Popen(  # noqa: S603 - the user's command, without a shell
                words, stdin=source, stdout=written, stderr=errors, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise EnvironmentProblem(f"'{words[0]}' cannot be started ({error})") from error
        try:
            _wait(program, limits, stopped, (written, errors))
            return _read_output(written, output, limits.size)
        except _ProgramFault as fault:
            raise EnvironmentProblem(f"'{words[0]}' {fault}{_last_line(errors)}") from fault


def _wait(
    program: Popen[bytes], limits: ProgramLimits, stopped: Event, outputs: Sequence[IO[bytes]]
) -> None:
    """Wait until a program ends, check how, and kill what is left of its group."""
    deadline = time.monotonic() + limits.seconds
    watcher = ["/bin/sh", "-c", _WATCHER, "sh", str(program.pid)]
    try:
        with Popen(watcher, stdin=PIPE, stderr=DEVNULL, start_new_session=True):  # noqa: S603 - no text is in it
            while program.returncode is None:
                with suppress(TimeoutExpired):
                    program.wait(_SECONDS_BETWEEN_CHECKS)
                _check_limits(program, limits, deadline, outputs)
                if stopped.is_set():
                    raise _ProgramFault("was interrupted")
    finally:
        program.kill()  # if there is no watcher
        program.wait()
    code = program.returncode
    if code < 0:
        raise _ProgramFault(f"was ended by signal {-code} ({signal.strsignal(-code)})")
    if code:
        raise _ProgramFault(f"ended with exit code {code}")


def _check_limits(
    program: Popen[bytes], limits: ProgramLimits, deadline: float, outputs: Sequence[IO[bytes]]
) -> None:
    if any(os.fstat(file.fileno()).st_size > limits.size for file in outputs):
        raise _ProgramFault(f"wrote more than {limits.size:,} bytes (model.output_limit)")
    if program.returncode is None and time.monotonic() > deadline:
        raise _ProgramFault(
            f"was not done after {limits.seconds:g} seconds (model.timeout_seconds)"
        )


def _read_output(written: IO[bytes], output: Path | None, size: int) -> str:
    """Return the text in the file that a program wrote, or in its standard output."""
    name = "its standard output"
    written.seek(0)
    content = written.read()
    if output is not None:
        name = "{output}"
        try:
            with open_regular(output) as file:
                content = file.read(size + 1)
        except OSError as error:
            raise _ProgramFault("wrote no file {output}") from error
    if len(content) > size:
        raise _ProgramFault(f"wrote more than {size:,} bytes (model.output_limit)")
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise _ProgramFault(f"wrote bytes that are not UTF-8 to {name}") from error
    if not text or "\0" in text:
        raise _ProgramFault(f"wrote {'binary data' if text else 'nothing'} to {name}")
    return text


def _last_line(errors: IO[bytes]) -> str:
    """Return the last line of standard error, after a colon; empty if there is none."""
    errors.seek(max(0, os.fstat(errors.fileno()).st_size - _QUOTED_BYTES))
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return f": {escape_line(lines[-1])}" if lines else ""
