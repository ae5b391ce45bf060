"""Processes of a launcher whose conductor was killed end, whatever they wait for."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from longsumbench.sweeps.launchers import Engine

CONDUCTOR = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', sys.argv[1]]); time.sleep(600)"
WORKER = """
import os
from longsumbench.sweeps import worker as jobs
jobs._SECONDS_BETWEEN_LOOKS = 0.1
jobs.end_with(conductor := os.getppid())
rest, whole = os.pipe()
print("ready", flush=True)
{}
os.read(rest, 1)  # of a message: whoever sent its beginning is dead
"""
WORKING = """
import time
with jobs._at_work:
    while os.getppid() == conductor:
        time.sleep(0.01)
    time.sleep(0.5)  # several looks of the watcher
    print("done", flush=True)
"""


def said_after_its_end(worker: str) -> str:
    """Kill a conductor as soon as its worker is ready; return what the worker said until it ended, too."""
    command = [sys.executable, "-c", CONDUCTOR, worker]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as conductor:
        assert conductor.stdout is not None
        assert conductor.stdout.readline() == "ready\n"
        conductor.kill()
        return conductor.stdout.read()


def test_a_process_that_waits_in_vain_ends() -> None:
    """One that was sent half a job does not wait for the rest for ever."""
    assert said_after_its_end(WORKER.format("")) == ""


def test_a_process_at_work_comes_to_its_end() -> None:
    """What it works on is finished first."""
    assert said_after_its_end(WORKER.format(WORKING)) == "done\n"


class Threads:
    """Writes the names of the threads there are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, composed: Any) -> None:
        """Do so, in a launcher's process."""
        names = " ".join(thread.name for thread in threading.enumerate())
        (self.folder / f"{os.getpid()}").write_text(names, encoding="utf-8")


def test_each_process_of_joblib_watches(tmp_path: Path) -> None:
    """From its start, before it has ever worked on a point."""
    Engine(("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"), launcher="joblib").launch(
        Threads(tmp_path), 4, tmp_path / "launcher"
    )
    found = [path.read_text(encoding="utf-8").split() for path in tmp_path.iterdir() if path.is_file()]
    assert found
    assert all("end_with" in names for names in found)
