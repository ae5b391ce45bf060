"""The errors that users see, as one tree; the class decides the exit code.

    SuiteError
    ├── PointsFailed        1   some points of a sweep failed
    ├── UsageError          2   wrong usage or configuration
    │   ├── UnknownName     2   a name is not registered; suggests the nearest one
    │   └── BrokenPlugin    2   a system, corpus, metric or ranker cannot be imported
    ├── DataError           3   a file or an example cannot be used
    │   └── MissingSplit    3   a system learns from a training split, and there is none
    ├── EnvironmentProblem  4   network, disk, memory
    └── Bug                70   an unexpected error; its traceback is in a log

Every message is one line: what happened, where, what to do. An interrupt (Ctrl-C, SIGTERM) ends with 130.
"""

import difflib
import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from longsumbench.formatting import redact

INTERRUPTED = 130
# torch's messages: on a GPU, of cuBLAS and cuDNN, on a CPU, and for a tensor whose size in bytes exceeds 64 bits; then
# those of the system, of its loader of libraries and of Arrow.
_ON_GPU = ("out of memory", "_status_alloc_failed", "device_allocation_failed")
_OUT_OF_MEMORY = (
    *_ON_GPU,
    "can't allocate memory",
    "storage size calculation overflowed",
    "cannot allocate memory",
    "failed to map segment",
    "malloc of size",
)
_SMALLER_STEPS = (
    "choose train.gradient_checkpointing=true, a smaller train.batch_size with a larger train.accumulation"
    " (the same budget), a smaller decode.batch_size, or smaller lengths"
)
_MORE_MEMORY = "allow this process more (ulimit -v, the limit of a job), or divide a large file"
IMPOSSIBLE = (errno.ENAMETOOLONG, errno.ELOOP)  # errors for a mistyped path
# Beginnings of what Python says of a path with the character NUL, of a loop of links, and of ~ with an unknown user
_IMPOSSIBLE_PATHS = ("embedded null", "Symlink loop", "Could not determine home")
# characters of a path in a message
_LONGEST_PATH = 200


class SuiteError(Exception):
    """A problem that the user can act on; shown as one line, never as a traceback."""

    exit_code = 1

    def __str__(self) -> str:
        """Return the message without secrets, and with escapes for half characters, which cannot be printed."""
        return redact(super().__str__()).encode(errors="backslashreplace").decode()


class PointsFailed(SuiteError):
    """Some runs of a sweep failed; the others are finished."""

    exit_code = 1


class UsageError(SuiteError):
    """A command, an override or a setting is invalid."""

    exit_code = 2


class UnknownName(UsageError):
    """A name is not registered; `kind` is "model", "dataset", …."""

    def __init__(self, kind: str, name: str, choices: Iterable[str]) -> None:
        names = sorted(choices)
        super().__init__(
            f"unknown {kind} '{name}'{did_you_mean(name, names)}; known: {', '.join(names) or 'none'}"
        )
        self.kind, self.name, self.known = kind, name, names

    def __reduce__(self) -> tuple[type["UnknownName"], tuple[str, str, list[str]]]:
        """Pickle by the arguments, so that the error can be raised in another process."""
        return type(self), (self.kind, self.name, self.known)


class BrokenPlugin(UsageError):
    """The module of a registered name cannot be imported, or its system has no usable `Config`."""


class DataError(SuiteError):
    """A file or an example cannot be used; `problem` says what is wrong and what to do."""

    exit_code = 3

    def __init__(
        self, problem: str, path: Path | str | None = None, line: int | None = None
    ) -> None:
        if path is not None:
            problem = f"{path}: {problem}" if line is None else f"{path}:{line}: {problem}"
        super().__init__(problem)
        self.path, self.line = path, line


class MissingSplit(DataError):
    """A system learns from a training split, and the dataset has none."""


class EnvironmentProblem(SuiteError):
    """A problem of the machine: no network, a full disk, too little memory."""

    exit_code = 4


class Bug(SuiteError):
    """A bug in this program or in a plug-in; its traceback is in a log."""

    exit_code = 70


def as_suite_error(error: BaseException) -> SuiteError | None:
    """Convert an error that a user can act on; return None for a bug.

    Converted are errors of the operating system, invalid paths and a lack of memory.
    """
    if isinstance(error, SuiteError):
        return error
    if isinstance(error, MemoryError) or any(
        words in str(error).lower() for words in _OUT_OF_MEMORY
    ):
        # torch's errors are RuntimeErrors
        advice = _SMALLER_STEPS if isinstance(error, RuntimeError) else _MORE_MEMORY
        return EnvironmentProblem(
            f"out of memory ({type(error).__name__}): {advice}; then run the same command again"
        )
    if _disk_is_full(error):
        location = ""
        if isinstance(error, OSError) and error.filename:
            location = f" at {error.filename}"
        return EnvironmentProblem(
            f"the disk is full{location}; free some space, then run the same command again"
        )
    if "file too large" in str(error).lower():
        return EnvironmentProblem(
            f"a file would exceed the largest size that is allowed ({error}); raise the limit (ulimit -f), then run the"
            " same command again"
        )
    if isinstance(error, OSError) and error.errno is not None:
        return _as_file_problem(error)
    return _as_impossible_path(error)


@contextmanager
def suite_errors() -> Iterator[None]:
    """Raise each error that a user can fix as a SuiteError. Bugs stay unchanged."""
    try:
        yield
    except Exception as error:
        if (problem := as_suite_error(error)) is None or problem is error:
            raise
        raise problem from error


def _as_file_problem(error: OSError) -> SuiteError:
    path = (
        os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else error.filename
    )
    reason = error.strerror or f"error {error.errno}"
    if error.errno in IMPOSSIBLE:
        return UsageError(
            f"cannot use the path {shorten_path(str(path or ''))} ({reason}); correct it"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return EnvironmentProblem(
            f"no permission to use {path or 'a file'} ({reason}); choose another, or change it"
        )
    if path is None:
        return EnvironmentProblem(f"the system refused ({reason}); run the same command again")
    return EnvironmentProblem(
        f"cannot use {path} ({reason}); check what is there, then run the same command again"
    )


def _as_impossible_path(error: BaseException) -> UsageError | None:
    text = str(error)
    if isinstance(error, UnicodeEncodeError) and "surrogates" in error.reason:
        around = error.object[max(0, error.start - 60) : error.end + 20]
        return UsageError(
            f"half a character (a lone surrogate) in '{around}'; correct the text, or if it is a name that is not UTF-8,"
            " rename the file or the folder"
        )
    if isinstance(error, ValueError | RuntimeError) and text.startswith(_IMPOSSIBLE_PATHS):
        return UsageError(f"cannot use the path ({text}); correct it")
    return None


def shorten_path(path: str) -> str:
    """Return a path for a message, without its middle if it is very long."""
    return (
        path
        if len(path) <= _LONGEST_PATH
        else f"{path[: _LONGEST_PATH // 2]}…{path[-_LONGEST_PATH // 2 :]}"
    )


def _disk_is_full(error: BaseException) -> bool:
    """Recognize a full disk, also in messages of libraries without an error number."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    # safetensors quotes the system; torch finds that its file did not grow
    text = str(error).lower()
    did_not_grow = "inline_container" in text and "unexpected pos" in text
    return did_not_grow or "no space left on device" in text


@contextmanager
def naming_path(path: Path) -> Iterator[None]:
    """Add a path to the error of a full disk, which has none when an open file is written."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename is None:
            error.filename = str(path)
        raise


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the nearest choice, or "" if none is near."""
    matches = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.5)
    return f" (did you mean '{matches[0]}'?)" if matches else ""
