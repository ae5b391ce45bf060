"""Sweeps: what a command makes of its points, here and in other processes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.commands import Command
from support.json_files import read_json
from support.sweeping import JOBLIB, untrained
from support.toys import refuses

from longsumbench.cli.main import main
from longsumbench.sweeps.launchers import choose_engine
from longsumbench.sweeps.run import plan_launch
from longsumbench.sweeps.state import sweeps_in
from longsumbench.sweeps.sweep import Launch


@pytest.fixture
def words(toy: Path, tmp_path: Path) -> list[str]:
    """The overrides of points without training and baselines; results go to `tmp_path / "r"`."""
    return [*untrained(toy, tmp_path), "baselines=false"]


def records(results: Path) -> dict[str, dict[str, Any]]:
    """Return run id → record of every finished run."""
    found = results.glob("runs/*/*/*/record.json")
    return {path.parent.name: read_json(path) for path in found}


def started(words: list[str]) -> Launch:
    """Run a sweep and return its outcome."""
    launch = plan_launch(words, sweep=True, config_dir=None, command=("longsumbench",))
    launch.start()
    return launch


def test_a_sweep_runs_each_run_once(toy: Path, tmp_path: Path, log_lines: list[str]) -> None:
    """Points that are the same run are run once; so are baselines, which the sweep's own points include."""
    words = [*untrained(toy, tmp_path), "model=lead,random", "seed=1,2"]
    launch = started(words)
    (sweep,) = sweeps_in(tmp_path / "r")
    assert [line.partition(": done")[0] for line in log_lines] == [
        "a sweep of 4 runs: each of one system on one dataset",
        f"they run one after the other; to watch them: longsumbench status {sweep.root.name}",
        "1 run left out: the same as another run",
        "run 1/3: model=lead seed=1 and 1 more: the same run",
        "run 2/3: model=random seed=1",
        "run 3/3: model=random seed=2",
        "3 runs: 3 done, 0 found finished, 0 failed",
    ]
    models = sorted(run["key"]["model"] for run in records(tmp_path / "r").values())
    assert models == ["lead", "oracle", "random", "random"]
    points = [("lead", None), ("lead", None), ("random", 1), ("random", 2)]
    assert [(run.key.model, run.key.seed) for run in launch.records()] == points
    again = started(words)
    assert log_lines[-1] == "3 runs: 0 done, 3 found finished, 0 failed"
    assert {run.run_id for run in again.finished} == set(records(tmp_path / "r"))


