"""Sweeps on a real SLURM, which tests/slurm/start.sh starts.

They take minutes, and the cores of the whole machine.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support.sweeping import Swept
from support.toys import tiny_overrides, write_jsonl
from support.waiting import PATIENCE, wait_until

from longsumbench.cache.locks import lock_holder
from longsumbench.sweeps.state import PointState, sweeps_in

pytestmark = pytest.mark.slurm

POINTS, STEPS, SAVED_EVERY = 6, 600, 50
SEEDS = f"seed={','.join(map(str, range(1, POINTS + 1)))}"
CPU = ["hydra/launcher=slurm_cpu", "hydra.launcher.partition=low", "hydra.launcher.cpus_per_task=1"]


def message(*command: str) -> str:
    """Return what a command of SLURM prints."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.fixture(scope="module")
def cores() -> int:
    """How many cores the one node of the SLURM has."""
    try:
        lines = [
            line.split() for line in message("sinfo", "--noheader", "--format=%R %c").splitlines()
        ]
    except (OSError, subprocess.SubprocessError) as error:
        pytest.fail(f'no SLURM answers: eval "$(tests/slurm/start.sh)" starts one ({error})')
    assert {name for name, _ in lines} == {"low", "high"}, (
        "not the SLURM of tests/slurm/start.sh: it preempts others"
    )
    return int(lines[0][1])


class SlurmSweep(Swept):
    """A sweep of Trunc with a cache and results of its own; what it says is in a file."""

    def __init__(self, texts: Path, folder: Path, *words: str) -> None:
        budget = [*tiny_overrides(texts, STEPS), f"train.eval_steps={SAVED_EVERY}"]
        super().__init__(texts, folder, [*budget, *words])
        self.log = folder / "said.txt"

    def start_real(self) -> "subprocess.Popen[bytes]":
        """Start it in the background, in a Python of its own, whose jobs know its environment."""
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "longsumbench", *self.words],
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=self.environment,
            )

    def states(self) -> dict[int, PointState]:
        """Return the states of its points by number."""
        states = [state for sweep in sweeps_in(self.results) for state in sweep.present_states()]
        return dict(enumerate(states, start=1))

    def kill(self, number: int, kind: signal.Signals) -> None:
        """Send a signal to the process that works on a point, on this machine."""
        (sweep,) = sweeps_in(self.results)
        holder = lock_holder(sweep.file(number, "lock"))
        assert holder is not None
        os.kill(holder.pid, kind)


def step(state: PointState) -> int:
    """Return the step at which a training is; 0 of a point that does something else."""
    found = re.match(r"training: (\d+)/", state.doing) if state.state == "running" else None
    return int(found[1]) if found else 0


def in_training(sweep: SlurmSweep, but: Sequence[int]) -> int:
    """Wait for a point in the midst of its first training, with some checkpoints behind it; return its number."""
    found: list[int] = []

    def look() -> list[int]:
        states = sweep.states().items()
        found.extend(
            number
            for number, state in states
            if number not in but
            and state.attempts == 1
            and 2 * SAVED_EVERY < step(state) < STEPS - 2 * SAVED_EVERY
        )
        return found

    wait_until(look)
    return found[0]


def job_of(state: PointState) -> str:
    """Return the job that works on a point ("5_2")."""
    return state.process.split()[1]


def records_of(job: str) -> list[tuple[str, str]]:
    """Return what the accounting says of a job, (task, state) for every time that a task was begun."""
    lines = message("sacct", "-j", job, "-D", "-X", "-n", "-P", "-o", "JobID,State").splitlines()
    return [(task, state.split()[0]) for task, _, state in (line.partition("|") for line in lines)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset of all sweeps here."""
    return write_jsonl(tmp_path_factory.mktemp("texts"), train=24, validation=6, test=12)


@pytest.fixture(scope="module")
def undisturbed(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> SlurmSweep:
    """The sweep in process."""
    sweep = SlurmSweep(texts, tmp_path_factory.mktemp("here"), SEEDS)
    sweep.finish()
    return sweep


@pytest.fixture
def ended(tmp_path: Path) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Processes that are ended after the test, with all jobs."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait(30)
    message("scancel", "--name=longsumbench")


def test_an_array_job_survives_kill_preemption_and_time_out(
    cores: int,
    texts: Path,
    undisturbed: SlurmSweep,
    tmp_path: Path,
    ended: list["subprocess.Popen[bytes]"],
) -> None:
    """One task killed, one preempted, one out of its time: all ends complete, equal to what no disturbance gives."""
    sweep = SlurmSweep(texts, tmp_path, *CPU, SEEDS)
    ended.append(process := sweep.start_real())

    killed = in_training(sweep, but=())
    task = job_of(sweep.states()[killed])
    array = task.partition("_")[0]
    sweep.kill(killed, signal.SIGKILL)  # as the kernel does where memory is short
    wait_until(lambda: (task, "FAILED") in records_of(array))

    preempted = in_training(sweep, but=[killed])
    task = job_of(sweep.states()[preempted])
    message("srun", "--partition=high", f"--cpus-per-task={cores}", "true")
    wait_until(lambda: (task, "PREEMPTED") in records_of(array))

    late = in_training(sweep, but=[killed, preempted])
    task = job_of(sweep.states()[late])
    sweep.kill(late, signal.SIGUSR2)  # as SLURM does some time before a stretch ends
    wait_until(lambda: (task, "REQUEUED") in records_of(array))

    resumed: dict[int, int] = {}

    def look() -> bool:
        for number, state in sweep.states().items():
            if state.attempts > 1 and step(state):
                resumed.setdefault(number, step(state))
        return process.poll() is not None

    wait_until(
        lambda: re.search(r" \d+ done, \d+ running", sweep.status()),
    )
    wait_until(look)
    said = sweep.log.read_text()
    wait_until(lambda: "RUNNING" not in {state for _, state in records_of(array)})

    assert process.returncode == 0, said
    assert f"{POINTS} runs: {POINTS} done, 0 found finished, 0 failed" in said
    records = records_of(array)
    assert {name for name, _ in records} == {f"{array}_{index}" for index in range(POINTS)}, (
        "one array job"
    )
    last = dict(records)
    assert last.pop(f"{array}_{killed - 1}") == "FAILED"
    assert set(last.values()) == {"COMPLETED"}
    assert {killed, preempted, late} <= {
        number for number, state in sweep.states().items() if state.attempts > 1
    }
    assert all(first > SAVED_EVERY for first in resumed.values()), "resumed, not begun anew"
    assert sweep.predictions() == undisturbed.predictions()


def test_a_partition_that_does_not_exist_is_one_line(
    cores: int, texts: Path, tmp_path: Path
) -> None:
    """A misspelt partition costs no point, and says what SLURM said, in one line."""
    sweep = SlurmSweep(texts, tmp_path, *CPU, "hydra.launcher.partition=lwo", "seed=1,2")
    assert sweep.start_real().wait(PATIENCE) == 2
    started, complaint = sweep.log.read_text().splitlines()[-2:]
    assert started.startswith("they run by slurm_cpu")
    assert "invalid partition specified: lwo" in complaint
