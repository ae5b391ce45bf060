"""What can go wrong, as one tree; the class decides the exit code.

    SuiteError
    ├── PointsFailed        1   some points of a sweep failed
    ├── NotRepeated         1   a run came out otherwise when it was done again
    ├── UsageError          2   wrong usage or configuration
    │   ├── UnknownName     2   a name nobody registered; says the nearest one
    │   └── BrokenPlugin    2   a system, corpus, metric or ranker that cannot be imported
    ├── DataError           3   a file or an example that cannot be used
    ├── EnvironmentProblem  4   network, disk, memory
    └── Bug                70   an error that nobody expected; its traceback is in a log

Every message is one line: what happened, where, what to do. An interrupt (Ctrl-C, SIGTERM) ends with 130.
"""

import difflib
import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

INTERRUPTED = 130
# Of torch: on a GPU, on a CPU, and for a tensor whose size in bytes is no 64-bit number.
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "storage size calculation overflowed")
IMPOSSIBLE = (errno.ENAMETOOLONG, errno.ELOOP)  # no machine has such a path: the user typed it wrong
_LONGEST_PATH = 200  # characters of a path that a message shows


class SuiteError(Exception):
    """A problem that the user can act on; shown as one line, never as a traceback."""

    exit_code = 1


class PointsFailed(SuiteError):
    """Some points of a sweep failed; the others are finished and kept."""

    exit_code = 1


class NotRepeated(SuiteError):
    """A run came out otherwise when it was done again; both are kept."""

    exit_code = 1


class UsageError(SuiteError):
    """A command, an override or a setting that cannot be meant."""

    exit_code = 2


class UnknownName(UsageError):
    """A name that is not registered.

    Args:
        kind: what was looked for, as the user would call it ("model", "dataset").
        name: what the user wrote.
        choices: the names that exist.
    """

    def __init__(self, kind: str, name: str, choices: Iterable[str]) -> None:
        known = sorted(choices)
        super().__init__(f"unknown {kind} '{name}'{did_you_mean(name, known)}; known: {', '.join(known) or 'none'}")
        self.kind, self.name, self.known = kind, name, known

    def __reduce__(self) -> tuple[type["UnknownName"], tuple[str, str, list[str]]]:
        """Pickle by the arguments, so that it reaches the user from another process."""
        return type(self), (self.kind, self.name, self.known)


class BrokenPlugin(UsageError):
    """A registered name whose module cannot be imported."""


class DataError(SuiteError):
    """A file or an example that cannot be used.

    Args:
        problem: what is wrong and what to do about it.
        path: the file it stands in, if any.
        line: the line in that file, counted from 1.
    """

    exit_code = 3

    def __init__(self, problem: str, path: Path | str | None = None, line: int | None = None) -> None:
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(f"{where}{problem}")
        self.path, self.line = path, line


class EnvironmentProblem(SuiteError):
    """The machine, not the user: no network, a full disk, too little memory."""

    exit_code = 4


class Bug(SuiteError):
    """A fault of this program, or of a plug-in; its traceback is in a log."""

    exit_code = 70


def as_suite_error(error: BaseException) -> SuiteError | None:
    """Return the problem that a user can act on, or None if the error is a fault of the program.

    Every error of the operating system is one, and every path that no operating system accepts.
    """
    if isinstance(error, SuiteError):
        return error
    if isinstance(error, MemoryError) or any(words in str(error).lower() for words in _OUT_OF_MEMORY):
        advice = "choose smaller train.batch_size, decode.batch_size or lengths"
        return EnvironmentProblem(f"out of memory ({type(error).__name__}); {advice}, then run the same command again")
    if _disk_is_full(error):
        where = f" at {name}" if (name := getattr(error, "filename", None)) else ""
        return EnvironmentProblem(f"the disk is full{where}; free some space, then run the same command again")
    if isinstance(error, OSError) and error.errno is not None:
        return _as_problem_of_a_file(error)
    return _as_impossible_path(error)


@contextmanager
def suite_errors() -> Iterator[None]:
    """Raise every problem that a user can act on as a SuiteError; a fault of the program stays as it is."""
    try:
        yield
    except Exception as error:
        if (problem := as_suite_error(error)) is None or problem is error:
            raise
        raise problem from error


def _as_problem_of_a_file(error: OSError) -> SuiteError:
    named = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else error.filename
    reason = error.strerror or f"error {error.errno}"
    if error.errno in IMPOSSIBLE:
        return UsageError(f"cannot use the path {_shortened(str(named or ''))} ({reason}); correct it")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return EnvironmentProblem(f"no permission to use {named or 'a file'} ({reason}); choose another, or change it")
    if named is None:
        return EnvironmentProblem(f"the system refused ({reason}); run the same command again")
    return EnvironmentProblem(f"cannot use {named} ({reason}); check what is there, then run the same command again")


def _as_impossible_path(error: BaseException) -> UsageError | None:
    """Return what Python itself refuses as a path, which is no error of the operating system."""
    words = str(error)
    if isinstance(error, ValueError) and words.startswith("embedded null"):
        return UsageError("a path has the character NUL, which no file's name can have; correct it")
    if isinstance(error, UnicodeEncodeError) and "surrogates" in error.reason:
        around = error.object[max(0, error.start - 60) : error.end + 20]
        return UsageError(f"a name is not UTF-8: '{around}'; rename the file or the folder, or correct the path")
    if isinstance(error, RuntimeError) and words.startswith("Symlink loop"):
        return UsageError(f"cannot use the path ({words}); correct it")
    if isinstance(error, RuntimeError) and words.startswith("Could not determine home"):
        return UsageError("a path begins with ~ and the name of no user of this machine; correct it")
    return None


def _shortened(path: str) -> str:
    """Return a path whose middle is left out if it is very long."""
    return path if len(path) <= _LONGEST_PATH else f"{path[: _LONGEST_PATH // 2]}…{path[-_LONGEST_PATH // 2 :]}"


def _disk_is_full(error: BaseException) -> bool:
    """Recognize a full disk, also in the words of libraries whose errors carry no number."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    words = str(error).lower()  # safetensors quotes the system; torch's writer finds that its file did not grow
    return "no space left on device" in words or ("inline_container" in words and "unexpected pos" in words)


@contextmanager
def naming_path(path: Path) -> Iterator[None]:
    """Put a path into what the system says of a full disk when an open file is written, which does not name it."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename is None:
            error.filename = str(path)
        raise


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the nearest choice, or nothing when none is near."""
    near = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.5)
    return f" (did you mean '{near[0]}'?)" if near else ""
