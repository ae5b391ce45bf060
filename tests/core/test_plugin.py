"""A system in a package of its own: found by its entry point, used like any other, next to a broken one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import Command
from support.packages import install_package
from support.paths import TESTS
from support.toys import write_jsonl
from support.waiting import PATIENCE

from longsumbench.cli.main import main
from longsumbench.runs.results import Results

SYSTEM = '''\
"""Last: what the end of a text is worth."""

from dataclasses import dataclass

from longsumbench.core import Summary, System, SystemConfig, setting


@dataclass
class LastConfig(SystemConfig):
    """The end of the source."""

    name: str = setting("last", "name of the system")
    words: int = setting(100, "how many are kept", "words")


class Last(System):
    """The source's last words."""

    Config = LastConfig

    def summarize(self, examples, decoding):
        """Yield the end of every example."""
        for example in examples:
            words = " ".join(example.sentences()).split()
            yield Summary(example.id, " ".join(words[-self.config.words :]))
'''


@pytest.fixture
def installed(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the package, which is on Python's path; the working folder is empty."""
    site = here / "site"
    install_package(
        site, "mine", {"last.py": SYSTEM}, {"longsumbench.systems": {"last": "last:Last"}}
    )
    monkeypatch.syspath_prepend(site)
    return site


@pytest.fixture
def broken(installed: Path) -> None:
    """Next to it, a package that cannot be imported."""
    targets = {"broken": "last.nowhere:Nothing"}
    install_package(installed, "other", {}, {"longsumbench.systems": targets})


@pytest.mark.usefixtures("broken")
def test_it_is_listed(run_command: Command) -> None:
    """`list models` names it, with the first line of its docstring; one that cannot be imported is named with why."""
    lines = run_command(0, "list", "models").out.splitlines()
    meanings = {line.split()[0]: line.partition(" ")[2].strip() for line in lines}
    assert meanings["last"] == "The source's last words."
    assert "cannot be imported" in meanings["broken"]
    assert {"lead", "trunc"} <= set(meanings)


@pytest.mark.usefixtures("installed")
def test_it_runs_and_is_swept_over(tmp_path: Path, run_command: Command) -> None:
    """It is swept over, scored and tabled next to others; its settings are its own, also those of a YAML file."""
    (tmp_path / "conf" / "model").mkdir(parents=True)
    (tmp_path / "conf" / "model" / "last.yaml").write_text("# Six.\nname: last\nwords: 6\n")
    words = ["dataset=jsonl", f"dataset.path={write_jsonl(tmp_path / 'toy')}"]
    words += ["baselines=false", "score.resamples=100"]
    assert main(["run", "--config-dir", "conf", "model=last", *words]) == 0
    output = run_command(0, "run", "-m", "model=lead,last", "model.words=3,6", *words).out
    assert {"last,", "lead"} <= set(output.split())
    runs = {
        (run.key.model, run.config.model.get("words"))
        for run in Results(Path("results")).records("jsonl")
    }
    assert runs == {("last", 3), ("last", 6), ("lead", None)}


def test_it_conforms(installed: Path) -> None:
    """In a process that finds it, it passes the checks of every system."""
    tests = str(TESTS / "models" / "test_conformance.py")
    command = [sys.executable, "-m", "pytest", "-q", tests, "-k", "last", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment,
        cwd=TESTS.parent,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "..." in done.stdout
