"""Several processes for one point: what one process makes of it, also after kills."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from support.paths import TESTS
from support.toys import TINY_FOR_ALL, told_in, write_jsonl
from support.waiting import PATIENCE

from longsumbench.api import registry
from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cli.main import main
from longsumbench.errors import EnvironmentProblem
from longsumbench.modeling.training import data_parallel as shares
from longsumbench.runs import processes as team
from longsumbench.runs.record import RunRecord
from longsumbench.sweeps import worker as jobs

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
CLI = ["-m", "longsumbench"]
CLOSE = 2e-5  # of losses, as a share: sums of float32 in another order; ten times what was measured
COUNTS = ("parameters", "steps", "examples", "source_tokens", "target_tokens", "ended_by", "best_step")
BUDGET = ["train.max_steps=8", "train.eval_steps=2", "train.batch_size=8", "decode.batch_size=3"]
# Of 25 examples in batches of 8 the last is alone: one of two processes has none. What is special about each:
POINTS = {
    "trunc": ["train.accumulation=2", "train.keep_best=2"],
    "seal": [],  # another loss, a mean over other things
    "etads": ["train.batch_words=120"],
    "tdmca": ["train.batch_tokens=150", "train.gradient_checkpointing=true"],
    "hierarchical_transformer": ["model.rank=lstm"],  # whose ranker one process trains alone
    "lead": [],
}


def words(model: str, texts: Path, *others: str, dropout: float = 0.0) -> list[str]:
    """Return the command that runs a tiny system on texts."""
    known = {item.name for item in fields(registry.systems.load(model).Config)}
    settings = {**TINY_FOR_ALL, "dropout": dropout}
    own = [f"model.{name}={value}" for name, value in settings.items() if name in known]
    data = ["dataset=jsonl", f"dataset.path={texts}", "scale=tiny", "score.resamples=100", "baselines=false"]
    return ["run", f"model={model}", *data, *(BUDGET if model != "lead" else []), *own, *others]


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of processes whose cache is in a folder."""
    return {**os.environ, CACHE_VARIABLE: str(folder / "cache"), "OMP_NUM_THREADS": "1"}


def in_processes(folder: Path, script: Sequence[str], *how: str) -> subprocess.CompletedProcess[str]:
    """Let torchrun start a script, in two processes unless told otherwise; `how` are its own flags."""
    command = [*TORCHRUN, *how, *script]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, env=environment(folder), check=False
    )


def record_of(results: Path, model: str) -> tuple[RunRecord, list[bytes]]:
    """Return the record of a system's only run, and the predictions of all its checkpoints."""
    (folder,) = (path.parent for path in results.glob(f"runs/jsonl/{model}/*/record.json"))
    return RunRecord.read(folder), [path.read_bytes() for path in sorted(folder.glob("predictions*.jsonl"))]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset of all runs here."""
    return write_jsonl(tmp_path_factory.mktemp("texts"), train=25, validation=7, test=11)


def of_two(points: dict[str, list[str]], texts: Path, folder: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Let two processes do all points, and the first one again; return the results folder, and what was said."""
    commands = [words(model, texts, *others, f"results_dir={folder / 'results'}") for model, others in points.items()]
    return folder / "results", in_processes(
        folder, [str(TESTS / "support" / "commands.py"), json.dumps([*commands, commands[0]])]
    )


