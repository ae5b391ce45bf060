"""Several processes for one run: what one process makes of it, also after kills and failures."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.processes import ForkedProcess, start_together
from support.tiny_causal import causal_folder
from support.tiny_seq2seq import tiny_checkpoint
from support.toys import TINY_FOR_ALL, told_in, write_jsonl
from support.waiting import PATIENCE, wait_until

from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cli.main import main
from longsumbench.core import registry
from longsumbench.errors import EnvironmentProblem
from longsumbench.modeling import processes
from longsumbench.runs.record import RunRecord
from longsumbench.sweeps import worker

ByTwo = tuple[Path, str, str]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
CLOSE = 2e-5  # of losses, as a share: sums of float32 in another order; ten times what was measured
COUNTS = "parameters steps examples source_tokens target_tokens ended_by best_step"
BUDGET = "train.max_steps=8 train.eval_steps=2 train.batch_size=8 decode.batch_size=3"
# Of 25 examples in batches of 8 the last is alone: one of two processes has none. What is special about each:
POINTS = {
    "trunc": "train.accumulation=2 train.keep_best=2",
    "seal": "train.batch_words=120",  # another loss, a mean over other things
    "hierarchical_transformer": "model.rank=lstm",  # whose ranker one process trains alone
    "prompt": f"model.checkpoint={causal_folder()} model.lora_rank=2 model.tokenizer=null model.length=6"
    " model.input_length=400 model.decode_length=64",
    "lead": "",
}


def words(model: str, texts: Path, *others: str, dropout: float = 0.0) -> list[str]:
    """Return the command that runs a tiny system on texts."""
    known = {item.name for item in fields(registry.systems.load(model).Config)}
    settings = {**TINY_FOR_ALL, "dropout": dropout}
    own = [f"model.{name}={value}" for name, value in settings.items() if name in known]
    own += [f"model.checkpoint={tiny_checkpoint()}"] if model == "seq2seq" else []
    command = f"run model={model} dataset=jsonl dataset.path={texts} scale=tiny score.resamples=100"
    command += f" baselines=false {BUDGET if model != 'lead' else ''}"
    return [*command.split(), *own, *others]


COMMANDS = """
import json, sys
from longsumbench.cli.main import main
for words in json.loads(sys.argv[1]):
    if code := main(words):
        sys.exit(code)
