"""A cache whose files changed: what is damaged is built again, what is whole is used, and nothing else is touched."""

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.logs import listening
from support.permissions import heeded
from support.toys import TINY, next_line, start_python, tiny_overrides, tiny_recipe, write_jsonl

from longsumbench.api import registry
from longsumbench.api.config import DatasetSettings
from longsumbench.api.system import FitContext
from longsumbench.cache.artifacts import CACHE_VARIABLE, LAYOUT_FILE, ArtifactCache, refuse_damaged
from longsumbench.cache.checksums import CHECKSUMS, find_damage
from longsumbench.cli.main import main
from longsumbench.corpora.reading.load import load_texts
from longsumbench.errors import DataError, as_suite_error

STAGES = {"corpus": 1, "tokenizer": 1, "units": 2, "checkpoint": 1}  # kind → how many the toy system makes
SAMPLE = 70  # of about 230 pairs of a file and a kind of damage
USES = """
import sys
from pathlib import Path
from longsumbench.cache.artifacts import ArtifactCache
folder = ArtifactCache(Path(sys.argv[1])).get("units", {}, lambda folder: (folder / "text").write_text("x"))
print("using", flush=True)
sys.stdin.readline()
print((folder / "text").read_text(), flush=True)
"""


def replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def flip(path: Path, place: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 0x20
    path.write_bytes(content)


def flip_unseen(path: Path, place: float) -> None:
    """Change a byte as a failing disk does: size and time stay."""
    status = path.stat()
    flip(path, place)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


DAMAGES: dict[str, Callable[[Path, float], object]] = {
    "a changed byte": flip,
    "a changed byte, unseen": flip_unseen,
    "cut": lambda path, place: os.truncate(path, int(place * path.stat().st_size)),
    "empty": lambda path, place: path.write_bytes(b""),
    "longer": lambda path, place: path.write_bytes(path.read_bytes() + b"\n"),
    "zeros": lambda path, place: path.write_bytes(bytes(path.stat().st_size)),
    "no UTF-8": lambda path, place: path.write_bytes(b"\xff\xfe" * 20),
    "missing": lambda path, place: path.unlink(),
    "a folder": lambda path, place: replace(path, Path.mkdir),
    "a FIFO": lambda path, place: replace(path, os.mkfifo),
    "a link to itself": lambda path, place: replace(path, lambda it: it.symlink_to(it)),
    "a link to nothing": lambda path, place: replace(path, lambda it: it.symlink_to(it.with_name("nothing"))),
    "a link to another file": lambda path, place: replace(path, lambda it: it.symlink_to(__file__)),
}
HARMLESS: dict[str, Callable[[Path], object]] = {
    "touched": lambda path: os.utime(path, (0, 0)),
    "written again": lambda path: path.write_bytes(path.read_bytes()),
    "copied": lambda path: shutil.copy(path.rename(path.with_suffix(".old")), path),
}


@dataclass
class Toy:
    """A tiny system on tiny texts, with a cache.

    Attributes:
        folder: holds the cache.
        texts: the dataset's folder.
    """

    folder: Path
    texts: Path

    @property
    def root(self) -> Path:
        """The cache."""
        return self.folder / "cache"

    def use(self) -> tuple[str, list[str]]:
        """Read the texts and fit the system; return a hash of everything that came of it, and the lines said."""
        said: list[str] = []
        store = ArtifactCache(self.root)
        data = DatasetSettings(name="jsonl", path=str(self.texts), workers=1)
        with listening(said.append):
            try:
                texts = load_texts(data, store)
                kind = registry.systems.load("trunc")
                system = kind(kind.Config(**TINY))
                train, validation = texts.splits["train"], texts.splits["validation"]
                system.fit(FitContext(train, validation, tiny_recipe(max_steps=0), store))
            finally:
                store.release()
        parts = [json.dumps(one.to_dict()) for split in texts.splits.values() for one in split]
        parts += [system.tokenizer.backend_tokenizer.to_str(), *map(str, system.model.state_dict().items())]
        parts += [
            f"{path.relative_to(self.root)} {hashlib.sha256(path.read_bytes()).hexdigest()}"
            for path in self.files()
            if path.name not in ("fit.json", CHECKSUMS)
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest(), said

    def files(self) -> list[Path]:
        """Return the files of all finished stages."""
        return sorted(path for path in self.root.glob("*/*/**/*") if path.is_file() and ".damaged-" not in str(path))

    def times(self) -> dict[Path, int]:
        """Return file → time of its last change."""
        return {path.relative_to(self.root): path.stat().st_mtime_ns for path in self.files()}

    def copy(self, folder: Path) -> "Toy":
        """Return the same toy with a cache in another folder."""
        shutil.copytree(self.folder, folder)
        return Toy(folder, self.texts)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Toy, str]:
    """A toy whose cache is whole, and what comes of it."""
    texts = write_jsonl(tmp_path_factory.mktemp("texts"), train=8, validation=3, test=3)
    toy = Toy(tmp_path_factory.mktemp("whole"), texts)
    toy.use()
    outcome, said = toy.use()
    assert said == []
    assert {kind: len(list((toy.root / kind).glob("*/"))) for kind in STAGES} == STAGES
    return toy, outcome


@pytest.fixture
def toy(whole: tuple[Toy, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """A copy of it."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "toy" / "cache"))
    return whole[0].copy(tmp_path / "toy")


def check_damaged(toy: Toy, name: Path, how: str, outcome: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Damage a file; check that its stage alone is built again, and that one line says so."""
    folder, before = toy.root / Path(*name.parts[:2]), toy.times()
    capsys.readouterr()
    DAMAGES[how](toy.root / name, random.Random(f"{name} {how}").random())
    if "unseen" in how:
        assert main(["cache", "verify"]) == 3
        listed, error = capsys.readouterr()
        assert listed == f"damaged: {name.parts[0]} {name.parts[1]}: {name.name} has other content\n"
        assert "1 of 5 stages in the cache" in error
    same, said = toy.use()
    assert same == outcome
    assert len(said) == 1
    assert f"damaged: {name.parts[0]} {folder} ({name.name} " in said[0]
    (aside,) = folder.parent.glob("*.damaged-*")
    assert aside.name in said[0]
    after = toy.times()
    others = [path for path in before if path.parts[:2] != name.parts[:2]]
    assert [before[path] for path in others] == [after[path] for path in others]
    assert toy.use() == (outcome, [])
    assert main(["cache", "prune", "--left-over"]) == 0
    assert main(["cache", "verify"]) == 0
    assert not aside.exists()


def cases(toy: Toy) -> list[tuple[Path, str]]:
    """Return all pairs of a file and a damage, shuffled."""
    names = [name for name in toy.times() if name.name != CHECKSUMS]
    found = [(name, how) for name in names for how in DAMAGES]
    random.Random(19).shuffle(found)
    return found


@pytest.mark.parametrize("part", range(7))
def test_a_damaged_stage_is_built_anew(
    part: int,
    whole: tuple[Toy, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever happened to a file, the outcome is that of a whole cache, one line says it, and other stages stay."""
    original, outcome = whole
    for number, (name, how) in enumerate(cases(original)[part:SAMPLE:7]):
        toy = original.copy(tmp_path / f"{number}")
        monkeypatch.setenv(CACHE_VARIABLE, str(toy.root))
        check_damaged(toy, name, how, outcome, capsys)
        shutil.rmtree(toy.folder)


@pytest.mark.slow
@pytest.mark.parametrize("how", DAMAGES)
def test_every_damage_of_every_file(
    how: str,
    whole: tuple[Toy, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All pairs of a file and a damage."""
    original, outcome = whole
    for number, (name, _) in enumerate(case for case in cases(original) if case[1] == how):
        toy = original.copy(tmp_path / f"{number}")
        monkeypatch.setenv(CACHE_VARIABLE, str(toy.root))
        check_damaged(toy, name, how, outcome, capsys)
        shutil.rmtree(toy.folder)


@pytest.mark.parametrize("how", ["a folder", "a FIFO", "a link to itself", "a link to nothing", "empty"])
@pytest.mark.parametrize("kind", STAGES)
def test_something_else_in_place_of_a_stage(kind: str, how: str, toy: Toy, whole: tuple[Toy, str]) -> None:
    """A stage's folder that was emptied, or became something else, is built again."""
    folder = min((toy.root / kind).glob("*/"))
    shutil.rmtree(folder)
    folder.touch()
    DAMAGES[how](folder, 0)
    outcome, said = toy.use()
    assert outcome == whole[1]
    assert f"{folder.name} is {'empty' if how == 'a folder' else 'not a folder'}" in said[0]
    assert main(["cache", "prune", "--left-over"]) == 0
    assert not list((toy.root / kind).glob("*.damaged-*"))


@pytest.mark.parametrize("how", HARMLESS)
def test_what_changes_times_alone_is_no_damage(how: str, toy: Toy, whole: tuple[Toy, str]) -> None:
    """Touched and copied files are read once and accepted: nothing is built, nothing is said, new times are noted."""
    for path in toy.files():
        HARMLESS[how](path)
    for path in toy.root.rglob("*.old"):
        path.unlink()
    times = {path: time for path, time in toy.times().items() if path.name != CHECKSUMS}
    assert toy.use() == (whole[1], [])
    assert {path: time for path, time in toy.times().items() if path.name != CHECKSUMS} == times
    noted = toy.times()
    assert toy.use() == (whole[1], [])
    assert toy.times() == noted


@pytest.mark.parametrize("how", [how for how in DAMAGES if how != "a changed byte, unseen"])
def test_stages_without_checksums_are_used_and_get_some(how: str, toy: Toy, whole: tuple[Toy, str]) -> None:
    """Checksums that are missing or damaged cost no stage: nothing is built, and they are written anew."""
    files = list(toy.root.rglob(CHECKSUMS))
    assert len(files) == sum(STAGES.values())
    for path in files:
        DAMAGES[how](path, 0.5)
    assert toy.use() == (whole[1], [])
    if how != "a folder":  # which nothing replaces
        for path in files:
            flip(min(one for one in path.parent.iterdir() if one.name != CHECKSUMS), 0.5)
            assert len(find_damage(path.parent)) == 1


def test_a_cache_that_may_only_be_read(toy: Toy, whole: tuple[Toy, str]) -> None:
    """Files with other times are read at each use, and accepted, where checksums cannot be written."""
    for path in toy.files():
        os.utime(path, (1, 1))
    for folder in toy.root.glob("*/*/"):
        folder.chmod(0o500)
    with heeded():
        assert toy.use() == (whole[1], [])
        assert toy.use() == (whole[1], [])


@pytest.mark.parametrize("kind", STAGES)
def test_a_file_that_may_not_be_read_is_no_damage(
    kind: str, toy: Toy, whole: tuple[Toy, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends in one line about the permission; nothing is built again, also when the time differs."""
    for path in (path for path in toy.files() if path.relative_to(toy.root).parts[0] == kind):
        path.chmod(0)
    before = toy.times()
    with heeded():
        with pytest.raises(Exception, match="Permission denied") as caught:
            toy.use()
        assert main(["cache", "verify"]) == 3
    told = str(as_suite_error(caught.value))
    assert "no permission to use" in told
    assert toy.times() == before
    assert "cannot be read (Permission denied)" in capsys.readouterr().out
    for path in toy.files():
        path.chmod(0o600)
    assert toy.use() == (whole[1], [])


def test_a_damaged_stage_in_use_is_left_to_its_users(tmp_path: Path) -> None:
    """It is set aside when no other process uses it any more."""
    process, said = start_python(USES, tmp_path), []
    assert next_line(process) == "using"

    def say(line: str) -> None:
        said.append(line)
        if "waiting" in line:
            assert path.is_file()
            told, _ = process.communicate("\n", timeout=60)
            assert told == "y\n"

    (path,) = tmp_path.glob("units/*/text")
    path.write_text("y")
    os.utime(path, (1, 1))
    store = ArtifactCache(tmp_path)
    with listening(say):
        folder = store.get("units", {}, lambda folder: (folder / "text").write_text("x") and None)
    assert (folder / "text").read_text() == "x"
    assert ["waiting" in said[0], "damaged" in said[1], len(said)] == [True, True, 2]


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b"something\n", b"1\x00", "٣".encode(), None])
def test_a_damaged_marker(content: bytes | None, toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    """A marker that holds no number is named in one line with what to do, after which the stages are used."""
    marker = toy.root / LAYOUT_FILE
    marker.unlink()
    marker.mkdir() if content is None else marker.write_bytes(content)
    for words in (["cache"], ["cache", "verify"], ["cache", "prune"]):
        assert main(words) == 4
        (error,) = capsys.readouterr().err.splitlines()
        assert f"{marker} is damaged: delete it and run the same command again" in error
    marker.rmdir() if content is None else marker.unlink()
    assert main(["cache", "verify"]) == 0
    assert toy.use()[1] == []


def test_damage_that_a_run_meets_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that stumbles over a change of the same size and time names the stage; the next one builds it again."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    data = write_jsonl(tmp_path / "toy", train=8, validation=3, test=3)
    run = ["run", *tiny_overrides(data), "train.max_steps=1", "baselines=false", f"results_dir={tmp_path / 'results'}"]
    assert main(run) == 0
    shutil.rmtree(tmp_path / "results")
    (path,) = tmp_path.glob("cache/corpus/*/test.arrow")
    status, content = path.stat(), path.read_bytes()
    path.write_bytes(content.replace(b'{"id"', b"\xff\xff\xff\xff\xff"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    capsys.readouterr()
    assert main(run) == 3
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("longsumbench: ")]
    assert told == [
        f"longsumbench: {path.parent}: this stage is damaged (test.arrow has other content);"
        " run the same command again to rebuild it"
    ]
    assert main(run) == 0
    assert "damaged: corpus " in capsys.readouterr().err
    assert path.read_bytes() == content


def test_an_error_is_laid_to_a_damaged_stage_alone(toy: Toy) -> None:
    """An error of the program stays what it is where every stage is whole."""
    folders = list(toy.root.glob("*/*/"))
    refuse_damaged(folders, KeyError("x"))
    flip_unseen(next(toy.root.glob("units/*/rows.arrow")), 0.5)
    with pytest.raises(DataError, match="this stage is damaged"):
        refuse_damaged(folders, KeyError("x"))


def test_verify_by_kind_and_key(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the chosen stages are read; a word that names none is refused."""
    (path,) = toy.root.glob("tokenizer/*/tokenizer.json")
    flip_unseen(path, 0.5)
    assert main(["cache", "verify", "--kind", "corpus", "units"]) == 0
    assert "3 stages in the cache (" in capsys.readouterr().out
    assert main(["cache", "verify", path.parent.name[:6]]) == 3
    assert main(["cache", "verify", "--kind", "units", "tokenizer"]) == 3
    assert main(["cache", "verify", "nothing"]) == 2
    assert main(["cache", "verify", "--dry-run"]) == 2
