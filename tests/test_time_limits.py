"""Time limits: of a call in another thread, and of code within another limit."""

import signal
import threading
import time

import pytest

from longsumbench.errors import DataError, EnvironmentProblem
from longsumbench.interrupts import time_limit, within_seconds


def test_a_call_that_does_not_end_is_left() -> None:
    """The result or the error of a call is returned or raised; one that takes too long is an error."""
    blocked = threading.Event()
    with pytest.raises(TimeoutError, match=r"not finished after 0\.05 seconds"):
        within_seconds(0.05, blocked.wait)
    blocked.set()
    assert within_seconds(60, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within_seconds(60, lambda: 1 // 0)


def test_a_limit_within_another_keeps_the_outer_one() -> None:
    """The inner limit raises its own error; after it, the outer limit still has its time."""
    with time_limit(10):
        with (
            pytest.raises(DataError, match="too long"),
            time_limit(0.001, problem=DataError("too long")),
        ):
            time.sleep(9)
        assert 500 < signal.getitimer(signal.ITIMER_REAL)[0] <= 600
    for minutes in (1, 1e12, float("inf")):  # no timer can be set to the last ones
        with time_limit(minutes, ends_process=True):
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 59
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_limit_of_no_minutes_stops_what_is_inside_at_once() -> None:
    """It raises its error, instead of no error and the end of the process a minute later."""
    with pytest.raises(EnvironmentProblem, match="timeout_minutes=0"), time_limit(0, True):
        time.sleep(9)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
