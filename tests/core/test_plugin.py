"""A system in a package of its own: found by its entry point and used like any other."""

import os
from pathlib import Path

import pytest
from support.commands import Command
from support.packages import install_package
from support.paths import TESTS
from support.processes import run_python
from support.toys import write_jsonl

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
    words = ["-q", tests, "-k", "last", "-p", "no:cacheprovider", "--assert=plain"]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    code = f"import sys, pytest; sys.exit(pytest.main({words}))"
    assert "..." in run_python(code, env=environment, cwd=TESTS.parent)
