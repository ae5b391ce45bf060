"""Damaged files under `results/`: each is named in one line, and no other run suffers.

A folder with a sweep and three runs is copied, one file in it is damaged, and a command is called in process.
"""

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.paths import ROOT
from support.toys import write_jsonl

from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cli.main import main
from longsumbench.core import Evidence, Summary
from longsumbench.errors import DataError
from longsumbench.runs.evidence import write_evidence
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

SEED = 20
SAMPLED = (14, 14)  # damaged records, other damaged files
DOCUMENTED = {0, 2, 3, 4}  # exit codes
DELETED = object()
JUNK: dict[str, Any] = {
    "deleted": DELETED,
    "null": None,
    "true": True,
    "minus one": -1,
    "large": 2**62,
    "fraction": 0.5,
    "NaN": float("nan"),
    "text": "a\nb\x1b[31m",
    "half a character": "\ud800",
    "an upper folder": "../../..",
    "list": [1, "a", None],
    "empty object": {},
    "nested object": {"a": {"b": {"c": {"d": {"e": 1}}}}},
}


def remove(path: Path) -> None:
    """Remove what is there, if anything."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    remove(path)
    path.mkdir(parents=True)


def cut_in_half(path: Path) -> None:
    if path.is_file():
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def with_content(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        remove(path)
        path.write_bytes(content)

    return write


Damage = Callable[[Path], None]
DAMAGES: dict[str, Damage] = {
    "removed": remove,
    "a folder": make_folder,
    "cut in half": cut_in_half,
    "empty": with_content(b""),
    "binary": with_content(bytes(range(256))),
    "a list": with_content(b"[1, 2]"),
    "nested": with_content(b"[" * 100_000 + b"]" * 100_000),
    "ids that occur twice": with_content(b"id,rouge1_f\na,0.5\na,0.5\n"),
}
OF_THE_VICTIM = ("compare", "inspect", "repro", "analyze", "summarize", "score")


class Pristine:
    """A results folder and its texts; `victim` is the run that is damaged."""

    def __init__(self, root: Path) -> None:
        self.root, self.results = root, root / "results"
        self.texts = write_jsonl(root / "texts")
        self.words = ["dataset=jsonl", f"dataset.path={self.texts}", "baselines=false", "score.resamples=100"]
        for words in (["-m", "model=lead", "model.length=3,5"], ["model=random", "model.length=5"]):
            assert main(["run", *words, *self.words, f"results_dir={self.results}"]) == 0
        (victim,) = (self.results / "runs" / "jsonl" / "random").iterdir()
        enrich(victim)
        self.victim = victim.relative_to(self.results)

    def commands(self, results: Path) -> dict[str, list[str]]:
        """Name → a command on a copy of the results."""
        victim = str(results / self.victim)
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
            "inspect": ["inspect", victim, "0", *where],
            "repro": ["repro", victim, *where],
            "stats": ["stats", "dataset=jsonl", f"dataset.path={self.texts}", "run=all", f"results_dir={results}"],
            "analyze": ["analyze", "locality", *self.words[:2], f"run={victim}", *where],
            "summarize": ["summarize", victim, str(self.texts / "test.jsonl"), *where],
            "score": ["score", victim, str(self.texts / "test.jsonl")],
            "a run": [*run, "model=lead", "model.length=5"],
            "a sweep": [*run, "-m", "model=lead", "model.length=3,5"],
        }


def enrich(folder: Path) -> None:
    """Give a run all that a record and a folder can have, as committed runs of trained systems do."""
    path = folder / "record.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    folders = Results(ROOT / "results/reference").run_folders(pattern="seal/*")
    committed = [json.loads((folder / "record.json").read_text(encoding="utf-8")) for folder in folders]
    trained = max(committed, key=lambda one: (len(one.get("measures", ())), one["run_id"]))
    record |= {name: trained[name] for name in ("source", "fit", "units", "environment")}
    few = ("fact_recall", "fact_recall_chance", "fact_recall_single_position_0")
    record["measures"] = {name: trained["measures"][name] for name in few}
    record["corpus"] |= {"generated": trained["corpus"]["generated"], "options": {"sources": 2}, "generator": 1}
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
    """Yield the path of each value inside JSON; of a list, that of the first one."""
    if depth and isinstance(value, dict | list) and value:
        for key in list(value) if isinstance(value, dict) else [0]:
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


def damaged_records(pristine: Pristine) -> Iterator[tuple[str, Path, Damage]]:
    """Yield each damage to the victim's record: every field, with every junk value."""
    file = pristine.victim / "record.json"
    content = json.loads((pristine.results / file).read_text(encoding="utf-8"))
    for path in paths_in(content):
        for name, junk in JUNK.items():
            damage = with_content(json.dumps(changed(content, path, junk)).encode())
            yield f"{'.'.join(map(str, path))} {name}", file, damage


