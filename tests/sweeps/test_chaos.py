"""A sweep whose processes are killed again and again ends with the table of one that nobody disturbed."""

import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from support.sweeping import JOBLIB, POINTS, Swept, assert_same, killed, said_by
from support.toys import write_jsonl
from support.waiting import wait_until

KILLS = (("worker", 1, 5), ("both", 3, 3))  # of what, after so many finished runs, and so many more traces


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


def test_a_killed_sweep_continues(texts: Path, undisturbed: Swept, tmp_path: Path) -> None:
    """Whether a worker is killed, or what runs the workers, too: the same command ends as if nothing was."""
    sweep, chance = Swept(texts, tmp_path, (*POINTS, *JOBLIB)), random.Random(0)
    process = sweep.start()
    for victim, finished, traces in KILLS:
        wait_until(lambda finished=finished: len(sweep.finished()) >= finished, process)
        traces += sweep.traces()
        wait_until(lambda traces=traces: sweep.traces() >= traces, process)
        at_work: list[int] = []
        wait_until(lambda at_work=at_work: at_work.extend(sweep.workers()) or at_work, process)
        with suppress(ProcessLookupError):  # it has ended this moment, which does no harm either
            os.kill(chance.choice(at_work), signal.SIGKILL)
        if victim == "both":
            killed(process)
            assert ": interrupted; the same command continues it\n" in sweep.status()
            process = sweep.start()
    if said_by(process)[0]:  # a point whose process was killed twice; the same command tries it again
        sweep.finish()
    assert_same(sweep, undisturbed)
    wait_until(lambda: not sweep.left_behind())
