"""What a sweep is at, read from its files alone."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sweeping import three_points

from longsumbench.cli.main import main
from longsumbench.errors import UsageError
from longsumbench.sweeps.state import (
    DONE,
    FAILED,
    FOUND,
    RUNNING,
    SAME,
    WAITING,
    PointState,
    Sweep,
    seconds_left,
    sweep_folder,
    sweeps_in,
)
from longsumbench.sweeps.status import current, describe_progress, describe_state, heading, render_status


@pytest.fixture
def folder(tmp_path: Path) -> Sweep:
    """A sweep of three points that has begun."""
    return three_points(tmp_path)


def test_points_of_one_run_have_one_worker(folder: Sweep) -> None:
    """A point's worker is who holds its lock, and nobody once it is given up."""
    assert folder.worker(1) is None
    with folder.working(1, lambda who: None):
        found = folder.worker(1)
        assert found is not None
        assert found.pid == os.getpid()
    assert folder.worker(1) is None


def test_a_point_whose_process_was_killed_is_waiting_again(folder: Sweep) -> None:
    """What a killed process wrote of itself is not believed: the lock that died with it says otherwise."""
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom longsumbench.sweeps.state import *\n"
        f"sweep = Sweep(Path({str(folder.root)!r}))\n"
        "with sweep.working(2, lambda who: None):\n"
        "    sweep.note(2, PointState(RUNNING, attempts=1, started=time.time(), host='here'))\n"
        "    print('ready', flush=True)\n    time.sleep(3600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert [state.state for state in current(folder)] == [WAITING, RUNNING, WAITING]
        process.send_signal(signal.SIGKILL)
    assert [state.state for state in current(folder)] == [WAITING, WAITING, WAITING]
    assert "was running when the sweep was interrupted" in render_status(folder.root.parents[1], "abcd")
    with folder.conducting(lambda who: None):
        assert "lost its process (here None)" in render_status(folder.root.parents[1], "abcd")


def test_status_of_a_sweep(folder: Sweep, capsys: pytest.CaptureFixture[str]) -> None:
    """Done, running and failed points, the time left, and what each one is at, from the files alone."""
    now = time.time()
    folder.note(1, PointState(DONE, started=now - 100, ended=now - 40, score=31.25))
    folder.note(2, PointState(FAILED, started=now - 9, ended=now, reason="the disk is full"))
    folder.log(2).write_text("…", encoding="utf-8")
    with folder.working(3, lambda who: None):
        running = PointState(RUNNING, attempts=2, started=now, doing="training: 3/9 steps", host="node7", pid=11)
        folder.note(3, running)
        assert main(["status", "--results-dir", str(folder.root.parents[1])]) == 0
    said = capsys.readouterr().out
    assert "1 done, 1 running, 1 failed, about 60 s left" in said
    assert "31.2" in said
    assert f"the disk is full ({folder.log(2)})" in said
    assert "node7 11, attempt 2: training: 3/9 steps" in said
    assert "interrupted; the same command continues it" in said  # nobody conducts it
    with folder.conducting(lambda who: None):
        assert f"sweep {folder.id}: running" in heading(folder)


def test_a_search_between_two_points_has_not_ended() -> None:
    """Nor has one that has not asked for any yet: while somebody conducts it, more may come."""
    ended = [PointState(DONE), PointState(FAILED)]
    assert [describe_state(states, True) for states in ([], ended, [PointState()])] == ["running"] * 3
    assert describe_state(ended, False) == "ended"
    assert (
        describe_state([], False)
        == describe_state([PointState()], False)
        == "interrupted; the same command continues it"
    )


def test_status_without_sweeps_or_of_an_unknown_one_is_one_line(folder: Sweep, tmp_path: Path) -> None:
    """It says where it looked, and what there is."""
    with pytest.raises(UsageError, match=r"no sweep under .*`longsumbench run -m` starts one"):
        render_status(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="no sweep is called 'zz'; there are abcd1234"):
        render_status(folder.root.parents[1], "zz")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_watching_takes_a_time(seconds: str, folder: Sweep, capsys: pytest.CaptureFixture[str]) -> None:
    """No time, or less than none, is wrong usage."""
    assert main(["status", f"--watch={seconds}", "--results-dir", str(folder.root.parents[1])]) == 2
    assert f"--watch {seconds}: the number of seconds must be above 0" in capsys.readouterr().err


def test_watching_ends_with_an_interrupt(
    folder: Sweep, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that the sweep goes on; a time that no machine could sleep is no error."""
    sleep = time.sleep

    def interrupted(seconds: float) -> None:
        sleep(0 * seconds)
        assert seconds < 1e6
        raise KeyboardInterrupt

    monkeypatch.setattr("longsumbench.sweeps.status.time.sleep", interrupted)
    assert main(["status", "--watch=inf", "--results-dir", str(folder.root.parents[1])]) == 130
    assert capsys.readouterr().err == "longsumbench: interrupted; a running sweep continues\n"


def test_a_torn_file_of_a_point_is_a_point_that_nobody_began(folder: Sweep) -> None:
    """A killed machine may leave an empty file; the sweep goes on."""
    folder.note(1, PointState(DONE))
    for content in ("", "[1]", '{"state": ', "null"):
        (folder.points / "1.json").write_text(content, encoding="utf-8")
        assert folder.state(1) == PointState()


def test_the_same_points_have_the_same_folder(tmp_path: Path) -> None:
    """So the same command continues its sweep, and another one has its own; the newest comes first."""
    first, second = sweep_folder(tmp_path, ["a", "b"]), sweep_folder(tmp_path, ["a", "c"])
    assert first == sweep_folder(tmp_path, ["a", "b"]) != second
    for sweep in (first, second):
        sweep.begin(["x"], "basic")
    os.utime(first.root / "sweep.json", (2e9, 2e9))
    assert list(sweeps_in(tmp_path)) == [first, second]


def test_the_time_left_by_hand() -> None:
    """Two points of 60 s done, one 20 s at work, three to go, one at a time: 40 + 180 s; two at a time half of it."""
    now = time.time()
    done = [PointState(DONE, started=0.0, ended=60.0)] * 2
    running = PointState(RUNNING, started=now - 20)
    waiting = [PointState()] * 3
    assert seconds_left([*done, running, *waiting]) == pytest.approx(220, abs=1)
    assert seconds_left([*done, running, running, *waiting]) == pytest.approx((80 + 180) / 2, abs=1)
    assert seconds_left([running, *waiting]) is None
    assert seconds_left([PointState(FOUND), PointState(SAME)]) is None


@given(st.lists(st.sampled_from([WAITING, RUNNING, DONE, FOUND, SAME, FAILED])))
def test_every_point_is_counted_once(states: list[str]) -> None:
    """The numbers in the line of a sweep add up to its points."""
    told = describe_progress([PointState(state, started=1.0, ended=2.0) for state in states])
    counts = [int(part.split()[0]) for part in told.split(", ") if part[0].isdigit()]
    assert sum(counts) == len(states)
