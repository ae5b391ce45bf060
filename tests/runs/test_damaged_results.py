"""Damaged files under `results/`: each is named in one line, and nothing else of the folder suffers.

A pristine folder with a sweep and three runs is copied, one file in it is damaged, and a command is called in process.
"""

import copy
import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.paths import ROOT
from support.toys import write_jsonl

from longsumbench.api.system import Evidence, Summary
from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cli.main import main
from longsumbench.errors import DataError
from longsumbench.runs.evidence import write_evidence
from longsumbench.runs.record import RunRecord

SEED = 20
SAMPLED = (48, 48, 8)  # of files, of records, of those with a command of `RUNS`
RUNS = ("another run", "a new run", "another sweep", "the same sweep")  # commands that take seconds
SECONDS = 120  # that no command takes, unless it hangs
DOCUMENTED = {0, 2, 3, 4}
DELETED = object()
HUGE = 10**400
JUNK: dict[str, Any] = {
    "deleted": DELETED,
    "null": None,
    "true": True,
    "zero": 0,
    "minus one": -1,
    "huge": HUGE,
    "large": 2**62,
    "fraction": 0.5,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "empty text": "",
    "text": "junk",
    "a line break": "a\nb\x1b[31m",
    "half a character": "\ud800",
    "a mathematical text": r"$\frac$ {",
    "an upper folder": "../../..",
    "long text": "x" * 5_000,
    "empty list": [],
    "list": [1, "a", None],
    "nested list": [[[[]]]],
    "empty object": {},
    "object": {"mean": "x", "cause": None, "": []},
    "nested object": {"a": {"b": {"c": {"d": {"e": 1}}}}},
}
DEEP = "[" * 100_000 + "]" * 100_000
CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "binary": bytes(range(256)),
    "zeros": b"\x00" * 100,
    "another encoding": "id,ü".encode("utf-16"),
    "null": b"null",
    "a list": b"[1, 2]",
    "an object": b"{}",
    "nested": DEEP.encode(),
    "nested a little": b'{"format": ' + b"[" * 900 + b"]" * 900 + b"}",
    "a huge number": b'{"format": ' + b"9" * 5_000 + b"}",
    "a table": b"id,rouge1_f\na,0.5\na,0.5\n",
    "numbers that are none": b"id,rouge1_f\na,x\n",
}