@pytest.fixture(scope="module")
def by_two(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """What two processes make of all points."""
    return of_two(POINTS, texts, tmp_path_factory.mktemp("two"))


def check_the_same(
    model: str, others: Sequence[str], texts: Path, folder: Path, results: Path, processes: int = 2
) -> None:
    """Let this process do a point, in a folder, that several did; check that it is the same run, the outcome too."""
    assert main(words(model, texts, *others, f"results_dir={folder}")) == 0
    (one, predictions), (two, same) = record_of(folder, model), record_of(results, model)
    assert (one.run_id, one.environment.processes) == (two.run_id, 1)
    assert two.environment.processes == processes
    assert predictions == same
    assert [getattr(one.fit, name) for name in COUNTS] == [getattr(two.fit, name) for name in COUNTS]
    for name in ("validation_losses", "kept"):
        assert [step for step, _ in getattr(one.fit, name)] == [step for step, _ in getattr(two.fit, name)]
        losses = [[loss for _, loss in getattr(run.fit, name)] for run in (one, two)]
        assert losses[0] == pytest.approx(losses[1], rel=CLOSE)
    if model != "lead":
        ends = [(run.fit.first_loss, run.fit.last_loss) for run in (one, two)]
        assert ends[0] == pytest.approx(ends[1], rel=CLOSE)


@pytest.mark.parametrize("model", POINTS)
def test_two_processes_do_what_one_does(
    model: str, texts: Path, by_two: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """The same run, counts and predictions, and losses that differ in rounding alone."""
    results, done = by_two
    assert done.returncode == 0, done.stderr
    check_the_same(model, POINTS[model], texts, tmp_path, results)


def test_three_processes_do_what_one_does(texts: Path, tmp_path: Path) -> None:
    """Of 25 examples in batches of 8, each has two or three, and two have none of the last."""
    several = tmp_path / "several"
    command = words("trunc", texts, "train.keep_best=2", f"results_dir={several / 'results'}")
    done = in_processes(several, [*CLI, *command], "--nproc-per-node=3")
    assert done.returncode == 0, done.stderr
    check_the_same("trunc", ["train.keep_best=2"], texts, tmp_path / "one", several / "results", processes=3)


@pytest.mark.slow
def test_two_processes_do_what_one_does_with_every_system(texts: Path, tmp_path: Path) -> None:
    """The others that train, too."""
    names = [name for name in registry.systems.targets() if registry.systems.load(name).shares_work]
    points: dict[str, list[str]] = {name: [] for name in names if name not in POINTS}
    results, done = of_two(points, texts, tmp_path)
    assert done.returncode == 0, done.stderr
    for model in points:
        check_the_same(model, [], texts, tmp_path / model, results)


def test_the_first_process_alone_speaks(by_two: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """A table is printed once for each command, a point found finished is said to be once, and nobody warns."""
    _, done = by_two
    assert done.stdout.count("test split, 11 examples") == len(POINTS) + 1
    assert done.stderr.count("already finished: trunc") == 1
    said = [line for line in told_in(done.stderr) if line and "OMP_NUM_THREADS" not in line and "***" not in line]
    assert [line for line in said if "already finished" not in line] == []


def test_no_file_of_a_share_is_left(by_two: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """What each process wrote is in the files of the run, and nowhere else."""
    results, _ = by_two
    assert not list(results.rglob("*.part*"))
    assert not [path for path in (results.parent / "cache").rglob("*.partial")]


class Killed:
    """A run that is killed and started again.

    Args:
        texts: its dataset.
        folder: for its cache and results.
        processes: how many work on it.
    """

    def __init__(self, texts: Path, folder: Path, processes: int) -> None:
        start = TORCHRUN if processes == 2 else [sys.executable]
        budget = ["train.max_steps=18", "train.eval_steps=3", f"results_dir={folder / 'results'}"]
        self.folder, self.command = folder, [*start, *CLI, *words("trunc", texts, *budget, dropout=0.2)]

    def start(self) -> "subprocess.Popen[str]":
        """Start it in the background."""
        pipe = subprocess.PIPE
        return subprocess.Popen(self.command, stdout=pipe, stderr=pipe, text=True, env=environment(self.folder))

    def finish(self) -> None:
        """Run it to the end."""
        process = self.start()
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said

    def kill(self, checkpoint: int, whom: Callable[[psutil.Process], bool]) -> int:
        """Kill some of its processes when a checkpoint is begun; return the exit code."""
        process = self.start()
        found = psutil.Process(process.pid)
        while not list(self.folder.glob(f"cache/checkpoint/*.partial/trainer/checkpoint-{checkpoint}")):
            assert process.poll() is None, process.communicate()
            time.sleep(0.005)
        for one in [found, *found.children(recursive=True)]:
            if whom(one):
                one.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
        return process.returncode

    def outcome(self) -> dict[str, Any]:
        """Return what must not depend on kills: losses and counts, predictions, weights."""
        record, predictions = record_of(self.folder / "results", "trunc")
        (weights,) = (path.read_bytes() for path in self.folder.glob("cache/checkpoint/*/model.safetensors"))
        fit = replace(record.fit, seconds=0.0)
        return {"fit": fit, "predictions": predictions, "weights": weights}


@pytest.mark.slow
def test_a_point_that_is_stopped_in_one_process_leaves_the_next_to_both(texts: Path, tmp_path: Path) -> None:
    """In a sweep, one that takes too long is stopped while the other process waits for it; the next is done by two."""
    endless = ["-m", "train.max_steps=100000,2", "train.eval_steps=1000", "timeout_minutes=3"]
    command = [*CLI, *words("trunc", texts, f"results_dir={tmp_path / 'results'}", *endless)]
    done = in_processes(tmp_path, command)
    assert "failed: stopped after timeout_minutes=3" in done.stderr
    assert "2 runs: 1 done, 0 found finished, 1 failed" in done.stderr
    record, _ = record_of(tmp_path / "results", "trunc")
    assert (record.fit.steps, record.environment.processes) == (2, 2)


def everyone(process: psutil.Process) -> bool:
    """Mean all processes."""
    return True


def the_second(process: psutil.Process) -> bool:
    """Mean one of two."""
    return process.environ().get("RANK") == "1" and bool(process.cmdline())


@pytest.mark.parametrize("processes", [1, 2])
def test_a_killed_training_ends_with_the_same_bits(processes: int, texts: Path, tmp_path: Path) -> None:
    """Killed at seeded moments, all at once or one alone, it ends with the losses, weights and predictions of no kill.

    With dropout: every process's draws go on, too.
    """
    undisturbed, killed = (Killed(texts, tmp_path / name, processes) for name in ("whole", "pieces"))
    undisturbed.finish()
    chance = random.Random(processes)
    assert killed.kill(3 * chance.randint(1, 3), everyone) == -signal.SIGKILL
    if processes == 2:
        assert killed.kill(3 * chance.randint(4, 5), the_second) not in (0, -signal.SIGKILL)
    killed.finish()
    assert killed.outcome() == undisturbed.outcome()


def test_a_task_that_fails_in_one_process_ends_in_both(tmp_path: Path) -> None:
    """The first one hears what went wrong first, wherever it did and whatever hung, and both go on to the next task."""
    done = in_processes(tmp_path, [str(TESTS / "support" / "failing_team.py")])
    assert done.returncode == 0, done.stderr
    early, late = "UsageError: no pages", "UsageError: too many pages"
    theirs = "EnvironmentProblem: process 1 of 2 failed: ValueError: odd"
    assert done.stdout.splitlines() == [early, "done", late, "done", "ValueError: odd", "done", theirs, "done"]


TOLD = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that tells of no team, and what changes it for a test."""
    for name in (*team.PLACE, *team.MEETING):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    "changes",
    [{"WORLD_SIZE": None}, {"WORLD_SIZE": "1", "RANK": "0"}, {"RANK": "x"}, {"MASTER_PORT": None}, {"RANK": "2"}],
)
def test_half_a_team_is_none(changes: dict[str, str | None], untold: pytest.MonkeyPatch) -> None:
    """Where the environment does not tell of a whole team, there is one process, and no library sees another thing."""
    for name, value in {**TOLD, **changes}.items():
        if value is not None:
            untold.setenv(name, value)
    found = team.of_this_process.__wrapped__()
    assert (found.rank, found.size, found.first) == (0, 1, True)
    assert "RANK" not in os.environ


def test_a_team_is_read_from_the_environment_and_hidden_there(untold: pytest.MonkeyPatch) -> None:
    """The second of two processes knows its place, and libraries do not."""
    for name, value in TOLD.items():
        untold.setenv(name, value)
    found = team.of_this_process.__wrapped__()
    assert (found.rank, found.size, found.local_rank, found.first) == (1, 2, 1, False)
    assert not any(name in os.environ for name in team.PLACE)


@pytest.mark.parametrize("rank", ["0", "1"])
def test_processes_that_cannot_meet_say_so(rank: str, untold: pytest.MonkeyPatch) -> None:
    """A port that another program has, and a first process that is not there, are one line each."""
    untold.setattr(team, "_STARTING", timedelta(seconds=1))
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        if rank == "0":
            taken.listen()
        for name, value in {**TOLD, "RANK": rank, "MASTER_PORT": str(taken.getsockname()[1])}.items():
            untold.setenv(name, value)
        with pytest.raises(EnvironmentProblem, match=r"^2 processes cannot meet at MASTER_ADDR=localhost") as problem:
            team.of_this_process.__wrapped__()._met()
    assert "\n" not in str(problem.value)


TASK = {
    **{"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1", "SLURM_NODEID": "0", "SLURM_NTASKS": "2"},
    **{"SLURM_PROCID": "1", "SLURM_LOCALID": "1", "CUDA_VISIBLE_DEVICES": "4,5"},
}


def test_tasks_of_a_cluster_job_are_a_team(untold: pytest.MonkeyPatch) -> None:
    """The second task of a job is told its place, twice where it began anew, and keeps the GPUs it was given."""
    pytest.importorskip("submitit", reason="the extra slurm")
    for name, value in {**TASK, "SUBMITIT_EXECUTOR": "slurm"}.items():
        untold.setenv(name, value)
    jobs.share_a_cluster_job()
    jobs.share_a_cluster_job()
    found = team.of_this_process.__wrapped__()
    assert (found.rank, found.size, found.local_rank, found.local_size) == (1, 2, 1, 2)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "4,5"


def test_a_sweep_inside_a_cluster_job_waits_for_no_team(untold: pytest.MonkeyPatch) -> None:
    """Where a job was given two tasks and its script starts a sweep by joblib, that one's processes work alone."""
    for name, value in {**TASK, "SLURM_PROCID": "0"}.items():
        untold.setenv(name, value)
    untold.delenv("SUBMITIT_EXECUTOR", raising=False)
    jobs.share_a_cluster_job()
    assert team.of_this_process.__wrapped__().size == 1


def test_torchrun_starts_a_team_again(tmp_path: Path) -> None:
    """A team of which one was killed in a task, and that torchrun starts again, hears nothing of the first attempt."""
    done = in_processes(tmp_path, [str(TESTS / "support" / "killed_team.py")], "--max-restarts=1")
    assert (done.returncode, done.stdout.splitlines()) == (0, ["both are here"]), done.stderr


def test_one_process_imports_no_torch_for_its_team() -> None:
    """A team of one is helped by nobody, and asks nobody."""
    code = "from longsumbench.runs.processes import first_process, of_this_process\n"
    code += "with first_process({}): of_this_process().helped('x', {}).__enter__()\n"
    code += "import sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_shares_make_up_the_batch(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example of a batch is in one share; a process that would have none reads the first, without learning."""
    batches = [[4, 2, 7, 1, 0], [3], [6, 5]]
    monkeypatch.setattr(shares, "num_processes", lambda: size)
    dealt = []
    for place in range(size):
        monkeypatch.setattr(shares, "place", lambda place=place: place)
        dealt.append(list(shares.Shares(batches)))
    for number, batch in enumerate(batches):
        learned = [index for share in dealt for index in share[number] if index >= 0]
        assert sorted(learned) == sorted(batch)
        assert all(share[number] for share in dealt)
        spare = [-1 - index for share in dealt for index in share[number] if index < 0]
        assert spare == [batch[0]] * max(0, size - len(batch))


def test_nothing_is_counted_of_an_example_that_is_not_learned_from() -> None:
    """No label of it is real, and what losses are means over does not count it."""

    def collate(rows: list[Any]) -> dict[str, Any]:
        mask = torch.ones(len(rows), 1, 2, dtype=torch.bool)
        return {"labels": torch.tensor([[5, 6]]), "unit_mask": mask, "num_things": torch.tensor(3)}

    rows, marked = shares.OwnRows([{"length": 2}]), shares.Marked(collate)
    learned, spare = marked([rows[0]]), marked([rows[-1]])
    assert shares.num_trained_on(learned) == {"examples": 1, "source_tokens": 2, "target_tokens": 2}
    assert not any(shares.num_trained_on(spare).values())
    assert (learned["labels"].tolist(), spare["labels"].tolist()) == ([[5, 6]], [[-100, -100]])
    assert (int(learned["num_things"]), int(spare["num_things"])) == (3, 0)
