"""A sweep whose processes are killed again and again ends with the table of one that nobody disturbed."""

import os
import random
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from sweeping import JOBLIB, TWELVE, Swept, assert_same, killed, said_by, wait_until
from toys import write_jsonl

KILLS = [5, pytest.param(30, marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset of all sweeps here."""
    return write_jsonl(tmp_path_factory.mktemp("texts"), train=24, validation=6, test=12)


@pytest.fixture(scope="module")
def undisturbed(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """A sweep that nobody disturbed."""
    sweep = Swept(texts, tmp_path_factory.mktemp("undisturbed"), TWELVE)
    sweep.finish()
    return sweep


def moments(kills: int, whole: int) -> list[float]:
    """Return after how many traces a sweep is killed."""
    chance = random.Random(kills)
    return sorted(chance.uniform(0.05, 0.9) * whole for _ in range(kills))


def further(sweep: Swept, moment: float) -> Callable[[], bool]:
    """Return what is true once a sweep has come to a moment of its life, and further than it is now."""
    least = max(moment, sweep.traces() + 1)
    return lambda: sweep.traces() >= least


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_sweep_continues(kills: int, texts: Path, undisturbed: Swept, tmp_path: Path) -> None:
    """SIGKILL at seeded moments of its life changes no number and no prediction, and leaves no broken piece."""
    sweep = Swept(texts, tmp_path, TWELVE)
    for moment in moments(kills, undisturbed.traces()):
        to_come = further(sweep, moment)
        process = sweep.start()
        wait_until(to_come, process)
        killed(process)
        assert ": interrupted; the same command continues it\n" in sweep.status()
    sweep.finish()
    assert_same(sweep, undisturbed)


@pytest.mark.parametrize("kills", KILLS)
def test_killed_workers_cost_nothing(kills: int, texts: Path, undisturbed: Swept, tmp_path: Path) -> None:
    """Whether its workers are killed, or who conducts them, or both: the command, or the same again, ends as ever."""
    sweep, chance = Swept(texts, tmp_path, (*TWELVE, *JOBLIB)), random.Random(kills)
    victims = ["worker", "worker", "conductor", "both", "worker"] * (kills // 5)
    process = sweep.start()
    for victim, moment in zip(victims, moments(kills, undisturbed.traces()), strict=True):
        wait_until(further(sweep, moment), process)
        if victim != "conductor":
            kill_one(sweep, process, chance)
        if victim != "worker":
            killed(process)
            process = sweep.start()
    assert said_by(process)[0] == 0
    assert_same(sweep, undisturbed)
    wait_until(lambda: not sweep.left_behind())


def kill_one(sweep: Swept, process: "subprocess.Popen[str]", chance: random.Random) -> None:
    """Kill one of the processes at work on points, as soon as there is any."""
    at_work: list[int] = []
    wait_until(lambda: at_work.extend(sweep.workers()) or at_work, process)
    with suppress(ProcessLookupError):  # it has ended this moment, which does no harm either
        os.kill(chance.choice(at_work), signal.SIGKILL)
