"""Signals that end a command: SIGTERM acts as Ctrl-C does, and a training first saves what it has."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM (`kill`, a cluster's time limit) raise KeyboardInterrupt inside, as Ctrl-C does.

    A handler that somebody else has set stays: submitit ignores SIGTERM, and acts on another signal.
    """
    if not _in_main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class SignalNote:
    """Notes the first SIGINT and the first SIGTERM; a second one of a kind raises KeyboardInterrupt at once."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._noted: set[int] = set()

    def __bool__(self) -> bool:
        """Whether a signal was noted."""
        return bool(self._noted)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if number in self._noted:
            signal.default_int_handler(number, frame)
        first = not self._noted
        self._noted.add(number)
        if first and os.getpid() == self._process:  # not in a process that loads batches
            line = "interrupted: saves a checkpoint after this step; interrupt again to end at once\n"
            with suppress(OSError):
                os.write(2, line.encode())  # print may be what the signal came into


@contextmanager
def delayed_interrupts() -> Iterator[SignalNote]:
    """Delay the KeyboardInterrupt of SIGINT and SIGTERM inside.

    The code inside raises it at a safe point; otherwise it is raised on exit.
    """
    handler = SignalNote()
    changed = [one for one in _ENDING if _in_main_thread() and signal.getsignal(one) is signal.default_int_handler]
    for one in changed:
        signal.signal(one, handler)
    try:
        yield handler
    finally:
        for one in changed:
            signal.signal(one, signal.default_int_handler)
    if handler:
        raise KeyboardInterrupt


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
