"""Progress of long steps: a bar with an ETA on a terminal, a plain line now and then elsewhere.

A step that takes more than four seconds prints a line, even before its first item is done.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeVar

from tqdm import tqdm

from longsumbench.formatting import escape_line

_Item = TypeVar("_Item")
SECONDS_UNTIL_SHOWN = 4.0  # of a step's first line
SECONDS_BETWEEN_LINES = 15.0
_watchers: list[Callable[["Progress"], None]] = []


class Progress:
    """A long step of a known (or unknown) number of items; use it as a context manager.

    Args:
        what: the step, as a user would call it ("training").
        total: how many items it has; None when unknown.
        unit: what an item is ("steps").
        stream: where it is shown; stderr unless a test says otherwise.
        paced: whether the time left is told by the speed so far.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        unit: str = "examples",
        stream: TextIO | None = None,
        paced: bool = True,
    ) -> None:
        self.what, self.total, self.unit, self.paced = what, total, unit, paced
        self.done = 0
        self._stream = stream or sys.stderr
        self._started = self._said = time.monotonic()
        self._first = 0
        self._note = ""
        live = self._stream.isatty()
        form = None if paced else "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
        self._bar = (
            tqdm(total=total, desc=what, unit=f" {unit}", bar_format=form, file=self._stream, leave=False)
            if live
            else None
        )
        self._first_line = threading.Timer(SECONDS_UNTIL_SHOWN, self._print_line)

    def __enter__(self) -> "Progress":
        if self._bar is None:
            self._first_line.daemon = True
            self._first_line.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._first_line.cancel()
        if self._bar is not None:
            self._bar.close()

    def start_at(self, done: int) -> None:
        """Count items that an earlier process did; the speed is that of the others, from now on."""
        self.done = self._first = done
        self._started = time.monotonic()
        if self._bar is not None:
            self._bar.reset()
            self._bar.initial = self._bar.n = self._bar.last_print_n = done
            self._bar.refresh()

    def advance(self, items: int = 1, note: str = "") -> None:
        """Say that some more items are done; `note` stands behind the bar ("loss 4.21")."""
        self.done += items
        self._note = note or self._note
        for watcher in _watchers:
            watcher(self)
        if self._bar is not None:
            self._bar.set_postfix_str(self._note, refresh=False)
            self._bar.update(items)
        elif time.monotonic() - self._said >= SECONDS_BETWEEN_LINES:
            self._print_line()

    def _print_line(self) -> None:
        self._said = time.monotonic()
        print(escape_line(self.line()), file=self._stream, flush=True)

    def line(self) -> str:
        """Return the progress as plain text: "training: 120/500 steps, 0:48 left, loss 4.21"."""
        of = f"/{self.total}" if self.total else ""
        parts = [f"{self.what}: {self.done}{of} {self.unit}"]
        elapsed, here = time.monotonic() - self._started, self.done - self._first
        if self.paced and self.total and here:
            left = max(0, round(elapsed / here * (self.total - self.done)))
            parts.append(f"{left // 60}:{left % 60:02d} left")
        return ", ".join([*parts, self._note] if self._note else parts)


@contextmanager
def watching_progress(watcher: Callable[[Progress], None]) -> Iterator[None]:
    """Tell somebody of every advance of every step inside."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def track(
    items: Iterable[_Item], what: str, total: int | None, unit: str = "examples", stream: TextIO | None = None
) -> Iterator[_Item]:
    """Yield the items, showing the progress through them."""
    with Progress(what, total, unit, stream) as progress:
        for item in items:
            yield item
            progress.advance()


@contextmanager
def phase(what: str) -> Iterator[None]:
    """Print the name of a step without items ("loading the libraries") if it takes more than four seconds."""
    line = threading.Timer(SECONDS_UNTIL_SHOWN, print_line, [f"{what} …"])
    line.daemon = True
    line.start()
    try:
        yield
    finally:
        line.cancel()


def print_line(line: str) -> None:
    """Print a line to stderr, its control characters escaped, above the bars that are shown there."""
    tqdm.write(escape_line(line), file=sys.stderr)
    sys.stderr.flush()
