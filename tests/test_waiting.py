"""How tests judge time and name what they need."""

import time

import pytest
from support.waiting import assert_linear


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A list whose sum is the time of the process."""
    seconds = [0.0]
    monkeypatch.setattr(time, "process_time", lambda: sum(seconds))
    return seconds


@pytest.mark.parametrize("rate", [1e-6, 1e-3])
def test_linear_time_passes_at_any_speed(rate: float, clock: list[float]) -> None:
    """Work that takes a fixed time for each piece passes, on slow machines and fast ones."""
    assert_linear(lambda size: clock.append(rate * size), 64_000)


def test_quadratic_time_fails(clock: list[float]) -> None:
    """Work whose time grows with the square of its size fails."""
    with pytest.raises(AssertionError, match=r"8000 took 0\.64 s, 1000 took 0\.01 s"):
        assert_linear(lambda size: clock.append(1e-8 * size**2), 64_000)