"""


def start(folder: Path, *commands: list[str], count: int = 2) -> list[ForkedProcess]:
    """Start some processes that give the suite these commands, with their cache in a folder."""
    environment = {**os.environ, CACHE_VARIABLE: str(folder / "cache")}
    return start_together(count, COMMANDS, json.dumps(commands), env=environment)


def in_processes(folder: Path, *commands: list[str], count: int = 2) -> tuple[int, str, str]:
    """Do the same to the end; return the exit code of the first process, and what all wrote."""
    processes = start(folder, *commands, count=count)
    outputs = [process.communicate() for process in processes]
    code = processes[0].wait()
    return code, "".join(out for out, _ in outputs), "".join(err for _, err in outputs)


def read_record(results: Path, model: str) -> tuple[RunRecord, list[bytes]]:
    """Return the record of a system's only run, and the predictions of all its checkpoints."""
    (folder,) = (path.parent for path in results.glob(f"runs/jsonl/{model}/*/record.json"))
    return RunRecord.read(folder), [
        path.read_bytes() for path in sorted(folder.glob("predictions*.jsonl"))
    ]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset of all runs here."""
    return write_jsonl(tmp_path_factory.mktemp("texts"), train=25, validation=7, test=11)


@pytest.fixture(scope="module")
def by_two(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> ByTwo:
    """Results folder, stdout and stderr of two processes: all points, the first again, a training that a test kills."""
    folder = tmp_path_factory.mktemp("two")
    commands = []
    for model, others in POINTS.items():
        commands.append(words(model, texts, *others.split(), f"results_dir={folder / 'results'}"))
    again = [commands[0], killed_words(texts, folder / "whole")]
    code, stdout, stderr = in_processes(folder, *commands, *again)
    assert code == 0, (stdout, stderr)
    return folder / "results", stdout, stderr


def killed_words(texts: Path, results: Path) -> list[str]:
    """Return the command of the training that is killed."""
    budget = ["train.max_steps=18", "train.eval_steps=3"]
    return words("trunc", texts, *budget, f"results_dir={results}", dropout=0.2)


@pytest.mark.parametrize("model", POINTS)
def test_two_processes_do_what_one_does(
    model: str, texts: Path, by_two: ByTwo, tmp_path: Path
) -> None:
    """The same run, counts and predictions, and losses that differ in rounding alone."""
    assert main(words(model, texts, *POINTS[model].split(), f"results_dir={tmp_path}")) == 0
    (one, predictions), (two, same) = read_record(tmp_path, model), read_record(by_two[0], model)
    assert one.run_id == two.run_id
    assert two.environment.processes == (1 if model == "lead" else 2)
    assert predictions == same
    for name in COUNTS.split():
        assert vars(one.fit)[name] == vars(two.fit)[name]
    for name in ("validation_losses", "kept", "first_loss", "last_loss"):
        losses = [np.array(vars(run.fit)[name] or 0.0) for run in (one, two)]
        np.testing.assert_allclose(losses[0], losses[1], rtol=CLOSE)


def test_the_first_process_alone_speaks(by_two: ByTwo) -> None:
    """A table is printed once for each command, nobody warns, and no process leaves a file of its share."""
    results, out, err = by_two
    assert out.count("test split, 11 examples") == len(POINTS) + 2
    assert err.count("already finished: trunc") == 1
    said = [
        line
        for line in told_in(err)
        if line and "OMP_NUM_THREADS" not in line and "***" not in line
    ]
    # What so small a network writes may look like pieces of words
    known = re.compile("already finished|pieces of words")
    assert [line for line in said if not known.search(line)] == []
    assert not list(results.rglob("*.part*"))
    assert not list((results.parent / "cache").rglob("*.partial"))


def test_a_point_that_fails_leaves_the_next_to_both(texts: Path, tmp_path: Path) -> None:
    """In a sweep, a training that diverges fails in both processes; they train the next point together."""
    rates = ["-m", "train.learning_rate=1e6,0.001", "train.schedule=constant"]
    command = words("trunc", texts, f"results_dir={tmp_path / 'results'}", *rates)
    code, _, err = in_processes(tmp_path, command)
    assert code == 1
    assert "2 runs: 1 done, 0 found finished, 1 failed" in err
    assert read_record(tmp_path / "results", "trunc")[0].environment.processes == 2


def test_a_killed_training_ends_with_the_same_bits(
    texts: Path, by_two: ByTwo, tmp_path: Path
) -> None:
    """With one process killed, the other says why it ends; continued, the run has the outcome of no kill, to the bit.

    With dropout: every process's draws go on, too.
    """

    def outcome(results: Path) -> tuple[Any, ...]:
        """Return what must not depend on kills: losses and counts, predictions, weights."""
        record, predictions = read_record(results, "trunc")
        (weights,) = (
            path.read_bytes()
            for path in results.glob("runs/*/*/*/work/checkpoint/model.safetensors")
        )
        return replace(record.fit, seconds=0.0), predictions, weights

    command = killed_words(texts, tmp_path / "results")
    first, second = start(tmp_path, command)
    wait_until(
        lambda: list(tmp_path.glob("cache/checkpoint/*.partial/trainer/checkpoint-6")), first
    )
    second.send_signal(signal.SIGKILL)
    _, err = first.communicate()
    assert (first.returncode, second.wait()) == (4, -signal.SIGKILL), err
    assert "another process failed: run the same command again" in err
    code, *said = in_processes(tmp_path, command)
    assert code == 0, said
    assert outcome(tmp_path / "results") == outcome(by_two[0].parent / "whole")


ALONE_AND_TOGETHER = """
from pathlib import Path
from longsumbench.modeling.processes import *
def work(folder):
    with first_process_first():
        if folder.name == "unreadable":
            raise OSError
    wait_for_everyone()
    if folder.name == "large" and process_index() == 0:
        raise MemoryError
    wait_for_everyone()
