"""The cache folder: what is in it is told, what is in use stays, and what cannot be read is named."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.toys import next_line, start_python, write_jsonl
from support.waiting import PATIENCE

from longsumbench.cache import prune as cache
from longsumbench.cache.artifacts import CACHE_VARIABLE, LAYOUT, LAYOUT_FILE, ArtifactCache, reading_artifact, side_path
from longsumbench.cache.prune import Pruning, artifacts_in, describe_artifact, parse_seconds, prune
from longsumbench.cli.main import main
from longsumbench.errors import DataError, EnvironmentProblem, UsageError
from longsumbench.formatting import format_bytes

USES = """
import sys
from pathlib import Path
from longsumbench.cache.artifacts import ArtifactCache
store = ArtifactCache(Path(sys.argv[1]))
store.get(sys.argv[2], {"x": 1}, lambda folder: (folder / "text").write_text("x"))
print("using", flush=True)
sys.stdin.readline()
"""
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
ASKS_ALL_THE_TIME = """
import sys
from pathlib import Path
from longsumbench.cache.artifacts import ArtifactCache
root = Path(sys.argv[1])
for number in range(60):
    store = ArtifactCache(root)
    for x in range(3):
        folder = store.get("units", {"x": x}, lambda folder: (folder / "text").write_text(str(x)))
        assert (folder / "text").read_text() == str(x), folder
    store.release()
print("whole")
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def make(root: Path, kind: str, size: int = 10, **inputs: object) -> Path:
    """Make a stage that nobody uses any more."""
    store = ArtifactCache(root)

    def build(folder: Path) -> None:
        (folder / "text").write_text("x" * size)

    folder = store.get(kind, inputs, build)
    store.release()
    return folder


def last_used(folder: Path, days_ago: float) -> None:
    """Set the time of a stage's last use, and of all that is in it."""
    then = time.time() - days_ago * 86_400
    side_path(folder, "used").touch()
    for path in (*folder.rglob("*"), folder, *side_path(folder, "partial").rglob("*"), side_path(folder, "partial")):
        if path.exists():
            os.utime(path, (then, then))
    os.utime(side_path(folder, "used"), (then, then))


def pruned(root: Path, **options: object) -> str:
    pruning = Pruning(bool(options.pop("dry_run", False)))
    prune(root, pruning, **options)  # type: ignore[arg-type]
    return pruning.describe()


def kinds(root: Path) -> list[str]:
    return [stage.kind for stage in artifacts_in(root) if stage.is_finished]


def killed(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)


