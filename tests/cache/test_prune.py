"""`longsumbench cache`: it lists stages, deletes what was not used for long, and never what is being built."""

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.commands import Command
from support.processes import next_line, start_python
from support.waiting import PATIENCE

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.cache.prune import artifacts_in, delete_outdated

Printed = Callable[..., list[str]]
BUILDS = """
import sys
from pathlib import Path
from longsumbench.cache.artifacts import ArtifactCache
def build(folder):
    (folder / "half").write_text("x" * 1000)
    print("building", flush=True)
    sys.stdin.readline()
ArtifactCache(Path(sys.argv[1])).get(sys.argv[2], {"x": 1}, build)
"""


@pytest.fixture
def root(empty_cache: Path) -> Path:
    """An empty cache folder."""
    return empty_cache


def make(root: Path, kind: str, size: int = 10, days_ago: float = 0, **inputs: object) -> Path:
    """Build a stage and set the time of its last use."""

    def write(partial: Path) -> None:
        (partial / "text").write_text("x" * size)

    folder = ArtifactCache(root).get(kind, inputs, write)
    set_time(folder, days_ago)
    return folder


def set_time(folder: Path, days_ago: float) -> None:
    then = time.time() - days_ago * 86_400
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (then, then))


def kinds(root: Path) -> list[str]:
    return sorted(stage.kind for stage in artifacts_in(root) if stage.state == "finished")


@pytest.fixture
def printed(run_command: Command) -> Printed:
    """Run `longsumbench cache`; return the lines that it prints."""
    return lambda *words: run_command(0, "cache", *words).out.splitlines()


def test_kinds_and_stages_are_listed_with_their_sizes(root: Path, printed: Printed) -> None:
    """Each kind has a row with number, size and last use; `list` describes each stage by its inputs."""
    assert printed() == printed("list") == [f"{root}: no stages"]
    make(root, "units", 3_000_000, system="seal", split="ab")
    make(root, "units", 2_000_000, config={"name": "trunc"})
    make(root, "corpus", corpus=["aclsum", 1, 3], days_ago=3)
    assert [re.sub(" {2,}", " | ", line) for line in printed()[2:]] == [
        "stage | number | size | last used",
        "corpus | 1 | < 0.1 MB | 3 d ago",
        "units | 2 | 5.0 MB | 0 s ago",
        "all | 3 | 5.0 MB | 0 s ago",
    ]
    rows = printed("list")[3:]
    assert re.fullmatch(r"corpus +[0-9a-f]{12} +< 0.1 MB +3 d ago +finished +aclsum", rows[-1])
    assert sorted(row.split()[-1] for row in rows) == ["aclsum", "seal", "trunc"]


def test_what_was_not_used_for_long_is_deleted(root: Path, printed: Printed) -> None:
    """Stages unused for 30 days or the given time are deleted; a request is a use. Other files stay."""
    for kind, days in (("units", 29.9), ("labels", 30.1), ("tokenizer", 400.0)):
        make(root, kind, days_ago=days)
    ArtifactCache(root).get("tokenizer", {}, lambda folder: pytest.fail("built again"))
    (root / "labels" / "notes.txt").write_text("mine")
    assert printed("prune", "--dry-run") == ["would free < 0.1 MB (1 labels)"]
    assert kinds(root) == ["labels", "tokenizer", "units"]
    assert printed("prune") == ["freed < 0.1 MB (1 labels)"]
    assert [path.name for path in (root / "labels").iterdir()] == ["notes.txt"]
    for span, freed in (("36.5h", "< 0.1 MB (1 units)"), ("5w", "0.0 MB")):
        words = ("prune", "--dry-run", "--unused-for", span)
        assert printed(*words) == [f"would free {freed}"]
    printed("prune", "--unused-for", "90s")
    assert kinds(root) == ["tokenizer"]


def test_what_is_being_built_stays(root: Path, printed: Printed) -> None:
    """It is kept. What a killed builder left stays for a day: it can be continued."""
    process = start_python(BUILDS, root, "checkpoint")
    next_line(process)
    assert f"being built by process {process.pid} on " in printed("list")[-1]
    assert printed("prune", "--unused-for", "0s") == ["freed 0.0 MB"]
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert "left over" in printed("list")[-1]
    assert printed("prune") == ["freed 0.0 MB"]
    (stage,) = artifacts_in(root)
    set_time(stage.folder, days_ago=1.1)
    assert printed("prune") == ["freed < 0.1 MB (1 left over)"]
    assert not list((root / "checkpoint").iterdir())


def test_a_stage_that_is_used_meanwhile_stays(root: Path) -> None:
    """A stage that a process asks for after it was listed as unused is kept."""
    make(root, "units", days_ago=40)
    listed = artifacts_in(root)
    folder = ArtifactCache(root).get("units", {}, lambda partial: pytest.fail("built again"))
    assert delete_outdated(listed, 0) == "freed 0.0 MB"
    assert (folder / "text").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("cache --dry-run", "--unused-for and --dry-run need `longsumbench cache prune`"),
        ("cache prune --unused-for 30", "--unused-for 30: write a number followed by s, m, h, w"),
        ("cache prune --all", "longsumbench cache --all was removed: write --unused-for 0s"),
        ("dataset add mine texts", "longsumbench dataset was removed: write dataset.name=NAME"),
    ],
)
def test_a_wrong_word_is_one_line_and_deletes_nothing(
    words: str, message: str, root: Path, run_command: Command
) -> None:
    """One line with exit code 2 says what to do; so does a command that was removed."""
    make(root, "units")
    error = run_command(2, *words.split()).err
    assert error.startswith(f"longsumbench: {message}")
    assert error.count("\n") == 1
    assert kinds(root) == ["units"]
