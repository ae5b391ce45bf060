"""Sweeps in joblib's processes that are killed; and points that end their process, or never end, next to others."""

import re
import signal
from pathlib import Path

import pytest
from support.packages import install_package
from support.sweeping import JOBLIB, POINTS, Swept
from support.toys import write_jsonl
from support.waiting import wait_until

from longsumbench.sweeps.state import DONE, FAILED, PointState, sweeps_in

LIMITED = "# @package _global_\nmodel:\n  name: {}\ntimeout_minutes: 0.05\n"
SYSTEMS = '''\
"""Systems that never come to a summary."""

import os
import signal
import time
from dataclasses import dataclass

from longsumbench import interrupts
from longsumbench.core import System, SystemConfig

interrupts._GRACE = 1.0  # seconds


@dataclass
class LostConfig(SystemConfig):
    name: str = "lost"


class Dying(System):
    Config = LostConfig

    def summarize(self, examples, decoding):
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory is used up


class Hanging(System):
    Config = LostConfig

    def summarize(self, examples, decoding):
        while True:
            time.sleep(1)


class Stuck(Hanging):
    def __init__(self, config):
        super().__init__(config)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # as outside Python, where signals have no effect
'''


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """A folder for Python's path with the systems' package in it, as if installed."""
    names = ("Dying", "Hanging", "Stuck")
    systems = {"longsumbench.systems": {name.lower(): f"lost:{name}" for name in names}}
    install_package(tmp_path / "lost", "lost", {"lost.py": SYSTEMS}, systems)
    return tmp_path / "lost"


def states(sweep: Swept) -> list[PointState]:
    """Return the states of the points of a sweep."""
    (folder,) = sweeps_in(sweep.results)
    return folder.present_states()


def swept(tmp_path: Path, lost: Path, *words: str) -> Swept:
    """Return a sweep over quick systems and these."""
    texts = write_jsonl(tmp_path / "texts", train=4, validation=0, test=4)
    return Swept(texts, tmp_path, (*JOBLIB, "baselines=false", *words), path=lost)


def test_a_point_that_dies_costs_the_others_nothing(lost: Path, tmp_path: Path) -> None:
    """It is tried again alone, and has failed; the others are done, and the same command tries it again."""
    sweep = swept(tmp_path, lost, "model=dying,random", "seed=1,2,3")
    said = sweep.finish(code=1)
    dying, *random = states(sweep)
    assert [state.state for state in random] == [DONE] * 3
    assert len(sweep.records()) == 3
    assert (dying.state, dying.reason.partition(" (")[0]) == (FAILED, "its process died twice")
    assert "1 of 4 runs failed, the others are kept" in said
    assert re.search(r"^log of run 1: .*/points/1\.log$", said, re.MULTILINE)
    assert "4 runs: 3 done, 0 found finished, 1 failed" in said


def test_points_that_hang_cost_the_others_nothing(lost: Path, tmp_path: Path) -> None:
    """One is stopped by an error; one on which signals have no effect has its process ended, and its stack in a log."""
    for model in ("hanging", "stuck"):
        path = tmp_path / "conf" / "model" / f"{model}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LIMITED.format(model))
    sweep = swept(tmp_path, lost, f"--config-dir={tmp_path / 'conf'}", "model=random,hanging,stuck")
    said = sweep.finish(code=1)
    random, hanging, stuck = states(sweep)
    assert (random.state, hanging.state, stuck.state) == (DONE, FAILED, FAILED)
    assert "stopped after timeout_minutes=0.05" in hanging.reason
    assert "or over timeout_minutes" in stuck.reason
    (folder,) = sweeps_in(sweep.results)
    assert "Timeout (0:00:04)!" in folder.file(3, "log").read_text()
    assert "2 of 3 runs failed, the others are kept" in said


def test_a_killed_sweep_continues(tmp_path: Path) -> None:
    """The same command ends with the runs of a sweep that nobody disturbed, and nothing is left behind.

    What joblib's processes say is in logs; runs that are finished need none.
    """
    texts = write_jsonl(tmp_path / "texts", train=24, validation=6, test=12)
    undisturbed = Swept(texts, tmp_path / "undisturbed", POINTS)
    undisturbed.finish()
    sweep = Swept(texts, tmp_path / "killed", (*POINTS, *JOBLIB))
    process = sweep.start()
    wait_until(lambda: len(sweep.finished()) >= 2, process)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert ": interrupted; the same command continues it\n" in sweep.status()
    sweep.finish()
    assert ": ended\n" in sweep.status()
    assert sweep.records() == undisturbed.records()
    assert sweep.predictions() == undisturbed.predictions()
    assert not [path for path in sweep.cache.rglob("*") if ".partial" in path.name]
    wait_until(lambda: not sweep.left_behind())
    output = sweep.finish()
    assert "6 runs: 0 done, 6 found finished, 0 failed" in output
    assert output.count("already finished") == 6  # by this process: no other was started
    logs = [path.read_text() for path in sweep.results.rglob("points/*.log")]
    assert logs
    assert not any("already finished" in log for log in logs)