def damaged_files(pristine: Pristine) -> Iterator[tuple[str, Path, Damage]]:
    """Yield each damage to another file."""
    (sweep,) = (path.relative_to(pristine.results) for path in (pristine.results / "sweeps").iterdir())
    names = ("record.json", "scores.csv", "predictions.jsonl", "config.yaml", "evidence/0.json")
    files = [pristine.victim / name for name in (*names, "evidence/0.safetensors", "work", "work/decoding.jsonl")]
    files += [pristine.victim / "work" / name for name in ("fitted.json", "constraints.txt", "patch.diff")]
    files += [sweep / name for name in ("sweep.json", "points", "points/1.json")]
    files += [Path("leaderboard") / name for name in ("jsonl.csv", "jsonl.md")]
    for file in files:
        for name, damage in DAMAGES.items():
            yield f"{file} {name}", file, damage


def check(pristine: Pristine, results: Path, file: Path, damage: Damage, command: str) -> str:
    """Damage a copy of the results and call a command; return what is wrong with how it ends, or an empty text."""
    shutil.copytree(pristine.results, results, symlinks=True)
    leads = results / "runs" / "jsonl" / "lead"
    before = {path: path.read_bytes() for path in leads.rglob("*") if path.is_file() and path.name != ".lock"}
    damage(results / file)
    try:
        RunRecord.read(results / pristine.victim)
        readable = True
    except (FileNotFoundError, DataError):
        readable = False
    try:
        code = main(pristine.commands(results)[command])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if code not in DOCUMENTED or any(path.read_bytes() != content for path, content in before.items()):
        return f"exit code {code}, or another run was changed"
    if not readable and (code == 0) == (command in OF_THE_VICTIM and command != "score"):
        return f"exit code {code} though the record is damaged"
    return ""


def test_damage_stays_where_it_is(pristine: Pristine, tmp_path: Path) -> None:
    """A damaged file ends no command in a traceback, changes no other run, and hides no other run from a table."""
    chance, commands, failed = random.Random(SEED), list(pristine.commands(pristine.results)), []
    kinds = (list(damaged_records(pristine)), list(damaged_files(pristine)))
    cases = [case for kind, number in zip(kinds, SAMPLED, strict=True) for case in chance.sample(kind, number)]
    for number, (name, file, damage) in enumerate(cases):
        command = commands[number % len(commands)]
        if problem := check(pristine, tmp_path / "results", file, damage, command):
            failed.append(f"{command} with {name}: {problem}")
        shutil.rmtree(tmp_path / "results")
    assert not failed, "\n".join(failed)


def test_a_damaged_record_is_left_out_in_one_line(
    pristine: Pristine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables name it once and have all other runs."""
    shutil.copytree(pristine.results, tmp_path / "results", symlinks=True)
    path = tmp_path / "results" / pristine.victim / "record.json"
    cut_in_half(path)
    for command in ("leaderboard", "precision", "ledger", "against"):
        assert main(pristine.commands(tmp_path / "results")[command]) == 0
        out, err = capsys.readouterr()
        (line,) = [line for line in err.splitlines() if str(path) in line]
        assert line.startswith(f"left out: {path}: not a run's record (")
        assert all(run.name[:8] in out for run in (tmp_path / "results" / "runs" / "jsonl" / "lead").iterdir())


def test_every_damaged_record_is_read_or_refused(pristine: Pristine, tmp_path: Path) -> None:
    """Every field with every junk value: the record is read, or refused in one line that names the file."""
    path = tmp_path / "record.json"
    for _, _, damage in damaged_records(pristine):
        damage(path)
        refused = f"{path}: "
        try:
            RunRecord.read(tmp_path)
        except DataError as error:
            refused = str(error)
        assert refused.startswith(f"{path}: ")
        assert len(refused.splitlines()) == 1
