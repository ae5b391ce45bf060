"""A sweep whose processes are killed again and again ends with the runs of one that nobody disturbed."""

import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from support.processes import ForkedProcess
from support.sweeping import JOBLIB, POINTS, Swept, assert_same
from support.toys import write_jsonl
from support.waiting import wait_until


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset of all sweeps here."""
    return write_jsonl(tmp_path_factory.mktemp("texts"), train=24, validation=6, test=12)


@pytest.fixture(scope="module")
def undisturbed(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """A sweep that nobody disturbed."""
    sweep = Swept(texts, tmp_path_factory.mktemp("undisturbed"), POINTS)
    sweep.finish()
    return sweep


def workers_after(sweep: Swept, process: ForkedProcess, finished: int, traces: int) -> list[int]:
    """Return the processes at work once there are so many finished runs, and then so many more traces."""
    wait_until(lambda: len(sweep.finished()) >= finished, process)
    least = sweep.traces() + traces
    wait_until(lambda: sweep.traces() >= least, process)
    at_work: list[int] = []

    def are_there() -> bool:
        at_work.extend(sweep.workers())
        return bool(at_work)

    wait_until(are_there, process)
    return at_work


def test_a_killed_sweep_continues(texts: Path, undisturbed: Swept, tmp_path: Path) -> None:
    """A worker is killed, and what runs the workers, too: the same command ends as if nothing was."""
    sweep, chance = Swept(texts, tmp_path, (*POINTS, *JOBLIB)), random.Random(0)
    process = sweep.start()
    workers = workers_after(sweep, process, finished=2, traces=4)
    with suppress(ProcessLookupError):  # it has ended this moment, which does no harm either
        os.kill(chance.choice(workers), signal.SIGKILL)
    process.send_signal(signal.SIGKILL)  # as the machine does that runs out of memory
    assert process.wait() == -signal.SIGKILL
    assert ": interrupted; the same command continues it\n" in sweep.status()
    process = sweep.start()
    if process.wait():  # a point's process was killed twice; the same command tries the point again
        sweep.finish()
    assert_same(sweep, undisturbed)
    wait_until(lambda: not sweep.left_behind())
