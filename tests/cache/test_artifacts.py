"""Finished stages: built once, complete, by one process; what users of a stage see when it is replaced or deleted."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import start_python
from support.waiting import PATIENCE, wait_until

from longsumbench.cache.artifacts import ArtifactCache, clear_partial, reading_artifact
from longsumbench.errors import DataError

BUILDER = """
import logging, sys, time
from pathlib import Path
from longsumbench.cache.artifacts import ArtifactCache

root, name = Path(sys.argv[1]), sys.argv[2]

def build(folder):
    (folder / "half").write_text("from " + name)
    (root / f"built-by-{name}").touch()
    while not (root / "go").exists():
        time.sleep(0.02)
    (folder / "whole").write_text("from " + name)

class Waiting(logging.Handler):
    def emit(self, record):
        (root / f"waiting-{name}").write_text(record.getMessage())

logging.getLogger("longsumbench").addHandler(Waiting())
logging.getLogger("longsumbench").setLevel("INFO")
store = ArtifactCache(root / "cache")
print((store.get("corpus", {"x": 1}, build) / "whole").read_text())
"""


def writes(text: str) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        (folder / "text").write_text(text)

    return build


def never(folder: Path) -> None:
    raise AssertionError("built again")


def test_a_finished_stage_is_found_again(tmp_path: Path) -> None:
    """The same inputs in any order give the same folder, also to another store; other ones give another folder."""
    folder = ArtifactCache(tmp_path).get("corpus", {"a": 1, "b": [2]}, writes("x"))
    assert ArtifactCache(tmp_path).get("corpus", {"b": [2], "a": 1}, never) == folder
    assert (folder / "text").read_text() == "x"
    for name, inputs in (
        ("tokenizer", {"a": 1, "b": [2]}),
        ("corpus", {"a": 1, "b": [3]}),
        ("corpus", {"a": 1}),
    ):
        assert ArtifactCache(tmp_path).get(name, inputs, writes("y")) != folder


def test_a_failed_build_is_continued_or_cleared(tmp_path: Path) -> None:
    """Only the next builder sees what a failed build left; a link in it is removed, not followed."""

    def fails(folder: Path) -> None:
        (folder / "deep").mkdir()
        (folder / "link").symlink_to(tmp_path)
        raise RuntimeError("stopped")

    def clears(folder: Path) -> None:
        assert (folder / "deep").exists()
        clear_partial(folder)
        (folder / "whole").touch()

    store = ArtifactCache(tmp_path)
    with pytest.raises(RuntimeError, match="stopped"):
        store.get("corpus", {}, fails)
    assert not store.folders
    folder = store.get("corpus", {}, clears)
    assert {item.name for item in folder.iterdir()} == {"whole", "inputs.json", "checksums.json"}
    assert not list(tmp_path.rglob("*.partial"))


def test_a_store_knows_what_was_used(tmp_path: Path) -> None:
    """Every stage asked for is listed by its name; a second of the same name carries its key."""
    store = ArtifactCache(tmp_path)
    one, two = (
        store.get("units", {"split": "train"}, writes("x")),
        store.get("units", {"split": "test"}, writes("y")),
    )
    store.get("units", {"split": "train"}, never)
    assert store.folders == {"units": one, f"units-{two.name[:8]}": two}


def test_processes_build_once_and_continue_a_killed_build(tmp_path: Path) -> None:
    """Processes wait for a stopped one, and say for which; after SIGKILL one continues its build. All get one stage."""
    killed = start_python(BUILDER, tmp_path, "killed")
    wait_until((tmp_path / "built-by-killed").exists, killed)
    killed.send_signal(signal.SIGSTOP)
    waiting = [start_python(BUILDER, tmp_path, name) for name in ("first", "second")]
    wait_until(lambda: len(list(tmp_path.glob("waiting-*"))) == 2)
    message = (tmp_path / "waiting-first").read_text()
    assert message.startswith(f"waiting for another process: corpus (process {killed.pid} on ")
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=PATIENCE)
    wait_until(lambda: len(list(tmp_path.glob("built-by-*"))) == 2)
    (tmp_path / "go").touch()
    outputs = {process.communicate(timeout=PATIENCE)[0].strip() for process in waiting}
    assert outputs in ({"from first"}, {"from second"})
    assert len(list(tmp_path.glob("built-by-*"))) == 2
    assert not list(tmp_path.rglob("*.partial"))


def test_a_stage_is_built_again_on_request(tmp_path: Path) -> None:
    """It is replaced once a store, if it is old; what a killed process began is continued. Open files stay readable."""
    old, now = ArtifactCache(tmp_path).get("checkpoint", {}, writes("old")), time.time()
    ArtifactCache(tmp_path).get("tokenizer", {}, writes("old"))
    os.utime(old / "inputs.json", (now - 60, now - 60))
    first, second = (
        ArtifactCache(tmp_path, frozenset({"checkpoint"}), cutoff=now - 30) for _ in range(2)
    )

    def is_killed(partial: Path) -> None:
        (partial / "half").write_text("new")
        raise KeyboardInterrupt

    def continues(partial: Path) -> None:
        assert (old / "text").read_text() == "old"  # still there for others
        (partial / "half").rename(partial / "text")

    with (old / "text").open() as opened:
        with pytest.raises(KeyboardInterrupt):
            first.get("checkpoint", {}, is_killed)
        assert (first.get("checkpoint", {}, continues) / "text").read_text() == "new"
        assert opened.read() == "old"
    second.get("checkpoint", {}, never)
    second.get("tokenizer", {}, never)
    again = ArtifactCache(tmp_path, frozenset({"checkpoint"}))
    assert (again.get("checkpoint", {}, writes("newest")) / "text").read_text() == "newest"
    again.get("checkpoint", {}, never)
    assert [path.name for path in old.parent.iterdir() if path.is_dir()] == [old.name]


def test_a_stage_that_cannot_be_read(tmp_path: Path) -> None:
    """One line names the stage and what to do; a problem of the machine is no damage."""
    folder = ArtifactCache(tmp_path).get("corpus", {}, writes("x"))
    for error in (
        OSError(28, "No space left on device"),
        MemoryError(),
        PermissionError(13, "Permission denied"),
    ):
        with pytest.raises(type(error)), reading_artifact(folder):
            raise error
    with pytest.raises(DataError) as caught, reading_artifact(folder):
        raise KeyError("splits")
    assert str(caught.value).startswith(
        f"{folder}: this finished corpus cannot be read (KeyError: 'splits'); delete this"
    )
    shutil.rmtree(folder)
    with (
        pytest.raises(DataError, match="this corpus was deleted from the cache"),
        reading_artifact(folder),
    ):
        (folder / "text").read_text()
