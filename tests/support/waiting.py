"""What tests do instead of trusting the speed of the machine: wait for long, and compare times with each other."""

import time
from collections.abc import Callable
from typing import Any, Protocol

PATIENCE = 900.0  # seconds until a test gives up on another process


class Process(Protocol):
    """Another process: of the library, or forked."""

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""

    def communicate(self) -> tuple[Any, Any]:
        """Return what it has written."""


def wait_until(condition: Callable[[], object], process: Process | None = None) -> None:
    """Wait until a condition holds that another process brings about; fail if that process ends before."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process is None or process.poll() is None, (
            f"it ended too early: {process.communicate()}"
        )
        assert time.monotonic() < end, f"waited for {PATIENCE:.0f} s"
        time.sleep(0.02)


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Check that eight times the input takes about eight times as long; in quadratic time it would be 64 times."""

    def seconds(given: int) -> float:
        started = time.process_time()
        work(given)
        return time.process_time() - started

    work(size // 64)  # what only the first call costs
    small, middle, large = size // 64, size // 8, size
    for less, more in ((small, middle), (middle, large)):
        once = min(seconds(less) for _ in range(3))
        taken = [seconds(more)]
        while (
            taken[-1] >= 24 * once + 0.2 and len(taken) < 3
        ):  # other processes may have slowed it down
            taken.append(seconds(more))
        assert min(taken) < 24 * once + 0.2, (
            f"{more} took {min(taken):.2f} s, {less} took {once:.2f} s"
        )
