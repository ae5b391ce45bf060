"""A system in a package of its own: installed into another folder, found by its entry point, used like any other."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.paths import TESTS
from support.toys import told_in, write_jsonl
from support.waiting import PATIENCE

PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "longsumbench-last"
version = "1.0"

[project.entry-points."longsumbench.systems"]
last = "last:Last"
broken = "last.nowhere:Nothing"

[tool.setuptools]
py-modules = ["last"]
"""
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


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the package."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    (source / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (source / "last.py").write_text(SYSTEM, encoding="utf-8")
    if (
        find_spec("setuptools") is None
    ):  # not imported: it would put its own packages on this process's path
        pytest.skip("setuptools")
    offline = [
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--disable-pip-version-check",
    ]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        *offline,
        "--target",
        str(target),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return target


def run(installed: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the package on its path."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE,
        check=False,
    )


def suite(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return run(installed, "-m", "longsumbench", *words)


def test_it_is_listed(installed: Path) -> None:
    """`list models` names it, with the first line of its docstring; one that cannot be imported is named with why."""
    lines = suite(installed, "list", "models").stdout.splitlines()
    message = {line.split()[0]: line.partition(" ")[2].strip() for line in lines}
    assert message["last"] == "The source's last words."
    assert "cannot be imported" in message["broken"]
    assert {"lead", "trunc"} <= set(message)


def test_it_runs_and_is_tabled_next_to_the_baselines(installed: Path, tmp_path: Path) -> None:
    """It is run, scored and tabled next to the baselines, with the settings of a YAML file."""
    (tmp_path / "conf" / "model").mkdir(parents=True)
    (tmp_path / "conf" / "model" / "last.yaml").write_text(
        "# Six.\nname: last\nwords: 6\n", encoding="utf-8"
    )
    flags = ["--config-dir", str(tmp_path / "conf")]
    toy, results = write_jsonl(tmp_path / "toy"), tmp_path / "results"
    words = [f"dataset.path={toy}", f"results_dir={results}", "score.resamples=100"]
    done = suite(installed, "run", *flags, "model=last", "dataset=jsonl", *words)
    assert done.returncode == 0, done.stderr
    (record,) = results.glob("runs/jsonl/last/*/record.json")
    assert json.loads(record.read_text(encoding="utf-8"))["config"]["model"]["words"] == 6
    assert {"last", "lead", "random", "oracle"} <= set(done.stdout.split())


def test_it_is_swept_over(installed: Path, tmp_path: Path) -> None:
    """In a sweep, its settings are its own, and the variant says which point is which."""
    toy, results = write_jsonl(tmp_path / "toy"), tmp_path / "results"
    words = [
        "model=lead,last",
        "model.words=3,6",
        "dataset=jsonl",
        f"dataset.path={toy}",
        f"results_dir={results}",
    ]
    done = suite(installed, "run", "-m", *words, "baselines=false", "score.resamples=100")
    assert done.returncode == 0, done.stderr
    records = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in results.glob("runs/*/*/*/record.json")
    ]
    assert sorted((one["key"]["model"], one["variant"]) for one in records) == [
        ("last", "words=3"),
        ("last", "words=6"),
        ("lead", ""),
    ]


def test_a_broken_one_is_told(installed: Path) -> None:
    """A plug-in that cannot be imported is wrong usage, in one line; the others are not touched by it."""
    done = suite(installed, "run", "model=broken")
    assert done.returncode == 2
    assert len(told_in(done.stderr)) == 1
    assert "model 'broken' (last.nowhere:Nothing) cannot be imported" in done.stderr


def test_it_conforms(installed: Path) -> None:
    """It passes the checks of every system."""
    done = run(
        installed,
        "-m",
        "pytest",
        "-q",
        str(TESTS / "models" / "test_conformance.py"),
        "-k",
        "last",
        "-p",
        "no:cacheprovider",
    )
    assert done.returncode == 0, done.stdout
    assert " 2" in done.stdout or "...." in done.stdout