def test_a_failing_baseline_leaves_its_point_alone(
    toy: Path, tmp_path: Path, run_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The point and the other baselines are finished; the command ends with exit code 1 and names the baseline."""

    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("longsumbench.models.baselines.system.Random.summarize", exhausted)
    words = ["model=lead", "model.length=5", "model.title=true,false"]
    output = run_command(1, "run", "-m", *untrained(toy, tmp_path), *words)
    models = sorted(run["key"]["model"] for run in records(tmp_path / "r").values())
    assert models == ["lead", "lead", "oracle"]
    said = output.err
    assert "2 runs: 2 done, 0 found finished, 0 failed" in said
    assert "1 of 2 runs failed, the others are kept:" in said
    assert "\nmodel.title=True  baseline random: out of memory" in said


@pytest.mark.usefixtures("without_rendering")
def test_a_sweep_draws_its_own_runs(words: list[str], tmp_path: Path) -> None:
    """The curve has the runs of this sweep, not those of a larger one; `leaderboard` draws the larger one."""
    assert main(["run", "-m", *words, "model=lead", "model.length=2,3,5,7"]) == 0
    assert main(["run", "-m", *words, "model=lead", "model.length=3,5", "decode.limit=1"]) == 0
    (drawn,) = (tmp_path / "r" / "leaderboard").glob("*-length.csv")
    assert list(pd.read_csv(drawn)["n"][:2]) == [1, 1]
    against = ["leaderboard", "jsonl", "--against", "length"]
    assert main([*against, "--results-dir", str(tmp_path / "r")]) == 0
    assert 1 not in list(pd.read_csv(drawn)["n"][:4])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("hydra/launcher=joblob", "unknown hydra/launcher 'joblob' (did you mean 'joblib'?)"),
        (
            "hydra/launcher=joblib hydra.launcher.n_job=2",
            "Could not override 'hydra.launcher.n_job'.",
        ),
        (
            "hydra/launcher=joblib hydra.launcher.n_jobs=0",
            "hydra/launcher=joblib cannot begin: n_jobs == 0",
        ),
        ("model.length=interval(3,5)", "is a range: use hydra/sweeper=optuna to search it"),
        (
            "hydra/sweeper=optuna hydra.sweeper.direction=up",
            "hydra/sweeper=optuna: `directions`",
        ),
        (
            "hydra/sweeper=optuna hydra.sweeper.n_trials=2 model.lenght=choice(3,4)",
            "unknown setting 'model.lenght' (did you mean 'length'?)",
        ),
    ],
)
def test_what_cannot_be_launched_is_one_line(
    words: str, message: str, run_command: Command, tmp_path: Path
) -> None:
    """A launcher, its setting, or a swept key that does not exist is wrong usage; no point is run."""
    results = f"results_dir={tmp_path / 'r'}"
    stderr = run_command(2, "run", "-m", "model=lead", results, *words.split()).err
    assert message in stderr.splitlines()[-1]
    assert not list(tmp_path.rglob("record.json"))


def test_settings_of_a_launcher(tmp_path: Path) -> None:
    """They come from its file, the file it extends, a folder of one's own, and the command line."""
    (tmp_path / "hydra" / "launcher").mkdir(parents=True)
    own = "defaults: [slurm_gpu, _self_]\npartition: ours\n"
    (tmp_path / "hydra" / "launcher" / "ours.yaml").write_text(own)
    words = [
        "hydra/launcher=ours",
        "hydra.launcher.mem_gb=8",
        "+hydra.launcher.additional_parameters.reservation=night",
    ]
    engine = choose_engine(words, sweep=True, config_dir=str(tmp_path))
    settings = engine.settings["launcher"]
    found = [settings[key] for key in ("executor", "partition", "mem_gb", "gpus_per_node", "qos")]
    assert (engine.launcher, found) == ("ours", ["slurm", "ours", 8, 1, None])
    assert settings["additional_parameters"] == {"requeue": True, "reservation": "night"}


def test_a_cluster_without_slurm(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 4 and the launcher that works on this machine."""
    pytest.importorskip("submitit", reason="the extra slurm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longsumbench.sweeps.launchers.shutil.which", lambda program: None)
        assert main(["run", "-m", *words, "model=lead", "hydra/launcher=slurm_cpu"]) == 4
    assert "no SLURM on this machine (no srun); hydra/launcher=joblib" in capsys.readouterr().err


class Begun(Exception):
    """A sweep began its work."""


@pytest.fixture
def start(toy: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], None]:
    """A function that starts points on a machine without a GPU, and raises `Begun` before any work."""

    def begin(*_: object, **__: object) -> None:
        raise Begun

    monkeypatch.setattr("longsumbench.sweeps.sweep.run_point", begin)
    monkeypatch.setattr("longsumbench.sweeps.state.exclusive_lock", begin)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)

    def start(words: list[str]) -> None:
        data = ["dataset=jsonl", f"dataset.path={toy}"]
        plan_launch([*data, *words], any("," in word for word in words), None, ()).start()

    return start


def test_the_papers_sizes_need_a_gpu(
    start: Callable[[list[str]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would train for days without a GPU is refused before any work, unless its scale or budget is typed."""
    refused = "model=trunc dataset=jsonl trains at scale=paper.*scale=small.*scale=paper"
    for words in (["model=trunc"], ["model=lead,trunc", *JOBLIB]):
        with refuses(refused):
            start(words)
    for word in ("scale=paper", "scale=tiny", "train.max_steps=0", "train.max_minutes=5"):
        with pytest.raises(Begun):
            start(["model=trunc", word])
    with pytest.raises(Begun):  # the nodes of a cluster may have GPUs
        start(["model=trunc", "seed=1,2", "hydra/launcher=slurm_gpu"])
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    with refuses(refused):
        start(["model=trunc", "device=cpu"])
    with pytest.raises(Begun):
        start(["model=trunc"])
