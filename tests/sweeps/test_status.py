"""The progress of a sweep, read from its files alone."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.toys import refuses
from support.waiting import wait_until

from longsumbench.cache.locks import exclusive_lock
from longsumbench.cli.main import main
from longsumbench.progress import Progress
from longsumbench.sweeps import sweep as watched
from longsumbench.sweeps.state import (
    DONE,
    FAILED,
    RUNNING,
    SKIPPED,
    WAITING,
    PointState,
    Sweep,
    render_status,
    seconds_left,
    sweeps_in,
)

THREE = ["seed=1", "seed=2", "seed=3"]


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """A sweep of three points that has begun, and none of them."""
    sweep = Sweep(tmp_path / "sweeps" / "abcd1234")
    sweep.begin(["longsumbench", "run", "-m", "seed=1,2,3"], "basic")
    for number, name in enumerate(THREE, start=1):
        sweep.write_state(number, PointState(name))
    return sweep


def test_a_point_whose_process_was_killed_is_waiting(sweep: Sweep, tmp_path: Path) -> None:
    """A state says "running" after its process was killed; the lock of the point ended with that process."""
    running = PointState("seed=2", RUNNING, started=time.time(), process="node7 11")
    with exclusive_lock(sweep.file(2, "lock")):
        sweep.write_state(2, running)
        assert [state.state for state in sweep.present_states()] == [WAITING, RUNNING, WAITING]
    assert [state.state for state in sweep.present_states()] == [WAITING] * 3
    assert "its process ended (node7 11)" in render_status(tmp_path, "abcd")


def test_status_of_a_sweep(
    sweep: Sweep, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Done, running and failed points, the time left, and the present steps."""
    now = time.time()
    sweep.write_state(1, PointState(THREE[0], DONE, started=now - 100, ended=now - 40, score=31.25))
    failed = PointState(THREE[1], FAILED, started=now - 9, ended=now, reason="the disk is full")
    sweep.write_state(2, failed)
    sweep.file(2, "log").write_text("…")
    working = PointState(THREE[2], RUNNING, started=now, attempts=2, doing="training: 3/9 steps")
    with exclusive_lock(sweep.file(3, "lock")):
        sweep.write_state(3, replace(working, process="node7 11"))
        assert main(["status", "--results-dir", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    for part in (
        "sweep abcd1234: interrupted; the same command continues it",  # nobody holds its lock
        "1 done, 1 running, 1 failed, about 1 min left",
        "31.2",
        f"\nlog of run 2: {sweep.file(2, 'log')}",
        "node7 11, attempt 2: training: 3/9 steps",
    ):
        assert part in text
    with exclusive_lock(sweep.lock):
        assert "sweep abcd1234: running" in render_status(tmp_path)


def test_each_step_before_the_first_result_has_a_line(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a plain pipe, each step that a point begins is one line; after a point has ended, steps are no lines."""
    monkeypatch.setattr(watched, "_SECONDS_BETWEEN_FIRST_LOOKS", 0.01)
    monkeypatch.setattr(watched, "_SECONDS_BETWEEN_LOOKS", 0.01)
    looks, present_states = list[Sweep](), Sweep.present_states

    def look(self: Sweep) -> list[PointState]:
        looks.append(self)
        return present_states(self)

    def wait_for_looks() -> None:
        seen = len(looks)
        wait_until(lambda: len(looks) > seen + 2)

    monkeypatch.setattr(Sweep, "present_states", look)
    with (
        exclusive_lock(sweep.file(2, "lock")),
        Progress("sweep", 3, "runs", paced=False) as progress,
        watched._watching(sweep, progress),
    ):
        for doing in (
            "",
            "reading probe: 7 rows",
            "training: 1/9 steps",
            "training: 2/9",
            "scoring",
        ):
            progress.advance(doing == "scoring")
            sweep.write_state(2, PointState(THREE[1], RUNNING, started=time.time(), doing=doing))
            wait_for_looks()
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("run ")]
    steps = ("begins", "reading probe", "training")
    assert lines == [f"run 2/3: seed=2: {step}" for step in steps]


def test_no_sweep_and_an_unknown_one_are_one_line(sweep: Sweep, tmp_path: Path) -> None:
    """The message says where it looked, and what there is."""
    with refuses(r"no sweep under .*`longsumbench run -m` starts one"):
        render_status(tmp_path / "elsewhere")
    with refuses("no sweep is called 'zz'; there are abcd1234"):
        render_status(tmp_path, "zz")


def test_a_torn_file_of_a_point_is_a_point_that_nobody_began(sweep: Sweep) -> None:
    """A killed machine may leave a part of a file; the sweep goes on."""
    sweep.write_state(1, PointState(state=DONE))
    for content in ("", "[1]", '{"state": ', "null", '{"state": "done", "started": "yesterday"}'):
        sweep.file(1, "json").write_text(content)
        assert sweep.state(1) == PointState()


def test_the_same_overrides_have_the_same_folder(tmp_path: Path) -> None:
    """So the same command continues its sweep, and another one has its own; the newest comes first."""
    first, second = Sweep.of(tmp_path, ["a", "b"]), Sweep.of(tmp_path, ["a", "c"])
    assert first == Sweep.of(tmp_path, ["a", "b"]) != second
    for sweep in (first, second):
        sweep.begin(["x"], "basic")
    os.utime(first.root / "sweep.json", (2e9, 2e9))
    assert sweeps_in(tmp_path) == [first, second]


def test_the_time_left_by_hand() -> None:
    """Two points of 60 s done, one 20 s at work, three to go, one at a time: 40 + 180 s; two at a time half of it."""
    now = time.time()
    done, waiting = [PointState(state=DONE, started=1.0, ended=61.0)] * 2, [PointState()] * 3
    running = PointState(state=RUNNING, started=now - 20)
    assert seconds_left([*done, running, *waiting]) == pytest.approx(220, abs=1)
    assert seconds_left([*done, running, running, *waiting]) == pytest.approx((80 + 180) / 2, abs=1)
    assert seconds_left([running, *waiting, PointState(state=SKIPPED)]) is None