def remove(path: Path) -> None:
    """Remove what is there, if anything."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def as_folder(path: Path) -> None:
    remove(path)
    path.mkdir(parents=True)


def as_pipe(path: Path) -> None:
    remove(path)
    os.mkfifo(path)


def as_dangling_link(path: Path) -> None:
    remove(path)
    path.symlink_to("nowhere")


def as_link_to_itself(path: Path) -> None:
    remove(path)
    path.symlink_to(path.name)


def cut_in_half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def without_last_line(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def last_line_twice(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, *lines[-1:]]))


def doubled_keys(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"{", b'{"n": "x", "id": 1, "format": [], "axes": 3, "command": 5, ', 1))


def with_content(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        remove(path)
        path.write_bytes(content)

    return write


Damage = Callable[[Path], None]
EDITS: dict[str, Damage] = {
    "half": cut_in_half,
    "without its last line": without_last_line,
    "last line twice": last_line_twice,
    "doubled keys": doubled_keys,
}
REPLACEMENTS: dict[str, Damage] = {
    "removed": remove,
    "a folder": as_folder,
    "a pipe": as_pipe,
    "a dangling link": as_dangling_link,
    "a link to itself": as_link_to_itself,
    **{name: with_content(content) for name, content in CONTENTS.items()},
}


class Pristine:
    """A results folder and its texts; `victim` is the run that is damaged."""

    def __init__(self, root: Path) -> None:
        self.root, self.results = root, root / "results"
        self.texts = write_jsonl(root / "texts")
        self.words = ["dataset=jsonl", f"dataset.path={self.texts}", "baselines=false", "score.resamples=100"]
        for words in (["-m", "model=lead", "model.length=3,5"], ["model=random", "model.length=5"]):
            assert main(["run", *words, *self.words, f"results_dir={self.results}"]) == 0
        (self.victim,) = (self.results / "runs" / "jsonl" / "random").iterdir()
        enrich(self.victim)

    def commands(self, results: Path) -> dict[str, list[str]]:
        """Name → a command on a copy of the results."""
        victim = str(results / self.victim.relative_to(self.results))
        (other, *_) = sorted((results / "runs" / "jsonl" / "lead").iterdir())
        where = ["--results-dir", str(results)]
        run = ["run", *self.words, f"results_dir={results}"]
        return {
            "leaderboard": ["leaderboard", *where],
            "precision": ["leaderboard", "jsonl", "--measure", "precision", *where],
            "ledger": ["leaderboard", "jsonl", "--ledger", *where],
            "against": ["leaderboard", "jsonl", "--against", "length", *where],
            "status": ["status", *where],
            "compare": ["compare", str(other), victim, *where],
            "compare by id": ["compare", Path(victim).name, str(other), *where],
            "inspect": ["inspect", victim, "0", *where],
            "repro": ["repro", victim, *where],
            "stats": ["stats", "dataset=jsonl", f"dataset.path={self.texts}", "run=all", f"results_dir={results}"],
            "analyze": ["analyze", "locality", *self.words[:2], f"run={victim}", *where],
            "summarize": ["summarize", victim, str(self.texts / "test.jsonl"), *where],
            "score": ["score", victim, str(self.texts / "test.jsonl")],
            "another run": [*run, "model=lead", "model.length=5"],
            "a new run": [*run, "model=lead", "model.length=7"],
            "another sweep": [*run, "-m", "model=lead", "model.length=3,7"],
            "the same sweep": [*run, "-m", "model=lead", "model.length=3,5"],
        }


OF_THE_VICTIM = ("compare", "compare by id", "inspect", "repro", "analyze", "summarize", "score")


def enrich(folder: Path) -> None:
    """Give a run all that a record and a folder can hold, as committed runs of trained systems have it."""
    path = folder / "record.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    committed = [
        json.loads(one.read_text(encoding="utf-8")) for one in ROOT.glob("results/**/probe/seal/*/record.json")
    ]
    trained = max(committed, key=lambda one: (len(one.get("measures", ())), one["run_id"]))
    for name in ("source", "fit", "measures", "units", "measured_by", "environment"):
        record[name] = trained[name]
    few = ("fact_recall", "fact_recall_chance", "fact_recall_single_position_0")
    record["measures"] = {name: record["measures"][name] for name in few}
    record["measures"]["words"] = {"mean": 5.0, "lo": 4.0, "hi": 6.0, "n": 4}
    record["measured_by"], record["units"] = {"words": "words|v:1"}, {"words": "words"}
    record["environment"]["packages"] = {"torch": "2.0"}
    record["corpus"] |= {"generated": trained["corpus"]["generated"], "options": {"sources": 2}, "generator": 1}
    record["checkpoints"] = []
    path.write_text(json.dumps(record), encoding="utf-8")
    weights = np.array([[0.25], [0.75]], dtype=np.float32)
    evidence = Evidence({"weight": weights}, {"weight": ("unit", "step")}, {"unit": ("A.", "B."), "step": ("a",)})
    first = json.loads((folder / "predictions.jsonl").read_text(encoding="utf-8").splitlines()[0])["id"]
    write_evidence(folder / "evidence", 0, Summary(first, "", evidence=evidence))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pristine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.getbasetemp() / "cache"))
        yield Pristine(tmp_path_factory.mktemp("pristine"))


def paths_in(value: Any, depth: int = 4) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value inside JSON, of lists that of the first one."""
    if depth and isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else [0]
        for key in keys:
            yield (key,)
            yield from ((key, *rest) for rest in paths_in(value[key], depth - 1))


