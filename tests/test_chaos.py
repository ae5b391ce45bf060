"""A sweep that is killed again and again ends with the table of one that nobody disturbed."""

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toys import TINY, write_jsonl

KILLS = 5
MEASURED = ("train_seconds", "tokens_per_second", "peak_memory_gb")  # columns that no two runs share
SWEEP = ["model=lead,random,trunc", "train.keep_best=1,3", "seed=1,2"]


class Sweep:
    """A sweep of eight runs with a cache and results of its own.

    Args:
        texts: a jsonl dataset.
        folder: for cache and results.
    """

    def __init__(self, texts: Path, folder: Path) -> None:
        self.results, self.cache = folder / "results", folder / "cache"
        model = [f"model.{key}={value}" for key, value in TINY.items() if key != "input_length"]
        budget = ["train.max_steps=12", "train.eval_steps=3", "train.batch_size=8", "decode.batch_size=2"]
        data = ["dataset=jsonl", f"dataset.path={texts}", "scale=tiny", "score.resamples=100"]
        words = [*data, *budget, *model, *SWEEP, f"results_dir={self.results}"]
        self.command = [sys.executable, "-m", "longsumbench.cli", "run", "-m", *words]
        self.environment = {**os.environ, "LONGSUMBENCH_CACHE": str(self.cache), "OMP_NUM_THREADS": "1"}

    def start(self) -> subprocess.Popen[str]:
        """Start it in the background."""
        null = subprocess.DEVNULL
        return subprocess.Popen(self.command, stdout=null, stderr=subprocess.PIPE, text=True, env=self.environment)

    def finish(self) -> str:
        """Run it to the end; return what it said."""
        process = self.start()
        _, said = process.communicate(timeout=240)
        assert process.returncode == 0, said
        return said

    def traces(self) -> int:
        """Count the files and the predictions it has written so far: both grow while it works."""
        walked = (entry for root in (self.results, self.cache) for entry in os.walk(root))  # bears that folders vanish
        lines = (path.read_bytes().count(b"\n") for path in self.results.glob("runs/*/*/*/predictions*.jsonl"))
        return sum(len(folders) + len(files) for _, folders, files in walked) + sum(lines)

    def table(self) -> list[dict[str, str]]:
        """Return the leaderboard without what was measured."""
        with (self.results / "leaderboard" / "jsonl.csv").open(encoding="utf-8", newline="") as file:
            return [{key: cell for key, cell in row.items() if key not in MEASURED} for row in csv.DictReader(file)]

    def predictions(self) -> dict[str, bytes]:
        """Return run and file → predictions, those of all checkpoints that summarize."""
        found = self.results.rglob("predictions*.jsonl")
        return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in found}


def left_over(sweep: Sweep) -> list[Path]:
    """Return pieces that were begun and not finished."""
    return [path for root in (sweep.results, sweep.cache) for path in root.rglob("*") if ".partial" in path.name]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset of all sweeps here."""
    return write_jsonl(tmp_path_factory.mktemp("texts"), train=24, validation=6, test=12)


@pytest.fixture(scope="module")
def undisturbed(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """A sweep that nobody disturbed."""
    sweep = Sweep(texts, tmp_path_factory.mktemp("undisturbed"))
    sweep.finish()
    return sweep


def test_a_sweep_killed_five_times_ends_with_the_same_table(texts: Path, undisturbed: Sweep, tmp_path: Path) -> None:
    """SIGKILL at five seeded points of its life changes no number and no prediction, and leaves no broken piece."""
    chance, sweep, whole = random.Random(20), Sweep(texts, tmp_path), undisturbed.traces()
    for share in sorted(chance.uniform(0.05, 0.8) for _ in range(KILLS)):
        process, before = sweep.start(), sweep.traces()
        while sweep.traces() < max(share * whole, before + 1):  # beyond what was there: not while it only imports
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.2))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        assert process.returncode == -signal.SIGKILL
        assert not (sweep.results / "leaderboard").exists()
    sweep.finish()
    assert sweep.table() == undisturbed.table()
    assert sweep.predictions() == undisturbed.predictions()
    assert not left_over(sweep)


def test_a_finished_sweep_is_not_done_again(undisturbed: Sweep) -> None:
    """Run again, it says of every run that it was finished, and touches none of their files."""
    sweep = undisturbed
    records = {path: path.stat().st_mtime_ns for path in sweep.results.glob("runs/*/*/*/*.*")}
    said = sweep.finish()
    assert "7 runs: 0 done, 7 found finished, 0 failed" in said
    assert {path: path.stat().st_mtime_ns for path in sweep.results.glob("runs/*/*/*/*.*")} == records


def test_a_torn_checkpoint_and_a_torn_prediction_are_survived(texts: Path, undisturbed: Sweep, tmp_path: Path) -> None:
    """Killed in the middle of a write, a run goes on from the last whole checkpoint and the last whole line."""
    sweep = Sweep(texts, tmp_path)
    process = sweep.start()
    while not (found := sorted(sweep.cache.glob("checkpoint/*.partial/trainer/checkpoint-3/trainer_state.json"))):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=30)
    torn = found[0].parents[1] / "checkpoint-9"  # newer than the whole one, its state cut off
    torn.mkdir()
    (torn / "trainer_state.json").write_bytes(found[0].read_bytes()[:100])
    for path in undisturbed.results.glob("runs/jsonl/lead/*/predictions.jsonl"):
        folder = sweep.results / path.parent.relative_to(undisturbed.results)
        (folder / "record.json").unlink()
        (folder / "predictions.jsonl").write_bytes(path.read_bytes()[:-40])
    sweep.finish()
    assert sweep.table() == undisturbed.table()
    assert sweep.predictions() == undisturbed.predictions()
