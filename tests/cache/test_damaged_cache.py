"""A cache whose files changed: what is damaged is built again, and nothing else is touched."""

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
from support.toys import TINY, tiny_recipe, write_jsonl

from longsumbench.cache.artifacts import CACHE_VARIABLE, CHECKSUMS, ArtifactCache, refuse_damaged
from longsumbench.cli.main import main
from longsumbench.core import DatasetSettings, FitContext, registry
from longsumbench.corpora.reading.load import load_texts
from longsumbench.errors import DataError, as_suite_error

STAGES = {"corpus": 1, "tokenizer": 1, "units": 2, "checkpoint": 1}  # kind → how many the toy system makes
UNREADABLE = ("missing", "cut", "a FIFO", "no UTF-8")  # of checksums
PARTS = 23  # of about 230 pairs of a file and a kind of damage


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
        """Read the texts and fit the system; return a hash of the outcome, and the log lines."""
        lines: list[str] = []
        store = ArtifactCache(self.root)
        data = DatasetSettings(name="jsonl", path=str(self.texts), workers=1)
        with listening(lines.append):
            texts = load_texts(data, store)
            kind = registry.systems.load("trunc")
            system = kind(kind.Config(**TINY))
            train, validation = texts.splits["train"], texts.splits["validation"]
            system.fit(FitContext(train, validation, tiny_recipe(max_steps=0), store))
        parts = [json.dumps(one.to_dict()) for split in texts.splits.values() for one in split]
        parts += [system.tokenizer.backend_tokenizer.to_str(), *map(str, system.model.state_dict().items())]
        parts += [
            f"{path.relative_to(self.root)} {hashlib.sha256(path.read_bytes()).hexdigest()}"
            for path in self.files()
            if path.name not in ("fit.json", CHECKSUMS)
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest(), lines

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
def intact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Toy, str]:
    """A toy with a complete cache, and its outcome."""
    texts = write_jsonl(tmp_path_factory.mktemp("texts"), train=8, validation=3, test=3)
    toy = Toy(tmp_path_factory.mktemp("intact"), texts)
    toy.use()
    outcome, lines = toy.use()
    assert lines == []
    assert {kind: len(list((toy.root / kind).glob("*/"))) for kind in STAGES} == STAGES
    return toy, outcome