def changed(content: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """Return JSON with another value at a path."""
    content = copy.deepcopy(content)
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    if junk is DELETED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = junk
    return content


def damaged_records(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each damaged record: every field, with every junk value."""
    for path in paths_in(content):
        for name, junk in JUNK.items():
            told = f"{'.'.join(map(str, path))} {name}"
            yield told, json.dumps(changed(content, path, junk))


def damaged_files(pristine: Pristine) -> Iterator[tuple[str, Path, str]]:
    """Yield the name of each damage to a file, the file, and the damage."""
    victim = pristine.victim.relative_to(pristine.results)
    (sweep,) = (path.relative_to(pristine.results) for path in (pristine.results / "sweeps").iterdir())
    names = ("record.json", "scores.csv", "predictions.jsonl", "config.yaml", "evidence/0.json")
    files = [victim / name for name in (*names, "evidence/0.safetensors", "evidence", "work", "work/.lock")]
    files += [victim / "work" / name for name in ("fitted.json", "decoding.jsonl", "constraints.txt", "patch.diff")]
    files += [sweep / name for name in ("sweep.json", "sweep.lock", "points", "points/1.json", "points/1.lock")]
    files += [Path("leaderboard") / name for name in ("", "jsonl.csv", "jsonl.md", "jsonl-lengths.csv")]
    files += [Path(name) for name in (".leaderboard-jsonl.lock", "published.csv", "runs/empty", "runs/jsonl/lead/0/0")]
    for file in files:
        edits = EDITS if (pristine.results / file).is_file() else {}
        for name in {**edits, **REPLACEMENTS}:
            yield f"{file} {name}", file, name


class Case:
    """A damaged copy of the pristine folder.

    Args:
        pristine: what is copied.
        folder: an empty folder for the copy.
    """

    def __init__(self, pristine: Pristine, folder: Path) -> None:
        self.pristine, self.results = pristine, folder / "results"
        shutil.copytree(pristine.results, self.results, symlinks=True)
        self.victim = self.results / pristine.victim.relative_to(pristine.results)

    def others(self) -> dict[Path, bytes]:
        """Return the files of the other runs that are there from the beginning."""
        folder = self.pristine.results / "runs" / "jsonl" / "lead"
        there = [path.relative_to(self.pristine.results) for path in folder.rglob("*") if path.is_file()]
        return {name: (self.results / name).read_bytes() for name in there if name.name != ".lock"}

    def readable(self) -> bool:
        """Whether the victim's record is still one."""
        try:
            return RunRecord.read(self.victim).run_id == self.victim.name
        except (FileNotFoundError, DataError):
            return False

    def check(self, command: str, damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Run a command and check how it ends."""
        before, readable, words = self.others(), self.readable(), self.pristine.commands(self.results)[command]
        capsys.readouterr()
        signal.alarm(SECONDS)
        try:
            code = main(words)
        finally:
            signal.alarm(0)
        out, err = capsys.readouterr()
        assert code in DOCUMENTED, err
        assert "Traceback" not in err
        assert before.items() <= self.others().items()
        naming = [line for line in err.splitlines() if str(damaged) in line]
        if code in (3, 4):
            assert err.count("longsumbench: ") == 1
        if damaged != self.victim / "record.json" or readable or not damaged.exists():
            return
        if command in OF_THE_VICTIM:
            assert code in (2, 3) or command == "score"
            return
        assert code == 0, err
        assert len(naming) == (0 if command == "status" else 1)
        if command not in ("status", "stats"):
            lead = [path.name[:8] for path in (self.results / "runs" / "jsonl" / "lead").iterdir()]
            assert all(name in out for name in lead)


def out_of_time(*_: object) -> None:
    """End a command that hangs."""
    raise TimeoutError("the command hangs")


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """Let SIGALRM end a command that hangs."""
    before = signal.signal(signal.SIGALRM, out_of_time)
    yield
    signal.signal(signal.SIGALRM, before)


def every_case(pristine: Pristine) -> list[tuple[str, Path, Damage, str]]:
    """Return (name, file, damage, command): each damage once, the commands in turn."""
    commands = list(pristine.commands(pristine.results))
    record = pristine.victim.relative_to(pristine.results) / "record.json"
    content = json.loads((pristine.results / record).read_text(encoding="utf-8"))
    damages = [(name, record, with_content(text.encode())) for name, text in damaged_records(content)]
    found = [(name, file, {**EDITS, **REPLACEMENTS}[damage]) for name, file, damage in damaged_files(pristine)]
    random.Random(SEED).shuffle(damages)
    random.Random(SEED).shuffle(found)
    return [(*case, commands[place % len(commands)]) for place, case in enumerate([*damages, *found])]


def check_cases(
    pristine: Pristine,
    cases: list[tuple[str, Path, Damage, str]],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Damage a copy of the folder in each way, run its command, and check how it ends; name all cases that fail."""
    failed = []
    for number, (name, file, damage, command) in enumerate(cases):
        case = Case(pristine, folder / str(number))
        path = case.results / file
        path.parent.mkdir(parents=True, exist_ok=True)
        damage(path)
        try:
            case.check(command, path, capsys)
        except Exception as error:
            failed.append(f"{command} with {name}: {type(error).__name__}: {error}")
        shutil.rmtree(folder / str(number))
    assert not failed, "\n".join(failed)


def test_damage_stays_where_it_is(pristine: Pristine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged file ends no command in a traceback, changes no other run, and hides no other run from a table."""
    chance, kinds = random.Random(SEED), [[], [], []]
    for case in every_case(pristine):
        kinds[2 if case[3] in RUNS else case[1].name == "record.json"].append(case)
    chosen = [case for cases, number in zip(kinds, SAMPLED, strict=True) for case in chance.sample(cases, number)]
    check_cases(pristine, chosen, tmp_path, capsys)


@pytest.mark.slow
def test_every_damage_stays_where_it_is(pristine: Pristine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every field of a record with every junk value, and every damage to every file, does so."""
    check_cases(pristine, every_case(pristine), tmp_path, capsys)


def test_every_damaged_record_is_read_or_refused(pristine: Pristine, tmp_path: Path) -> None:
    """Every field with every junk value: the record is read, or refused in one line that names the file."""
    content, path = json.loads((pristine.victim / "record.json").read_text(encoding="utf-8")), tmp_path / "record.json"
    for _, text in damaged_records(content):
        path.write_text(text, encoding="utf-8")
        refused = ""
        try:
            RunRecord.read(tmp_path)
        except DataError as error:
            refused = str(error)
        assert not refused or (refused.startswith(f"{path}: ") and len(refused.splitlines()) == 1)
