"""What a launch makes of its points: where they run, lost processes, timeouts, and what cannot be launched."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from support.sweeping import three_points, untrained
from support.toys import tiny_overrides, write_jsonl
from support.waiting import PATIENCE

from longsumbench.cli.main import main
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.runs.plan import plan
from longsumbench.sweeps import worker as jobs
from longsumbench.sweeps.launchers import Engine, LaunchBroke, problem_of
from longsumbench.sweeps.state import DONE, FAILED, SAME, PointState, Sweep
from longsumbench.sweeps.status import current
from longsumbench.sweeps.sweep import Launch
from longsumbench.sweeps.worker import Job, Sent, limited


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A small dataset of three splits."""
    return write_jsonl(tmp_path / "toy")


@pytest.fixture
def words(toy: Path, tmp_path: Path) -> list[str]:
    """The words of points that take no training."""
    return untrained(toy, tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Sweep:
    """A sweep of three points that has begun."""
    return three_points(tmp_path)


class Scripted(Engine):
    """An engine whose launcher does as told with each job: "work", "die" at work, or "leave" it.

    Dying at work is what a killed process leaves behind: a point that is running, and that nobody works on.
    """

    def __init__(self, does: Callable[[int, int], str]) -> None:
        super().__init__(launcher="scripted")
        object.__setattr__(self, "does", does)
        object.__setattr__(self, "rounds", [])

    def launch(self, task: Sent, jobs: int, folder: Path) -> None:  # type: ignore[override]
        """Do so; complain, as loky does, when a process died."""
        self.carry_out(task.job())

    def carry_out(self, task: Job) -> None:
        """Do as told with each point."""
        self.rounds.append(task.order)  # type: ignore[attr-defined]
        for number in task.order:
            what = self.does(number, len(task.order))  # type: ignore[attr-defined]
            if what == "work":
                task.work(number)
            elif what == "die":
                task.sweep.note(number, jobs_begun(task.sweep.state(number)))
                raise LaunchBroke("a worker was killed")
            elif what == "leave":
                raise LaunchBroke("nothing works here")


def jobs_begun(state: PointState) -> PointState:
    """Return the state of a point whose process has begun it."""
    return replace(jobs.begun(state), pid=2**22 + 1)


def launched(words: list[str], engine: Engine) -> Launch:
    """Carry out a sweep of three points by an engine."""
    points = plan([*words, "model=lead", "model.length=3,5,7", "baselines=false"], sweep=True)
    launch = Launch(points, ("longsumbench",), sweep=True, engine=engine)
    launch.start()
    return launch


def test_a_lost_process_costs_no_point_its_result(words: list[str]) -> None:
    """A process that dies once takes its point with it for a round only; all points end, each record is there."""
    died: list[int] = []

    def does(number: int, together: int) -> str:
        return "work" if number != 2 or died.append(number) or len(died) > 1 else "die"  # type: ignore[func-returns-value]

    engine = Scripted(does)
    launch = launched(words, engine)
    assert engine.rounds == [(1, 2, 3), (2, 3)]  # type: ignore[attr-defined]
    assert [one.config["model"]["length"] for one in launch.finished] == ["3", "5", "7"]
    assert not launch.failed


def test_a_point_that_always_dies_ends_alone(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Twice it is tried with the others, then alone; then it has failed, and the others have their results."""
    engine = Scripted(lambda number, together: "die" if number == 1 else "work")
    launch = launched(words, engine)
    assert engine.rounds == [(1, 2, 3), (1, 2, 3), (1,), (2, 3)]  # type: ignore[attr-defined]
    assert list(launch.failed) == ["model.length=3"]
    assert "died 3 times, at last alone" in launch.failed["model.length=3"]
    assert [one.config["model"]["length"] for one in launch.finished] == ["5", "7"]
    assert "3 runs: 2 done, 0 found finished, 1 failed" in capsys.readouterr().err


def test_a_point_beside_one_that_dies_is_not_charged(words: list[str]) -> None:
    """One that was at work in both rounds in which a process died ends well alone."""

    def does(number: int, together: int) -> str:
        return "die" if number == 1 and together > 1 else "work"

    launch = launched(words, Scripted(does))
    assert not launch.failed
    assert len(launch.finished) == 3


def test_a_job_that_a_cluster_began_again_did_not_die(words: list[str]) -> None:
    """A preempted point is begun by several processes in one round: only its death in this round counts."""

    class Preempting(Scripted):
        def carry_out(self, task: Job) -> None:
            if not self.rounds:  # type: ignore[attr-defined]
                for _ in range(3):
                    task.sweep.note(2, jobs_begun(task.sweep.state(2)))
            super().carry_out(task)

    died: list[int] = []

    def does(number: int, together: int) -> str:
        return "work" if number != 2 or died.append(number) or len(died) > 1 else "die"  # type: ignore[func-returns-value]

    engine = Preempting(does)
    assert not launched(words, engine).failed
    assert engine.rounds == [(1, 2, 3), (2, 3)]  # type: ignore[attr-defined]


def test_what_is_sent_to_a_process_is_small(words: list[str], folder: Sweep) -> None:
    """However many points a sweep has, a launcher hands on a line; the job that is read from it is the one sent."""
    points = plan([*words, "model=lead", f"model.length={','.join(map(str, range(1, 30)))}"], sweep=True)
    job = Job(dict(enumerate(points, start=1)), ("longsumbench",), folder)
    sent = pickle.loads(pickle.dumps(Sent.of(job, folder.new_launch())))  # noqa: S301 - written a moment ago
    assert len(pickle.dumps(sent)) < 500 < len(pickle.dumps(job))
    assert sent.job() == job


def test_a_launcher_that_begins_nothing_is_one_line(words: list[str]) -> None:
    """It is not asked for ever."""
    with pytest.raises(EnvironmentProblem, match="gave up before a point began: nothing works here"):
        launched(words, Scripted(lambda number, together: "leave"))


def test_what_is_finished_is_told_when_a_launcher_gives_up(words: list[str]) -> None:
    """A cluster may take a sweep once and not again: the records there are by then come into the tables."""

    class Refusing(Scripted):
        def carry_out(self, task: Job) -> None:
            if self.rounds:  # type: ignore[attr-defined]
                raise UsageError("SLURM did not take the sweep")
            super().carry_out(task)

    points = plan([*words, "model=lead", "model.length=3,5", "baselines=false"], sweep=True)
    engine = Refusing(lambda number, together: "die" if number == 2 else "work")
    launch = Launch(points, ("longsumbench",), sweep=True, engine=engine)
    with pytest.raises(UsageError, match="SLURM did not take the sweep"):
        launch.start()
    assert [one.config["model"]["length"] for one in launch.finished] == ["3"]


def test_a_run_that_is_asked_for_again_is_not_launched(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A search may ask for one point twice: the second time nothing is sent anywhere, nor said to be."""
    points = plan([*words, "model=lead", "model.length=3", "baselines=false"])
    engine = Scripted(lambda number, together: "work")
    launch = Launch(points, ("longsumbench",), sweep=True, engine=engine)
    with launch._conducting(["a search"]) as folder:
        for _ in range(2):
            launch._carry_out(folder, points)
    assert engine.rounds == [(1,)]  # type: ignore[attr-defined]
    assert [state.state for state in current(folder)] == [DONE, SAME]
    assert "0 points" not in capsys.readouterr().err


def test_a_point_that_cannot_be_begun_has_failed(
    words: list[str], folder: Sweep, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a launcher would keep to itself, and take for a death, is the point's reason, and stands in its log."""
    (folder.points / "1.lock").mkdir(parents=True)
    job = Job({1: plan([*words, "model=lead"])[0]}, ("longsumbench",), folder)
    job.work(1, alone=True)
    told = f"cannot use {folder.points / '1.lock'} (Is a directory)"
    assert f"failed: {told}" in capsys.readouterr().err
    state = folder.state(1)
    assert (state.state, state.attempts) == (FAILED, 1)
    assert state.reason.startswith(told)
    assert state.ended is not None


def test_what_hung_is_not_tried_again(words: list[str]) -> None:
    """A process that was ended after the limit, from outside Python, is a failure at once; one killed before is not.

    Both are judged 61 s after they began: the one said its last then, the other right after it began.
    """

    class Hanging(Scripted):
        def carry_out(self, task: Job) -> None:
            self.rounds.append(task.order)  # type: ignore[attr-defined]
            for number in task.order if len(self.rounds) == 1 else ():  # type: ignore[attr-defined]
                began = time.time() - 61
                task.sweep.note(number, replace(jobs_begun(task.sweep.state(number)), started=began))
                task.sweep.log(number).touch()
                if number != 2:
                    os.utime(task.sweep.log(number), (began + 1, began + 1))
            if len(self.rounds) > 1:  # type: ignore[attr-defined]
                for number in task.order:
                    task.work(number)
            raise LaunchBroke("a worker ended")

    engine = Hanging(lambda number, together: "")
    launch = launched([*words, "timeout_minutes=1"], engine)
    assert launch.failed == {"model.length=5": "hung, and was ended after timeout_minutes=1"}
    assert engine.rounds == [(1, 2, 3), (1, 3)]  # type: ignore[attr-defined]


def test_a_launch_tells_what_became_of_its_own_points(words: list[str]) -> None:
    """Another process that has waited for the sweep writes over its files; the table is of before that."""
    launch = launched(words, Scripted(lambda number, together: "work"))
    launched(words, Scripted(lambda number, together: "work"))
    assert launch.table().count("done") == 3


def test_a_launcher_writes_where_none_has_written(folder: Sweep) -> None:
    """What an earlier launch of the same sweep submitted is not taken for the present one's jobs."""
    first = folder.new_launch()
    first.mkdir()
    (folder.root / "launcher" / "multirun.yaml").touch()
    second = folder.new_launch()
    second.mkdir()
    assert [first.name, second.name, folder.new_launch().name] == ["1", "2", "3"]


def test_a_record_that_others_make_anew_ends_no_sweep(words: list[str], tmp_path: Path) -> None:
    """Another sweep may have emptied a run's folder, which is its own affair: the other points are told."""

    class Emptied(Scripted):
        def carry_out(self, task: Job) -> None:
            super().carry_out(task)
            next((tmp_path / "r").rglob("record.json")).unlink()

    launch = launched(words, Emptied(lambda number, together: "work"))
    assert len(launch.finished) == 2
    assert not launch.failed


def test_a_sweep_draws_its_own_runs(words: list[str], tmp_path: Path) -> None:
    """Not a larger one over the same setting that may not be compared; `leaderboard` draws that one."""
    assert main(["run", "-m", *words, "model=lead", "model.length=2,3,5,7", "baselines=false"]) == 0
    assert main(["run", "-m", *words, "model=lead", "model.length=3,5", "decode.limit=1", "baselines=false"]) == 0
    (drawn,) = (tmp_path / "r" / "leaderboard").glob("*-length.csv")
    assert list(pd.read_csv(drawn)["n"][:2]) == [1, 1]
    dataset = drawn.name.removesuffix("-length.csv")
    assert main(["leaderboard", dataset, "--against", "length", "--results-dir", str(tmp_path / "r")]) == 0
    assert 1 not in list(pd.read_csv(drawn)["n"][:4])


def test_joblib_gives_what_one_process_gives(toy: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The same sweep by joblib's processes writes the same records and predictions; the second time it finds them."""
    words = [*tiny_overrides(toy, steps=4), "baselines=false", "seed=1,2"]
    engine = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    assert main(["run", "-m", *words, f"results_dir={tmp_path / 'one'}"]) == 0
    assert main(["run", "-m", *words, f"results_dir={tmp_path / 'many'}", *engine]) == 0
    capfd.readouterr()
    one, many = (
        {path.relative_to(root / "runs"): path.read_bytes() for path in root.rglob("predictions.jsonl")}
        for root in (tmp_path / "one", tmp_path / "many")
    )
    assert one == many
    assert len(one) == 2
    assert main(["run", "-m", *words, f"results_dir={tmp_path / 'many'}", *engine]) == 0
    said = capfd.readouterr().err
    assert "2 runs: 0 done, 2 found finished, 0 failed" in said
    assert "training" not in said
    logs = sorted((tmp_path / "many").rglob("points/*.log"))
    assert ["already finished" in log.read_text(encoding="utf-8") for log in logs] == [True, True]


def test_a_failure_in_another_process_is_told_with_its_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, the reason, and where its log is; the other point is done."""
    toy = write_jsonl(tmp_path / "toy", train=0, validation=0)
    words = ["dataset=jsonl", f"dataset.path={toy}", f"results_dir={tmp_path / 'r'}", "baselines=false"]
    assert main(["run", "-m", *words, "model=lead,oracle", "hydra/launcher=joblib", "hydra.launcher.n_jobs=1"]) == 1
    said = capfd.readouterr().err
    assert "1 of 2 points failed" in said
    log = next((tmp_path / "r").rglob("points/1.log"))
    assert "needs a train split" in log.read_text(encoding="utf-8")
    assert f"({log})" in said
    state = json.loads(log.with_suffix(".json").read_text(encoding="utf-8"))
    assert (state["state"], state["attempts"]) == ("failed", 1)


def test_what_is_for_clusters_is_left_alone_elsewhere(words: list[str]) -> None:
    """A sweep by joblib does not import submitit, which would alter the logging of the whole process."""
    sweep = ["run", "-m", *words, "model=lead", "baselines=false", "hydra/launcher=joblib", "hydra.launcher.n_jobs=1"]
    code = f"import sys; from longsumbench.cli.main import main; print(main({sweep}), 'submitit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.splitlines()[-1] == "0 False"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["hydra/launcher=joblob"], 2, "unknown hydra/launcher 'joblob' (did you mean 'joblib'?)"),
        (["hydra/launcher=joblib", "hydra.launcher.n_job=2"], 2, "'hydra.launcher.n_job' (did you mean 'n_jobs'?)"),
        (["hydra/launcher=joblib", "hydra.launcher.n_jobs=two"], 2, "Value 'two' of type 'str' could not be converted"),
        (["hydra.launcher.n_jobs=2"], 2, "choose one, as hydra/launcher=joblib"),
        (["model.length=interval(3,5)"], 2, "is a range without values: use hydra/sweeper=optuna to search it"),
        (["hydra/sweeper=optuna", "experiment=etads-table5"], 2, "run it with -m, without a sweeper"),
        (["hydra.run.dir=x"], 2, "of Hydra's own settings, hydra/launcher=… and hydra.launcher.…"),
        (["hydra/launcher"], 2, "of Hydra's own settings"),
        (["hydra.launcher=joblib"], 2, "one is chosen by hydra/launcher=joblib, with a slash"),
        (["model.lenght=3,5"], 2, "'model.lenght'"),
        (["modle.length=3,5"], 2, "unknown setting 'modle.length' (did you mean 'model'?)"),
    ],
)
def test_what_cannot_be_launched_is_one_line(
    words: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A launcher, its setting, or a swept key that does not exist is wrong usage; nothing is begun."""
    assert main(["run", "-m", "model=lead", f"results_dir={tmp_path / 'r'}", *words]) == code
    said = capsys.readouterr().err.strip()
    assert told in said
    assert "\n" not in said
    assert not (tmp_path / "r").exists()


def test_a_setting_that_a_launcher_refuses_is_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Only the launcher itself knows that no process at all is wrong usage."""
    engine = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=0"]
    assert main(["run", "-m", *words, "model=lead", "baselines=false", *engine]) == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert told.startswith("longsumbench: hydra/launcher=joblib cannot begin: n_jobs == 0")


def test_jobs_of_a_cluster_outlive_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C says that submitted jobs go on, and how to end them."""

    class Interrupted:
        def launch(self, *_: object, **__: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr("hydra.core.plugins.Plugins.instantiate_launcher", lambda *_: Interrupted())
    engine = Engine.of(["hydra/launcher=slurm_cpu"], sweep=True)
    with pytest.raises(KeyboardInterrupt, match="scancel --name=longsumbench"):
        engine.launch(print, 1, tmp_path)
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        Engine.of(["hydra/launcher=joblib"], sweep=True).launch(print, 1, tmp_path)


@pytest.mark.parametrize(("launcher", "waits"), [("slurm_cpu", True), ("submitit_local", False), ("joblib", False)])
def test_jobs_that_nobody_here_could_ask_after_are_not_waited_for(
    launcher: str, waits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a launcher that gives up, a cluster's jobs go on; those of this machine no cluster could tell of."""

    class Broken:
        def __init__(self) -> None:
            self.joblib = {"n_jobs": 2}

        def launch(self, *_: object, **__: object) -> None:
            raise RuntimeError("a job died")

    waited: list[Path] = []
    monkeypatch.setattr("hydra.core.plugins.Plugins.instantiate_launcher", lambda *_: Broken())
    monkeypatch.setattr("longsumbench.sweeps.launchers.wait_for_jobs", waited.append)
    with pytest.raises(LaunchBroke, match="a job died"):
        Engine.of([f"hydra/launcher={launcher}"], sweep=True).launch(print, 1, tmp_path)
    assert waited == [tmp_path] * waits


def test_a_job_that_ran_out_of_memory_ends_no_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher's error quotes what SLURM wrote of a dead process; only without `srun` does it mean "no SLURM"."""
    quoted = RuntimeError("Job 58_1 has not produced any output\nsrun: error: node7: task 0: Out Of Memory")
    monkeypatch.setattr("shutil.which", lambda program: f"/usr/bin/{program}")
    assert isinstance(problem_of(quoted, Engine(launcher="slurm_cpu")), LaunchBroke)
    monkeypatch.setattr("shutil.which", lambda program: None)
    assert "no SLURM on this machine" in str(problem_of(quoted, Engine(launcher="slurm_cpu")))
    assert isinstance(problem_of(MemoryError(), Engine(launcher="joblib")), EnvironmentProblem)


def test_a_point_out_of_stretches_says_which_settings_give_it_more() -> None:
    """The library's own words would not help a user."""
    error = RuntimeError("Job not requeued because: timed-out too many times.")
    assert "hydra.launcher.timeout_min" in str(jobs.out_of_stretches(error))
    assert jobs.out_of_stretches(RuntimeError("something else")) is None


def test_a_launcher_is_for_sweeps() -> None:
    """A single point is not sent anywhere in silence."""
    with pytest.raises(UsageError, match="add -m"):
        Engine.of(["hydra/launcher=joblib"], sweep=False)


@pytest.mark.parametrize(
    ("word", "extra"),
    [
        ("hydra/launcher=joblib", "joblib"),
        ("hydra/launcher=submitit_slurm", "slurm"),
        ("hydra/sweeper=optuna", "optuna"),
    ],
)
def test_a_launcher_that_is_not_installed_names_its_extra(
    word: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 4, and the command that installs it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EnvironmentProblem, match=f"pip install 'longsumbench\\[{extra}\\]'"):
        Engine.of([word], sweep=True)


def test_a_sweep_does_anew_once_what_its_points_share(toy: Path, tmp_path: Path) -> None:
    """With overwrite=true two points that share a checkpoint train again, once, also side by side; each is told."""
    words = [*tiny_overrides(toy, steps=4), f"results_dir={tmp_path / 'r'}", "baselines=false", "decode.num_beams=1,2"]

    def trained() -> list[float]:
        records = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "r").rglob("record.json")]
        return [record["fit"]["seconds"] for record in records]

    times = []
    for engine in ([], ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]):
        assert main(["run", "-m", *words, "overwrite=true", *engine]) == 0
        assert len(trained()) == 2
        times.append(set(trained()))
    assert [len(seconds) for seconds in times] == [1, 1]
    assert times[0] != times[1]


def test_a_point_that_takes_too_long_is_stopped() -> None:
    """By an error that says what to do; one that ends in time is left alone, and the alarm with it."""
    with pytest.raises(EnvironmentProblem, match=r"stopped after timeout_minutes=0\.001"), limited(0.001, alone=False):
        signal.pause()
    for minutes in (1, 1e12, float("inf")):  # no clock could be set to the last ones
        with limited(minutes, alone=True):
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 59
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_follows_an_error_has_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Baselines beside a point that took too long are stopped, too."""
    monkeypatch.setattr(jobs, "_GRACE", 0.2)
    with limited(0.001, alone=False):
        for _ in range(2):
            with pytest.raises(EnvironmentProblem, match="stopped after"):
                signal.pause()


def test_what_hangs_outside_python_ends_its_process() -> None:
    """The alarm is not heard there: the process is ended from outside, its stack in its log."""
    code = (
        "import signal\nfrom longsumbench.sweeps import worker as jobs\njobs._GRACE = 0.3\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
        "with jobs.limited(0.001, alone=True):\n    signal.sigwait([signal.SIGUSR1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert "Timeout" in done.stderr
    assert "sigwait" in code
    assert "line 6" in done.stderr
