"""Progress of long steps: a bar with the time left on a terminal, otherwise a line every 15 seconds.

A step that takes more than four seconds prints a line even before its first item is done.

The logger "longsumbench" shows its lines on stderr, from level INFO on. At a higher level no progress is shown either.
"""

import logging
import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeVar

from longsumbench.formatting import escape_line, format_duration, redact

with warnings.catch_warnings():
    # that this is a notebook, or that it has no widgets
    warnings.simplefilter("ignore")
    from tqdm.autonotebook import tqdm

_Tracked = TypeVar("_Tracked")
_log = logging.getLogger("longsumbench")  # of all modules of the suite
# for the processes that a command starts
_LEVEL_VARIABLE = "LONGSUMBENCH_LOG_LEVEL"
SECONDS_UNTIL_SHOWN = 4.0  # before the first line of a step
SECONDS_BETWEEN_LINES = 15.0
_BAR_WITHOUT_TIME = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
_watchers: list[Callable[["Progress"], None]] = []
_running: list["Progress"] = []  # the innermost step last


class Progress:
    """A long step with a known or unknown number of items; use it as a context manager.

    Args:
        label: name of the step ("training").
        total: number of items; None if unknown.
        unit: of the items ("steps").
        stream: output; None: stderr.
        paced: estimate the time left from the speed so far.

    Attributes:
        expected: the work of all items, of which `note_progress` tells; the time left then goes by work. 0: by items.
    """

    expected = 0.0
    _work = 0.0

    def __init__(
        self,
        label: str,
        total: int | None,
        unit: str = "texts",
        stream: TextIO | None = None,
        paced: bool = True,
    ) -> None:
        self.label, self.total, self.unit, self.paced = redact(label), total, unit, paced
        self.done = 0
        self._stream = stream or sys.stderr
        self._printed = time.monotonic()
        # Time, and items or work done, at the start and after each line.
        self._marks: deque[tuple[float, float]] = deque([(self._printed, 0)], maxlen=5)
        self._note = ""
        visible = _log.isEnabledFor(logging.INFO)
        self._in_lines = visible and not (self._stream.isatty() or tqdm.__name__ == "tqdm_notebook")
        self._bar = tqdm(
            total=total,
            desc=self.label,
            unit=f" {unit}",
            bar_format=None if paced else _BAR_WITHOUT_TIME,
            file=self._stream,
            leave=False,
            # a note without a completed item is shown, too
            miniters=0,
            disable=self._in_lines or not visible,
        )
        self._first_line = threading.Timer(SECONDS_UNTIL_SHOWN, self._print_line)

    def __enter__(self) -> "Progress":
        _running.append(self)
        if self._in_lines:
            self._first_line.daemon = True
            self._first_line.start()
        return self

    def __exit__(self, *exception: object) -> None:
        _running.remove(self)
        self._first_line.cancel()
        self._bar.close()

    def start_at(self, count: int) -> None:
        """Count items that an earlier process completed; they do not count for the speed."""
        self.done = count
        self._marks[0] = (time.monotonic(), count)
        if not self._bar.disable:
            self._bar.reset()
            self._bar.initial = self._bar.n = self._bar.last_print_n = count
            self._bar.refresh()

    def expect(self, work: float) -> None:
        """Estimate the time left from work done; see `expected`."""
        self.expected = work
        if not work:
            return
        self._marks[0] = (time.monotonic(), 0)
        if not self._bar.disable:
            self._bar.bar_format = _BAR_WITHOUT_TIME

    def advance(self, items: int = 1, note: str = "", work: float = 0.0) -> None:
        """Count completed items and work; `note` follows the bar ("loss 4.21")."""
        self.done += items
        self._work += work
        self._note = redact(note) or self._note
        for watcher in _watchers:
            watcher(self)
        left = self._time_left() if self.expected else ""
        self._bar.set_postfix_str(", ".join(filter(None, [left, self._note])), refresh=False)
        self._bar.update(items)
        if self._in_lines and time.monotonic() - self._printed >= SECONDS_BETWEEN_LINES:
            self._print_line()

    def _print_line(self) -> None:
        self._printed = time.monotonic()
        print(escape_line(self.line()), file=self._stream, flush=True)
        self._marks.append((self._printed, self._work if self.expected else self.done))

    def line(self) -> str:
        """Return the progress as plain text: "training: 120/500 steps, 48 s left, loss 4.21"."""
        total = f"/{self.total}" if self.total else ""
        parts = [f"{self.label}: {self.done}{total} {self.unit}"]
        return ", ".join(filter(None, [*parts, self._time_left(), self._note]))

    def _time_left(self) -> str:
        # A minute ago: the first item often takes longer than the others.
        since, done_before = self._marks[0]
        done, total = (self._work, self.expected) if self.expected else (self.done, self.total)
        if not (self.paced and total and done_before < done <= total):
            return ""
        seconds_left = (time.monotonic() - since) / (done - done_before) * (total - done)
        return f"{format_duration(seconds_left)} left"


def note_progress(note: str, work: float = 0.0) -> None:
    """Show how far an item of the innermost running step is ("token 120 of 2,048"), and how much work was just done."""
    if _running:
        _running[-1].advance(0, note, work)


@contextmanager
def watching_progress(watcher: Callable[[Progress], None]) -> Iterator[None]:
    """Call `watcher` after every advance of every step inside."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def track(
    items: Iterable[_Tracked], label: str, total: int | None, unit: str = "texts"
) -> Iterator[_Tracked]:
    """Yield the items and show the progress."""
    with Progress(label, total, unit) as progress:
        for item in items:
            yield item
            progress.advance()


@contextmanager
def phase(label: str) -> Iterator[None]:
    """Print the name of a step without items ("loading the libraries") if it takes more than four seconds."""
    line = threading.Timer(SECONDS_UNTIL_SHOWN, _log.info, [f"{label} …"])
    line.daemon = True
    line.start()
    try:
        yield
    finally:
        line.cancel()


class LogHandler(logging.Handler):
    """Shows log lines on stderr above the progress bars, with control characters escaped."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show a line without secrets."""
        tqdm.write(escape_line(redact(self.format(record))), file=sys.stderr)
        sys.stderr.flush()


@contextmanager
def log_level(level: str | None) -> Iterator[None]:
    """Log from a level on ("DEBUG", "WARNING") in this process and in those that it starts; None: no change."""
    if level is None:
        yield
        return
    previous_level, variable = _log.level, os.environ.get(_LEVEL_VARIABLE)
    _log.setLevel(level)
    os.environ[_LEVEL_VARIABLE] = level
    try:
        yield
    finally:
        _log.setLevel(previous_level)
        if variable is None:
            del os.environ[_LEVEL_VARIABLE]
        else:
            os.environ[_LEVEL_VARIABLE] = variable


_log.handlers[:] = [LogHandler()]
_log.propagate = False
# the user's own choice goes first
if not _log.level:
    _log.setLevel(
        logging.getLevelNamesMapping().get(os.environ.get(_LEVEL_VARIABLE, ""), logging.INFO)
    )