def test_the_cache_is_told(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind stands in a row with its number, size and last use, then all together; a stage also says of what."""
    make(root, "units", 3_000_000, system="seal", split="ab")
    make(root, "units", 2_000_000, system="trunc")
    last_used(make(root, "tokenizer", vocabulary_size=500), 3)
    assert main(["cache"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == str(root)
    assert [line.split() for line in told[3:]] == [
        *(["units", "2", "5.0", "MB", "0", "s", "ago"], ["tokenizer", "1", "<", "0.1", "MB", "3", "days", "ago"]),
        ["all", "3", "5.0", "MB", "0", "s", "ago"],
    ]
    assert main(["cache", "--all", "--kind", "tokenizer"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"tokenizer +[0-9a-f]{24} +< 0.1 MB +3 days ago +vocabulary_size=500", told[3])
    assert len(told) == 4


def test_an_empty_cache(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cache that is not there yet is told and pruned as an empty one, and not made."""
    assert main(["cache"]) == main(["cache", "prune"]) == main(["cache", "prune", "--all"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{root}: no stages", "freed 0.0 MB", "freed 0.0 MB"]
    assert not root.exists()


def test_what_was_not_used_for_long_is_deleted(root: Path) -> None:
    """Stages unused for 30 days go, others stay; being asked for is a use."""
    for kind, days in (("units", 29.9), ("labels", 30.1), ("tokenizer", 400.0)):
        last_used(make(root, kind), days)
    make(root, "tokenizer")  # asked for again
    assert "would free" in pruned(root, dry_run=True)
    assert kinds(root) == ["labels", "tokenizer", "units"]
    assert pruned(root).startswith("freed < 0.1 MB (1 labels)")
    assert kinds(root) == ["tokenizer", "units"]
    assert not list((root / "labels").iterdir())
    pruned(root, unused_for=parse_seconds("1h"))
    assert kinds(root) == ["tokenizer"]


def test_what_is_in_use_stays(root: Path) -> None:
    """A stage that another process uses is kept, which is said, until that process ends, also by SIGKILL."""
    process = start_python(USES, root, "corpus")
    next_line(process)
    (stage,) = artifacts_in(root)
    assert stage.is_used
    assert f"kept: corpus {stage.key}, < 0.1 MB: it is in use" in pruned(root, everything=True)
    assert kinds(root) == ["corpus"]
    killed(process)
    assert pruned(root, everything=True) == "freed < 0.1 MB (1 corpus)"
    assert artifacts_in(root) == []


def test_what_is_being_built_stays(root: Path) -> None:
    """A stage that a process builds is kept, and said by whom; what the process leaves when it is killed is not."""
    process = start_python(BUILDS, root, "checkpoint")
    next_line(process)
    assert f"it is being built by process {process.pid} on " in pruned(root, everything=True)
    assert f"being built by process {process.pid} on " in cache.list_kinds(root, artifacts_in(root))
    killed(process)
    (stage,) = artifacts_in(root)
    assert stage.is_left_over
    assert stage.rest_size > 1_000
    assert stage.inputs == {"x": 1}
    assert pruned(root) == "freed 0.0 MB"  # the same command may yet continue it
    assert pruned(root, rests_only=True) == "freed < 0.1 MB (1 left over)"
    assert not list((root / "checkpoint").iterdir())


def test_left_overs_are_deleted_after_a_day(root: Path) -> None:
    """What a killed builder left goes without being asked for once it is a day old; finished stages beside it stay."""
    process = start_python(BUILDS, root, "checkpoint")
    next_line(process)
    killed(process)
    folder = make(root, "corpus")
    (stage,) = [one for one in artifacts_in(root) if one.kind == "checkpoint"]
    last_used(stage.folder, 1.1)
    side_path(folder, "old-0123").mkdir()  # of an interrupted deletion
    assert pruned(root, kinds=["checkpoint"]) == "freed < 0.1 MB (1 left over)"
    assert kinds(root) == ["corpus"]
    assert pruned(root, rests_only=True) == "freed 0.0 MB (1 left over)"
    assert kinds(root) == ["corpus"]


def test_only_stages_are_deleted(root: Path) -> None:
    """Whatever else stands in the folder is neither told nor deleted, for it may be the user's."""
    make(root, "units")
    for name in ("notes.txt", "units/notes.txt", "papers/0123", "papers/0123456789abcdef01234567x"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("mine")
    assert pruned(root, everything=True) == "freed < 0.1 MB (1 units)"
    left = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert left == {"notes.txt", "units/notes.txt", "papers/0123", "papers/0123456789abcdef01234567x", LAYOUT_FILE}


def test_one_stage_by_its_key(root: Path) -> None:
    """A stage is deleted by the beginning of its key, however lately it was used; the beginning must fit one."""
    one, _ = make(root, "units", a=1), make(root, "units", a=2)
    assert pruned(root, keys=[one.name[:10]]) == "freed < 0.1 MB (1 units)"
    assert not one.exists()
    assert kinds(root) == ["units"]
    with pytest.raises(UsageError, match="no stage begins with 'xyz'; `longsumbench cache --all` lists them"):
        pruned(root, keys=["xyz"])
    make(root, "units", a=1)
    with pytest.raises(UsageError, match="2 stages begin with ''"):
        pruned(root, keys=[""])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--dry-run"], "--dry-run needs `longsumbench cache prune`"),
        (["prune", "--unused-for", "30"], "--unused-for 30: write a number followed by s, m, h, d or w, as in 30d"),
        (["prune", "--all", "--left-over"], "--all and --left-over cannot be combined"),
        (["prune", "--kind", "unit"], "no 'unit' in the cache (did you mean 'units'?); there: units"),
        (["prun"], "no stage begins with 'prun'"),
        (["--left"], "unknown flag '--left' (did you mean '--left-over'?)"),
    ],
)
def test_wrong_usage(words: list[str], told: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be meant ends with exit code 2 and one line, and nothing is deleted."""
    make(root, "units")
    assert main(["cache", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"longsumbench: {told}")
    assert error.count("\n") == 1
    assert kinds(root) == ["units"]


def test_an_interrupted_deletion(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C leaves every stage whole or not there; what was freed is said, and the same command goes on."""
    make(root, "corpus")
    make(root, "units")
    delete = shutil.rmtree

    def interrupted(path: Path, **options: bool) -> None:
        if "units" in str(path):
            raise KeyboardInterrupt
        delete(path, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    assert main(["cache", "prune", "--all"]) == 130
    assert "freed < 0.1 MB (1 corpus); the same command deletes the rest" in capsys.readouterr().err
    assert kinds(root) == []
    monkeypatch.setattr(shutil, "rmtree", delete)
    assert main(["cache", "prune", "--all"]) == 0
    assert capsys.readouterr().out == "freed < 0.1 MB (1 left over)\n"


def test_pruning_and_using_at_once(root: Path) -> None:
    """While everything is deleted again and again, processes that ask for stages always get whole ones."""
    processes = [start_python(ASKS_ALL_THE_TIME, root) for _ in range(3)]
    try:
        while any(process.poll() is None for process in processes):
            pruned(root, everything=True)
    finally:
        told = [process.communicate(timeout=PATIENCE)[0].strip() for process in processes]
    assert told == ["whole"] * 3


@pytest.mark.parametrize("layout", ["0", "2"])
def test_another_versions_cache(layout: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cache of another layout is not touched, which is said in one line with what to do; --all makes it usable."""
    folder = make(root, "corpus")
    (root / LAYOUT_FILE).write_text(f"{layout}\n")
    data = write_jsonl(tmp_path / "toy")
    run = ["run", "model=lead", "dataset=jsonl", f"dataset.path={data}", f"results_dir={tmp_path / 'results'}"]
    for words in (run, ["cache"], ["cache", "prune"]):
        assert main(words) == 4
        (error,) = capsys.readouterr().err.splitlines()
        assert f"the cache {root} was written by another version of longsumbench (layout {layout}, here" in error
        assert "`longsumbench cache prune --all`" in error
        assert CACHE_VARIABLE in error
    assert folder.is_dir()
    assert main(["cache", "prune", "--all"]) == 0
    assert main([*run, "baselines=false"]) == 0
    assert kinds(root) == ["corpus"]


def test_a_cache_without_a_mark(root: Path) -> None:
    """A cache that was written before there were marks is taken as it is, and marked; so is one with a torn mark."""
    make(root, "corpus")
    for spoil in ((root / LAYOUT_FILE).unlink, lambda: (root / LAYOUT_FILE).write_text("")):
        spoil()
        ArtifactCache(root).get("corpus", {}, lambda folder: pytest.fail("built again"))
        assert (root / LAYOUT_FILE).read_text() == f"{LAYOUT}\n"


def test_a_stage_that_cannot_be_read(root: Path) -> None:
    """One whose files are as they were written is named in one line with the command that removes it."""
    folder = make(root, "corpus")
    with pytest.raises(DataError) as caught, reading_artifact(folder):
        json.loads((folder / "text").read_text())
    told = str(caught.value)
    assert told.startswith(f"{folder}: this finished corpus cannot be read (JSONDecodeError: ")
    command = f"longsumbench cache prune {folder.name}"
    assert f"remove it by `{command}` and run the same command again" in told
    assert main(command.split()[1:]) == 0
    assert not folder.exists()


def test_what_the_machine_refuses_is_no_damage(tmp_path: Path) -> None:
    """A full disk or too little memory while a stage is read is not taken for a damaged stage."""
    (tmp_path / "text").touch()
    for error in (OSError(28, "No space left on device"), MemoryError(), PermissionError(13, "Permission denied")):
        with pytest.raises(type(error)), reading_artifact(tmp_path):
            raise error
    with pytest.raises(EnvironmentProblem), reading_artifact(tmp_path):
        raise EnvironmentProblem("no network")
    with pytest.raises(DataError, match="KeyError"), reading_artifact(tmp_path):
        raise KeyError("splits")


def test_times_sizes_and_names_by_hand() -> None:
    """Spans of time, bytes, and what a stage is of, as worked out by hand."""
    assert [parse_seconds(text) for text in ("90s", "1.5h", "30d", "2w")] == [90, 5_400, 2_592_000, 1_209_600]
    assert [format_bytes(size) for size in (0, 1, 123_456, 999_900_000, 1_460_000_000)] == [
        *("0.0 MB", "< 0.1 MB", "0.1 MB", "999.9 MB", "1.5 GB")
    ]
    assert describe_artifact({"corpus": ["pydoc", 1, 3], "limit": 100}, {}) == "pydoc limit=100"
    inputs = {"config": {"name": "seal", "rank": "none"}, "train": "ab", "validation": ["cd", 5]}
    assert (
        describe_artifact(inputs, {"ab": "pydoc train", "cd": "pydoc validation"})
        == "seal, pydoc train, pydoc validation"
    )


def test_the_table_of_texts(root: Path) -> None:
    """A stage of a corpus's split says which dataset that is, as long as the corpus is in the cache."""

    def build(folder: Path) -> None:
        (folder / "corpus.json").write_text(json.dumps({"splits": {"train": "ab"}}))

    ArtifactCache(root).get("corpus", {"corpus": ["pydoc", 1, 3]}, build)
    make(root, "units", system="seal", split="ab")
    everything = artifacts_in(root)
    assert "seal, pydoc train" in cache.list_artifacts(root, everything, everything)