with first_process(work) as first:
    for name in ["unreadable", "small", "large", "never"] if first else []:
        try:
            with share_run(Path(name), "cpu"):
                work(Path(name))
            print("done", name, flush=True)
        except OSError:
            print("failed", name, flush=True)
"""


def test_an_error_in_one_process_ends_the_launch(tmp_path: Path) -> None:
    """Where the others wait for the first process, its error fails one run; elsewhere it ends both with a line each.

    This launch is torchrun's own.
    """
    script = tmp_path / "script.py"
    script.write_text(ALONE_AND_TOGETHER)
    launch = [*TORCHRUN, "--nproc-per-node=2", str(script)]
    done = subprocess.run(launch, capture_output=True, text=True, timeout=PATIENCE)
    err = done.stderr
    assert (done.returncode, done.stdout) == (1, "failed unreadable\ndone small\n")
    assert "longsumbench: process 0 of 2: out of memory" in err
    assert "longsumbench: process 1 of 2: another process failed: run the same command again" in err


ENVIRONMENT = {
    "RANK": "1",
    "WORLD_SIZE": "2",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "localhost",
    "MASTER_PORT": "29500",
}
TASK = "JOB_ID=7 JOB_NUM_NODES=1 NODEID=0 NTASKS=2 PROCID=1 LOCALID=1"  # variables of SLURM


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Clear the environment of a launcher, which a test then sets."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    processes._launch.cache_clear()
    yield monkeypatch
    processes._launch.cache_clear()


@pytest.mark.parametrize(("lacking", "count"), [("", 2), ("WORLD_SIZE", 1), ("MASTER_PORT", 1)])
def test_a_launch_is_read_from_the_environment_and_hidden_there(
    lacking: str, count: int, launched: pytest.MonkeyPatch
) -> None:
    """Without all variables there is one process. Libraries see one, and so does a run that is not shared."""
    for name in ENVIRONMENT.keys() - {lacking}:
        launched.setenv(name, ENVIRONMENT[name])
    assert (processes.started_processes(), "RANK" in os.environ) == (count, False)
    assert (processes.process_count(), processes.process_index()) == (1, 0)


@pytest.mark.parametrize("rank", ["0", "1"])
def test_processes_that_cannot_meet_say_so(rank: str, launched: pytest.MonkeyPatch) -> None:
    """A port that another program has, and a first process that is not there, are one line each."""
    launched.setattr(processes, "_STARTING", timedelta(seconds=1))
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        if rank == "0":
            taken.listen()
        variables = {"RANK": rank, "MASTER_PORT": str(taken.getsockname()[1])}
        for name, value in {**ENVIRONMENT, **variables}.items():
            launched.setenv(name, value)
        with (
            pytest.raises(
                EnvironmentProblem,
                match=r"^2 processes cannot meet at MASTER_ADDR=localhost[^\n]*$",
            ),
            processes.first_process(lambda folder: None),
        ):
            pass


@pytest.mark.parametrize(("executor", "count"), [("slurm", 2), ("", 1)])
def test_tasks_of_a_cluster_job_work_together(
    executor: str, count: int, launched: pytest.MonkeyPatch
) -> None:
    """Tasks that submitit started are processes of one run and keep their GPUs; joblib's in a job work alone."""
    pytest.importorskip("submitit", reason="the extra slurm")
    for word in TASK.split():
        launched.setenv(*f"SLURM_{word}".split("="))
    launched.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    launched.setenv("SUBMITIT_EXECUTOR", executor)
    worker.share_a_cluster_job()
    assert (processes.started_processes(), os.environ["CUDA_VISIBLE_DEVICES"]) == (count, "4,5")
