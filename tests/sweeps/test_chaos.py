"""A sweep whose processes are killed again and again ends with the table of one that nobody disturbed."""

import os
import random
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from support.sweeping import JOBLIB, TWELVE, Swept, assert_same, killed, said_by
from support.toys import write_jsonl
from support.waiting import wait_until

RECORDS = 12  # ten runs, and the oracle on as many examples as each half of them has
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 7))]  # three kills; thirty more


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


def moments(seed: int) -> list[tuple[int, int]]:
    """Return when a sweep is killed: after so many runs are finished, and so many more traces were left."""
    chance, kills = random.Random(seed), 5 if seed else 3
    return [(finished, chance.randint(1, 15)) for finished in sorted(chance.sample(range(RECORDS - 3), kills))]


def wait_for(sweep: Swept, process: "subprocess.Popen[str]", moment: tuple[int, int]) -> None:
    """Wait until a sweep has come to a moment of its life, and further than it is now."""
    finished, traces = moment
    wait_until(lambda: len(sweep.finished()) >= finished, process)
    traces += sweep.traces()
    wait_until(lambda: sweep.traces() >= traces, process)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_sweep_continues(seed: int, texts: Path, undisturbed: Swept, tmp_path: Path) -> None:
    """SIGKILL at seeded moments of its life changes no number and no prediction, and leaves no broken piece."""
    sweep = Swept(texts, tmp_path, TWELVE)
    for moment in moments(seed):
        process = sweep.start()
        wait_for(sweep, process, moment)
        killed(process)
        assert ": interrupted; the same command continues it\n" in sweep.status()
    sweep.finish()
    assert_same(sweep, undisturbed)


@pytest.mark.parametrize("seed", SEEDS)
def test_killed_workers_cost_nothing(seed: int, texts: Path, undisturbed: Swept, tmp_path: Path) -> None:
    """Whether workers are killed, or the process that runs them, or both: the same command ends as if nothing was."""
    sweep, chance = Swept(texts, tmp_path, (*TWELVE, *JOBLIB)), random.Random(seed)
    victims = ["worker", "both", "conductor", "worker", "worker"]
    process = sweep.start()
    for victim, moment in zip(victims, moments(seed), strict=False):
        wait_for(sweep, process, moment)
        if victim != "conductor":
            kill_one(sweep, process, chance)
        if victim != "worker":
            killed(process)
            process = sweep.start()
    if said_by(process)[0]:  # a point whose process was killed twice; the same command tries it again
        sweep.finish()
    assert_same(sweep, undisturbed)
    wait_until(lambda: not sweep.left_behind())


def kill_one(sweep: Swept, process: "subprocess.Popen[str]", chance: random.Random) -> None:
    """Kill one of the processes at work on points, as soon as there is any."""
    at_work: list[int] = []
    wait_until(lambda: at_work.extend(sweep.workers()) or at_work, process)
    with suppress(ProcessLookupError):  # it has ended this moment, which does no harm either
        os.kill(chance.choice(at_work), signal.SIGKILL)
