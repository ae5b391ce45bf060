"""A sweep on a disk that fills up: one clear line a point, nothing finished is lost, the same command completes it."""

import random
import shutil
from pathlib import Path

import pytest
from support.full_disk import Disk
from support.paths import TESTS
from support.sweeping import JOBLIB, TWELVE, Swept, assert_same, said_by
from support.toys import write_jsonl

from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cli.main import main

UNTRAINED = ("model=lead,random", "seed=1,2", "dataset.split=validation,test")  # eight points, of them six runs
FULL = "the disk is full at "
IN_WORKERS = """\
import sys

if any("loky" in word for word in sys.orig_argv):
    sys.path.insert(0, {tests!r})
    from support.full_disk import Disk

    class Patches:
        setattr = staticmethod(setattr)

    Disk([{folder!r}], first={first}, last={last}).fill(Patches)
"""


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset of all sweeps here."""
    return write_jsonl(tmp_path_factory.mktemp("texts"), train=24, validation=6, test=12)


def run(sweep: Swept, monkeypatch: pytest.MonkeyPatch, disk: Disk | None = None) -> int:
    """Run a sweep in this process, on a disk with as much space as said; return its exit code."""
    with monkeypatch.context() as here:
        here.setenv(CACHE_VARIABLE, str(sweep.cache))
        if disk is not None:
            disk.fill(here)
        return main(sweep.words)


def check_told(said: str, code: int) -> None:
    """Check the last words of a sweep whose disk was full: one line in all, or one for each point that failed."""
    assert "Traceback" not in said
    *_, last = said.partition("longsumbench: ")
    line, *reasons = last.splitlines()
    if code == 4:
        assert FULL in line
        assert not reasons
    else:
        assert (code, line.endswith("failed, the others are kept:")) == (1, True)
        assert reasons
        assert all(FULL in reason for reason in reasons)


@pytest.mark.parametrize("times", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_a_sweep_whose_disk_stays_full(
    times: int, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """However often it is so, what is finished stays; with some space the same command ends as if nothing had been."""
    undisturbed, sweep = Swept(texts, tmp_path / "undisturbed", TWELVE), Swept(texts, tmp_path / "sweep", TWELVE)
    assert run(undisturbed, monkeypatch) == 0
    chance = random.Random(max(times, 5))
    for _ in range(times):
        before, disk = sweep.records(), Disk([tmp_path], first=chance.randint(30, 200))
        capfd.readouterr()
        code = run(sweep, monkeypatch, disk)
        assert disk.failed
        check_told(capfd.readouterr().err, code)
        assert before.items() <= sweep.records().items()
    assert run(sweep, monkeypatch) == 0
    assert_same(sweep, undisturbed)


@pytest.mark.parametrize("times", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_a_moment_without_space_costs_a_run_at_most(
    times: int, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whichever write fails, either nothing was begun or all but one run are done; the same command does the rest."""
    undisturbed, counting = Swept(texts, tmp_path / "undisturbed", UNTRAINED), Disk([tmp_path], first=10**9)
    assert run(undisturbed, monkeypatch, counting) == 0
    runs = len(undisturbed.records())
    for failing in random.Random(times).sample(range(1, counting.writes + 1), k=times):
        sweep = Swept(texts, tmp_path / str(failing), UNTRAINED)
        capfd.readouterr()
        if code := run(sweep, monkeypatch, Disk([tmp_path], failing, failing)):
            check_told(capfd.readouterr().err, code)
        assert len(sweep.records()) in ((0, runs) if code == 4 else (runs - 1, runs))
        assert run(sweep, monkeypatch) == 0
        assert_same(sweep, undisturbed)


def test_a_sweeps_own_files_take_no_points_result(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where it cannot be written what became of the points, they are done and counted as ever."""
    sweep = Swept(texts, tmp_path, UNTRAINED)
    assert run(sweep, monkeypatch) == 0
    (files,), records = sweep.results.glob("sweeps/*/points"), sweep.records()
    shutil.rmtree(sweep.results / "runs")
    capfd.readouterr()
    disk = Disk([files], first=1)
    assert run(sweep, monkeypatch, disk) == 0
    assert disk.failed
    assert "6 runs: 6 done, 0 found finished, 0 failed" in capfd.readouterr().err
    assert not list(files.glob("*.json"))
    assert sweep.records() == records


@pytest.mark.slow
def test_workers_without_space(texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where joblib's processes have none for a while, points are tried again or have failed with that reason."""
    undisturbed, words = Swept(texts, tmp_path / "undisturbed", UNTRAINED), (*UNTRAINED, *JOBLIB)
    assert run(undisturbed, monkeypatch) == 0
    (tmp_path / "path").mkdir()
    full = IN_WORKERS.format(tests=str(TESTS), folder=str(tmp_path), first=60, last=90)
    (tmp_path / "path" / "sitecustomize.py").write_text(full, encoding="utf-8")
    code, said = said_by(Swept(texts, tmp_path, words, path=tmp_path / "path").start())
    if code:
        check_told(said, code)
    else:
        assert "6 runs: 6 done" in said  # points whose process could not write were tried again
    sweep = Swept(texts, tmp_path, words)
    sweep.finish()
    assert_same(sweep, undisturbed)