@pytest.fixture
def toy(intact: tuple[Toy, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """A copy of it."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "toy" / "cache"))
    return intact[0].copy(tmp_path / "toy")


@pytest.fixture
def outcome(intact: tuple[Toy, str]) -> str:
    """Its outcome."""
    return intact[1]


def check_damaged(toy: Toy, name: Path, how: str, outcome: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Damage a file; check that only its stage is built again, and that one line says so."""
    folder, before = toy.root / Path(*name.parts[:2]), toy.times()
    capsys.readouterr()
    DAMAGES[how](toy.root / name, random.Random(f"{name} {how}").random())
    if "unseen" in how:
        assert main(["cache", "verify"]) == 3
        listed, error = capsys.readouterr()
        assert listed == f"damaged: {name.parts[0]} {name.parts[1]}: {name.name} has other content\n"
        assert "1 of 5 stages in the cache" in error
    same, (line,) = toy.use()
    assert same == outcome
    (aside,) = folder.parent.glob("*.damaged-*")
    assert f"damaged: {name.parts[0]} {folder} ({name.name} " in line
    assert aside.name in line
    after = toy.times()
    others = [path for path in before if path.parts[:2] != name.parts[:2]]
    assert [before[path] for path in others] == [after[path] for path in others]
    assert toy.use() == (outcome, [])
    assert main(["cache", "verify"]) == 0


@pytest.mark.parametrize("part", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, PARTS))])
def test_a_damaged_stage_is_built_again(
    part: int, toy: Toy, outcome: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever happened to a file, the outcome is that of an intact cache, and the other stages are not touched."""
    cases = [(name, how) for name in toy.times() for how in DAMAGES if name.name != CHECKSUMS or how in UNREADABLE]
    random.Random(19).shuffle(cases)
    for number, (name, how) in enumerate(cases[part::PARTS]):
        copy = toy.copy(toy.folder.with_name(f"{number}"))
        monkeypatch.setenv(CACHE_VARIABLE, str(copy.root))
        check_damaged(copy, name, how, outcome, capsys)
        shutil.rmtree(copy.folder)


@pytest.mark.parametrize("how", HARMLESS)
def test_other_times_alone_are_no_damage(how: str, toy: Toy, outcome: str) -> None:
    """Touched and copied files are read once and accepted: nothing is built or reported, and new times are stored."""
    for path in toy.files():
        HARMLESS[how](path)
    for path in toy.root.rglob("*.old"):
        path.unlink()
    times = {path: time for path, time in toy.times().items() if path.name != CHECKSUMS}
    assert toy.use() == (outcome, [])
    stored = toy.times()
    assert {path: time for path, time in stored.items() if path.name != CHECKSUMS} == times
    assert toy.use() == (outcome, [])
    assert toy.times() == stored


def test_a_read_only_cache(toy: Toy, outcome: str) -> None:
    """Files with other times are read at each use, and accepted, where nothing can be written."""
    for path in toy.files():
        os.utime(path, (1, 1))
    folders = [toy.root, *toy.root.glob("*/"), *toy.root.glob("*/*/")]
    for folder in folders:
        folder.chmod(0o500)
    with heeded():
        assert toy.use() == (outcome, [])
        assert toy.use() == (outcome, [])
    for folder in folders:
        folder.chmod(0o700)


@pytest.mark.parametrize("kind", ["corpus", "checkpoint"])
def test_a_file_without_permission_is_no_damage(
    kind: str, toy: Toy, outcome: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the permission, and nothing is built again."""
    for path in toy.root.glob(f"{kind}/*/*"):
        path.chmod(0)
    before = toy.times()
    with heeded():
        with pytest.raises(OSError, match="Permission denied") as caught:
            toy.use()
        assert main(["cache", "verify"]) == 3
    assert "no permission to use" in str(as_suite_error(caught.value))
    assert "cannot be read (Permission denied)" in capsys.readouterr().out
    assert toy.times() == before
    for path in toy.files():
        path.chmod(0o600)
    assert toy.use() == (outcome, [])


def test_damage_that_a_run_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that meets a change of the same size and time names the stage; the next one builds it again."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    data, results = write_jsonl(tmp_path / "toy"), tmp_path / "results"
    run = ["run", "model=lead", "model.length=9", "dataset=jsonl", f"dataset.path={data}", f"results_dir={results}"]
    assert main([*run, "baselines=false"]) == 0
    shutil.rmtree(results)
    (path,) = tmp_path.glob("cache/corpus/*/test.arrow")
    status, content = path.stat(), path.read_bytes()
    path.write_bytes(content.replace(b'{"id"', b"\xff\xff\xff\xff\xff"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    capsys.readouterr()
    assert main([*run, "baselines=false"]) == 3
    problem = "this stage is damaged (test.arrow has other content); run the same command again to rebuild it"
    assert f"longsumbench: {path.parent}: {problem}\n" in capsys.readouterr().err
    assert main([*run, "baselines=false"]) == 0
    assert "damaged: corpus " in capsys.readouterr().err
    assert path.read_bytes() == content


def test_selected_stages_are_read_in_full(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    """`verify KEY` reads only these stages; after a bug, those of the run are read, and only damage is reported."""
    (path,), (corpus,) = toy.root.glob("tokenizer/*/tokenizer.json"), toy.root.glob("corpus/*/")
    refuse_damaged([path.parent, corpus], KeyError("x"))
    flip_unseen(path, 0.5)
    with pytest.raises(DataError, match="this stage is damaged"):
        refuse_damaged([corpus, path.parent], KeyError("x"))
    assert main(["cache", "verify", corpus.name[:8]]) == 0
    assert "1 stage in the cache (" in capsys.readouterr().out
    assert main(["cache", "verify", path.parent.name[:8], corpus.name[:8]]) == 3
