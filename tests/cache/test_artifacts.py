"""Finished pieces of work: built once, whole, by one process."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.logs import listening
from support.permissions import heeded
from support.toys import next_line, start_python
from support.waiting import PATIENCE, wait_until

from longsumbench.cache import locks
from longsumbench.cache.artifacts import (
    CACHE_VARIABLE,
    LAYOUT_FILE,
    ArtifactCache,
    cache_folder,
    clear_partial,
    side_path,
)
from longsumbench.cache.locks import exclusive_lock, is_lock_shared, release_shared_lock
from longsumbench.files import digest

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
        (root / f"waiting-{name}").touch()

logging.getLogger("longsumbench").addHandler(Waiting())
store = ArtifactCache(root / "cache")
print((store.get("corpus", {"x": 1}, build) / "whole").read_text())
"""
USER = """
import sys
from pathlib import Path
from longsumbench.cache.artifacts import ArtifactCache

folder = ArtifactCache(Path(sys.argv[1])).get("checkpoint", {}, lambda folder: (folder / "text").write_text("old"))
print((folder / "text").read_text(), flush=True)
sys.stdin.readline()
"""


def builder(root: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", BUILDER, str(root), name], stdout=subprocess.PIPE, text=True)


def writes(text: str) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        (folder / "text").write_text(text, encoding="utf-8")

    return build


def never(folder: Path) -> None:
    raise AssertionError("built again")


def test_a_finished_stage_is_found_again(tmp_path: Path) -> None:
    """The same inputs in any order give the same folder, and it is not built twice, nor by another store."""
    folder = ArtifactCache(tmp_path).get("corpus", {"a": 1, "b": [2]}, writes("x"))
    assert ArtifactCache(tmp_path).get("corpus", {"b": [2], "a": 1}, never) == folder
    assert (folder / "text").read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize(
    ("name", "inputs"), [("tokenizer", {"a": 1}), ("corpus", {"a": 2}), ("corpus", {"a": 1, "b": 1})]
)
def test_each_input_decides(name: str, inputs: dict[str, int], tmp_path: Path) -> None:
    """Another name, value or input is another stage."""
    store = ArtifactCache(tmp_path)
    assert store.get("corpus", {"a": 1}, writes("x")) != store.get(name, inputs, writes("y"))


def test_a_failed_build_is_never_taken_for_a_finished_one(tmp_path: Path) -> None:
    """What a failed build left is seen by the next builder only, which continues it."""

    def fails(folder: Path) -> None:
        (folder / "half").touch()
        raise RuntimeError("stopped")

    def continues(folder: Path) -> None:
        assert (folder / "half").exists()
        (folder / "whole").touch()

    store = ArtifactCache(tmp_path)
    with pytest.raises(RuntimeError, match="stopped"):
        store.get("corpus", {}, fails)
    assert not store.used
    folder = store.get("corpus", {}, continues)
    assert {item.name for item in folder.iterdir()} == {"half", "whole", "inputs.json", "checksums"}
    assert not list(tmp_path.rglob("*.partial"))


def test_clear_empties_a_partial_folder(tmp_path: Path) -> None:
    """A builder that cannot continue starts from an empty folder; what a link points to stays."""
    (tmp_path / "partial" / "deep").mkdir(parents=True)
    (tmp_path / "partial" / "deep" / "file").touch()
    (tmp_path / "kept").mkdir()
    (tmp_path / "partial" / "link").symlink_to(tmp_path / "kept")
    clear_partial(tmp_path / "partial")
    assert list((tmp_path / "partial").iterdir()) == []
    assert (tmp_path / "kept").is_dir()


def test_two_processes_build_once(tmp_path: Path) -> None:
    """The second process says that it waits, and gets what the first built."""
    first = builder(tmp_path, "first")
    wait_until((tmp_path / "built-by-first").exists)
    second = builder(tmp_path, "second")
    wait_until((tmp_path / "waiting-second").exists)
    (tmp_path / "go").touch()
    outputs = [process.communicate(timeout=PATIENCE)[0].strip() for process in (first, second)]
    assert outputs == ["from first", "from first"]
    assert not (tmp_path / "built-by-second").exists()
    assert not list(tmp_path.rglob("*.partial"))


def test_a_killed_builder_holds_no_lock(tmp_path: Path) -> None:
    """After SIGKILL the next builder starts at once, with what the killed one left, and says whose work that was."""
    killed = builder(tmp_path, "killed")
    wait_until((tmp_path / "built-by-killed").exists)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=PATIENCE)
    found: list[str] = []
    store = ArtifactCache(tmp_path / "cache")
    with listening(found.append):
        folder = store.get("corpus", {"x": 1}, lambda partial: found.append((partial / "half").read_text()))
    assert found[0].startswith(f"taking over from process {killed.pid} on ")
    assert found[1:] == ["from killed"]
    assert not (folder / "whole").exists()


def test_a_rebuilt_stage_is_built_once_more(tmp_path: Path) -> None:
    """A stage named for rebuilding is thrown away and built again, once a store; others stay."""
    ArtifactCache(tmp_path).get("corpus", {}, writes("old"))
    ArtifactCache(tmp_path).get("tokenizer", {}, writes("old"))
    store = ArtifactCache(tmp_path, rebuild=frozenset({"corpus"}))
    assert (store.get("corpus", {}, writes("new")) / "text").read_text(encoding="utf-8") == "new"
    store.get("corpus", {}, never)
    store.get("tokenizer", {}, never)


