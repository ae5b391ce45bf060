"""Many processes that finish at once lose nothing, and their table is the same in any order."""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.run_records import measured, record
from support.toys import next_line, start_python

from longsumbench.leaderboards import table as leaderboard
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

PROCESSES, OWN, COMMON = 8, 4, 4  # each writes runs of its own, and again those that all the others write
WRITERS = """
import os, sys
from dataclasses import replace
from pathlib import Path
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

root, processes, own, common = Path(sys.argv[1]), *map(int, sys.argv[3:])
results, pattern = Results(root), RunRecord.read(Path(sys.argv[2]))
for number in range(processes):
    if os.fork() == 0:
        assert "torch" not in sys.modules
        sys.stdin.readline()  # all begin at once, when the other end is closed
        for turn in range(own + common):
            name = f"{number:02d}-{turn}" if turn < own else f"all-{turn}"
            size = (number * 7919 + turn * 104729) % 50_000
            made = replace(pattern, run_id=name, corpus={"size": size, "text": "x" * size}, command=(str(number),))
            made.write(results.run_folder(made))
        os._exit(0)
print("ready", flush=True)
codes = [os.waitpid(-1, 0)[1] for _ in range(processes)]
print("torch" in sys.modules, sum(codes))
"""
UPDATERS = """
import os, sys
from dataclasses import replace
from pathlib import Path
from longsumbench.leaderboards.table import update_table
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

results, pattern, processes = Results(Path(sys.argv[1])), RunRecord.read(Path(sys.argv[2])), int(sys.argv[3])
for number in range(processes):
    if os.fork() == 0:
        sys.stdin.readline()
        for turn in range(2):
            made = replace(pattern, run_id=f"{number:02d}{turn}")
            made.write(results.run_folder(made))
            update_table(results, made.dataset)
        os._exit(0)
print("ready", flush=True)
print(sum(os.waitpid(-1, 0)[1] for _ in range(processes)))
"""


@pytest.fixture
def pattern(tmp_path: Path) -> Path:
    """The folder of a record that processes make theirs of."""
    record("lead", 20.0).write(tmp_path / "pattern")
    return tmp_path / "pattern"


def ended(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Let the processes begin, and yield until all have ended."""
    assert process.stdin is not None
    process.stdin.close()
    while process.poll() is None:
        yield


def test_several_writers_lose_nothing(tmp_path: Path, pattern: Path) -> None:
    """Processes without torch write records at once: a reader sees whole ones only, and in the end all runs'."""
    results = Results(tmp_path / "results")
    process = start_python(WRITERS, results.root, pattern, PROCESSES, OWN, COMMON)
    assert next_line(process) == "ready"
    seen: set[str] = set()
    reads = 0
    for _ in ended(process):
        found = list(results.records("arxiv"))  # raises where one is torn
        assert all(one.corpus["size"] == len(one.corpus["text"]) for one in found)
        assert seen <= {one.run_id for one in found}  # what was there stays
        seen |= {one.run_id for one in found}
        reads += 1
    assert process.stdout is not None
    assert process.stdout.read().split() == ["False", "0"]
    process.stdout.close()
    written = {one.run_id: one for one in results.records("arxiv")}
    own = {f"{number:02d}-{turn}" for number in range(PROCESSES) for turn in range(OWN)}
    assert set(written) == own | {f"all-{turn}" for turn in range(OWN, OWN + COMMON)}
    for one in written.values():
        number, turn = int(one.command[0]), int(one.run_id.rpartition("-")[2])
        assert one.corpus["size"] == (number * 7919 + turn * 104729) % 50_000
    assert reads > 0
    assert {path.name for path in results.root.rglob("*") if path.is_file()} == {"record.json"}


def test_the_last_table_holds_all(tmp_path: Path, pattern: Path) -> None:
    """Eight processes write runs and rebuild the table at once; when all have ended, the table holds every run."""
    results = Results(tmp_path / "results")
    process = start_python(UPDATERS, results.root, pattern, 8)
    assert next_line(process) == "ready"
    for _ in ended(process):
        pass
    assert process.stdout is not None
    assert process.stdout.read().strip() == "0"
    process.stdout.close()
    table = (results.root / "leaderboard" / "arxiv.csv").read_text(encoding="utf-8").splitlines()
    column = table[0].split(",").index("run_id")
    assert {line.split(",")[column] for line in table[1:]} == {f"{n:02d}{turn}" for n in range(8) for turn in range(2)}
    leaderboard.update_table(results, "arxiv")
    assert (results.root / "leaderboard" / "arxiv.csv").read_text(encoding="utf-8").splitlines() == table


def many() -> list[RunRecord]:
    """Records of several groups, some of which differ in nothing that is shown but their ids."""
    records = [record(model, 20.0 + score, seed=1, run_id=f"{model}{score}") for model in "abc" for score in (0, 1, 1)]
    records += [record("a", 20.0, seed=seed, run_id=f"tied{seed}") for seed in (1, 2, 3)]
    records += [record("a", 20.0, seed=1, run_id=f"same{number}") for number in range(3)]
    records += [record("b", 25.0, split="validation", run_id="validation"), record("b", 25.0, n=7, run_id="seven")]
    records += [record("oracle", 50.0, oracle=True, run_id="oracle")]
    records += [record("c", 20.0, measures=measured({"recall": 5.0}), run_id="measured")]
    return records


def files_of(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / "leaderboard").iterdir()}


@pytest.mark.parametrize("seed", range(2))
def test_the_table_does_not_depend_on_the_order(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same records, written in any order, at any time, and listed by the disk in any order: the same bytes."""
    chance, usual = random.Random(seed), Path.glob
    for name in ("one", "other"):
        root, records = tmp_path / name, many()
        if name == "other":
            chance.shuffle(records)
            monkeypatch.setattr(Path, "glob", lambda self, what: shuffled(usual(self, what), chance))
        for made in records:
            folder = Results(root).run_folder(made)
            made.write(folder)
            os.utime(folder / "record.json", (chance.random() * 1e9, chance.random() * 1e9))
            if chance.random() < 0.2:
                leaderboard.update_table(Results(root), "arxiv")
        leaderboard.update_table(Results(root), "arxiv")
    assert {"arxiv.csv", "arxiv.md", "arxiv.tex"} <= set(files_of(tmp_path / "one"))
    assert files_of(tmp_path / "one") == files_of(tmp_path / "other")


def shuffled(paths: Iterator[Path], chance: random.Random) -> list[Path]:
    return sorted(paths, key=lambda _: chance.random())
