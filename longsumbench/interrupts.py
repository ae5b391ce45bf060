"""Signals that end a command or a step: Ctrl-C, SIGTERM, which acts like it, and time limits."""

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TypeVar

from longsumbench.errors import EnvironmentProblem

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# seconds from a time limit until a process that does not react is ended
_GRACE = 60.0
# seconds that a timer can be set to; 0 would turn it off
_SHORTEST_TIMER, _LONGEST_TIMER = 1e-6, 1e8
_T = TypeVar("_T")


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM (`kill`, a cluster's time limit) raise KeyboardInterrupt inside, as Ctrl-C does.

    An existing handler stays: submitit ignores SIGTERM and uses another signal.
    """
    if not _in_main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def delayed_interrupts() -> Iterator[list[int]]:
    """Delay the KeyboardInterrupt of SIGINT and SIGTERM inside; yield the list of signals so far.

    The code inside raises it at a safe point; otherwise it is raised on exit. A repeated signal raises it at once.
    """
    process, received = os.getpid(), list[int]()

    def handler(number: int, frame: FrameType | None) -> None:
        if number in received:
            signal.default_int_handler(number, frame)
        received.append(number)
        # not in a process that loads batches
        if len(received) == 1 and os.getpid() == process:
            line = (
                "interrupted: saves a checkpoint after this step; interrupt again to end at once\n"
            )
            with suppress(OSError):
                # the signal may have interrupted a print
                os.write(2, line.encode())

    changed = [
        kind
        for kind in _SIGNALS
        if _in_main_thread() and signal.getsignal(kind) is signal.default_int_handler
    ]
    for kind in changed:
        signal.signal(kind, handler)
    try:
        yield received
    finally:
        for kind in changed:
            signal.signal(kind, signal.default_int_handler)
    if received:
        raise KeyboardInterrupt


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def time_limit(
    minutes: float | None, ends_process: bool = False, problem: BaseException | None = None
) -> Iterator[None]:
    """Stop what is inside after some minutes by an error, and again each half minute if it goes on.

    Args:
        minutes: None for no limit, 0 to stop at once.
        ends_process: code that hangs outside Python hears of no error; end the process then, a minute after the limit,
            and write its stack to stderr.
        problem: the error to raise; None: one about `timeout_minutes`.

    Raises:
        EnvironmentProblem: the time is over, and there is no `problem`.
    """
    if minutes is None or not _in_main_thread():
        yield
        return

    def stop(*_: object) -> None:
        if problem is not None:
            raise problem
        advice = "what it finished is kept, and the same command with a higher limit continues it"
        raise EnvironmentProblem(f"stopped after timeout_minutes={minutes:g}; {advice}")

    seconds = min(max(60 * minutes, _SHORTEST_TIMER), _LONGEST_TIMER)
    previous_handler = signal.signal(signal.SIGALRM, stop)
    outer_timer = signal.getitimer(signal.ITIMER_REAL)
    try:
        if ends_process:
            faulthandler.dump_traceback_later(seconds + _GRACE, exit=True, file=sys.stderr)
        # the last step: a short limit is over at once
        signal.setitimer(signal.ITIMER_REAL, seconds, _GRACE / 2)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)
        signal.setitimer(signal.ITIMER_REAL, *outer_timer)
        if ends_process:
            faulthandler.cancel_dump_traceback_later()


def within_seconds(seconds: float, call: Callable[[], _T]) -> _T:
    """Return what a function returns; it runs in another thread, because a library in Rust cannot be interrupted.

    A thread that does not end goes on until the process ends.

    Raises:
        TimeoutError: the function takes longer.
    """
    outcome = Future[_T]()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return outcome.result(seconds)
    except TimeoutError as error:
        raise TimeoutError(f"not finished after {seconds:g} seconds") from error