def test_what_was_built_since_a_moment_is_not_built_anew(tmp_path: Path) -> None:
    """Of two stores that build a stage anew because it is old, one does; what a killed one began is continued."""
    now = time.time()
    old = ArtifactCache(tmp_path).get("checkpoint", {}, writes("old"))
    os.utime(old / "inputs.json", (now - 60, now - 60))
    first, second = (ArtifactCache(tmp_path, frozenset({"checkpoint"}), before=now - 30) for _ in range(2))

    def is_killed(partial: Path) -> None:
        (partial / "half").write_text("new", encoding="utf-8")
        raise KeyboardInterrupt

    def continues(partial: Path) -> None:
        (partial / "half").rename(partial / "text")

    with pytest.raises(KeyboardInterrupt):
        first.get("checkpoint", {}, is_killed)
    assert (first.get("checkpoint", {}, continues) / "text").read_text(encoding="utf-8") == "new"
    second.get("checkpoint", {}, never)


def test_who_waits_for_a_stage_does_not_hold_what_is_waited_for(tmp_path: Path) -> None:
    """Who builds a stage anew waits for all that use it, so who waits for the builder must not be one of them."""
    told: list[bool] = []
    folder = ArtifactCache(tmp_path).get("checkpoint", {}, writes("old"))
    release_shared_lock(side_path(folder, "used"))
    building = exclusive_lock(side_path(folder, "lock"))
    building.__enter__()

    def finished(line: str) -> None:
        told.append(is_lock_shared(side_path(folder, "used")))
        building.__exit__(None, None, None)

    with listening(finished):
        ArtifactCache(tmp_path, frozenset({"checkpoint"})).get("checkpoint", {}, writes("new"))
    assert told == [False]


def test_a_stage_in_use_is_not_built_anew_under_its_user(tmp_path: Path) -> None:
    """Building a stage anew waits, and says so, until the other process that uses the old one has ended."""
    user = start_python(USER, tmp_path)
    assert next_line(user) == "old"
    told: list[str] = []

    def let_go(line: str) -> None:
        told.append(line)
        assert (folder / "text").read_text(encoding="utf-8") == "old"
        user.communicate("\n", timeout=PATIENCE)

    folder = ArtifactCache(tmp_path).get("checkpoint", {}, never)
    store = ArtifactCache(tmp_path, rebuild=frozenset({"checkpoint"}))
    with listening(let_go):
        assert (store.get("checkpoint", {}, writes("new")) / "text").read_text(encoding="utf-8") == "new"
    assert told == ["waiting for other processes that use the checkpoint"]


def test_a_stage_is_in_use_until_it_is_released(tmp_path: Path) -> None:
    """What a store returned is held until `release`, whatever else this process does; what failed to be built, too."""

    def fails(folder: Path) -> None:
        raise RuntimeError("stopped")

    one, other = ArtifactCache(tmp_path), ArtifactCache(tmp_path)
    used = side_path(one.get("units", {}, writes("x")), "used")
    assert is_lock_shared(used)
    one.release()
    assert not is_lock_shared(used)
    with pytest.raises(RuntimeError):
        other.get("labels", {}, fails)
    (held,) = (tmp_path / "labels").glob("*.used")
    assert is_lock_shared(held)
    other.release()
    assert not is_lock_shared(held)


def test_stages_in_use_are_few_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many stages a process uses, it holds the last ones only, for each is an open file."""
    monkeypatch.setattr(locks, "_MOST_SHARED", 3)
    store = ArtifactCache(tmp_path)
    used = [side_path(store.get("units", {"x": x}, writes("x")), "used") for x in range(5)]
    assert [is_lock_shared(path) for path in used] == [False, False, True, True, True]
    store.release()
    assert not any(is_lock_shared(path) for path in used)


def test_where_locks_do_not_reach_the_first_one_counts(tmp_path: Path) -> None:
    """If another process finishes the same stage although this one has the lock, the other's stays, whole."""

    def overtaken(folder: Path) -> None:
        (folder / "text").write_text("mine", encoding="utf-8")
        whole = folder.with_suffix("")
        whole.mkdir()
        (whole / "text").write_text("the other's", encoding="utf-8")

    folder = ArtifactCache(tmp_path).get("corpus", {}, overtaken)
    assert (folder / "text").read_text(encoding="utf-8") == "the other's"
    assert [path.name for path in folder.parent.iterdir() if path.is_dir()] == [folder.name]


def test_a_cache_that_may_only_be_read(tmp_path: Path) -> None:
    """A finished stage is found in a cache where nothing may be written, with or without a trace of earlier uses."""
    store = ArtifactCache(tmp_path)
    folder = store.get("corpus", {}, writes("x"))
    store.release()
    for spoil in (lambda: None, side_path(folder, "used").unlink, (tmp_path / LAYOUT_FILE).unlink):
        for path in (tmp_path, folder.parent):
            path.chmod(0o755)
        spoil()
        for path in (tmp_path, folder.parent):
            path.chmod(0o555)
        with heeded():
            assert ArtifactCache(tmp_path).get("corpus", {}, never) == folder
    for path in (tmp_path, folder.parent):
        path.chmod(0o755)


def test_a_store_knows_what_was_used(tmp_path: Path) -> None:
    """Every stage asked for is listed by its name; a second of the same name carries its key."""
    store = ArtifactCache(tmp_path)
    one, two = store.get("units", {"split": "train"}, writes("x")), store.get("units", {"split": "test"}, writes("y"))
    store.get("units", {"split": "train"}, never)
    assert store.used == {"units": one, f"units-{two.name[:8]}": two}


def test_digest_does_not_depend_on_key_order() -> None:
    """Equal values have one hash, whatever the order of their keys; a list's order counts."""
    assert digest({"a": 1, "b": {"c": 2, "d": 3}}) == digest({"b": {"d": 3, "c": 2}, "a": 1})
    assert digest([1, 2]) != digest([2, 1])


def test_the_cache_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment variable wins over the user's cache folder."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv(CACHE_VARIABLE)
    assert cache_folder().name == "longsumbench"
