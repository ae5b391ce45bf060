"""Merged results: the tables of the whole from its halves in any order, conflicts named, nothing overwritten."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support.commands import Typed
from support.json_files import change_json, read_json
from support.paths import ROOT
from support.permissions import heeded
from support.toys import write_jsonl
from support.waiting import PATIENCE

from longsumbench.cache.locks import lock_holder
from longsumbench.cli.main import main
from longsumbench.runs.results import finished_folders

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a sweep on one dataset, with its baselines, and of two systems on another."""
    folder = tmp_path_factory.mktemp("whole")
    texts, results = write_jsonl(folder / "texts"), folder / "results"
    words = ["dataset=jsonl", f"dataset.path={texts}", f"results_dir={results}"]
    words.append("score.resamples=100")
    sweep = ["scale=tiny", "model=random,lexrank,oracle", "seed=1,2", "model.length=20"]
    assert main(["run", "-m", *words, "dataset.name=mine", *sweep]) == 0
    assert main(["run", *words, "dataset.name=other", "model=lead"]) == 0
    return results


@pytest.fixture
def halves(whole: Path, here: Path) -> list[Path]:
    """Two results folders, each with every other run of the whole; the current folder is the one above."""
    runs = finished_folders(whole)
    return [copy_runs(runs[start::2], Path(name)) for start, name in enumerate(("first", "second"))]


def copy_runs(runs: list[Path], results: Path) -> Path:
    """Copy runs into a results folder."""
    (results / "runs").mkdir(parents=True, exist_ok=True)
    for run in runs:
        shutil.copytree(run, results.joinpath("runs", *run.parts[-3:]), symlinks=True)
    return results


def tables_of(results: Path) -> dict[str, bytes]:
    """Name → content of the tables."""
    return {path.name: path.read_bytes() for path in (results / "leaderboard").iterdir()}


def files_of(results: Path) -> dict[Path, tuple[bytes, int]]:
    """Path → content and time of all files of runs."""
    files = [path for path in (results / "runs").rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@settings(max_examples=4)
@given(data=st.data())
def test_parts_give_the_tables_of_the_whole(
    data: st.DataObject, whole: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Every run is in one, two or three folders, in any order, some of them packed: csv, md, tex and pictures agree."""
    folder, runs = tmp_path_factory.mktemp("parts"), finished_folders(whole)
    places = [data.draw(st.sets(st.sampled_from("abc"), min_size=1)) for _ in runs]
    parts: list[Path] = []
    for name in "abc":
        here = [run for run, names in zip(runs, places, strict=True) if name in names]
        part = copy_runs(here, folder / name)
        kind = data.draw(st.sampled_from(["runs", "packed", "bundles"]))
        if kind != "runs":
            assert main(["runs", "pack", "--results-dir", f"{part}"]) == 0
            shutil.rmtree(part / "runs")
        parts += part.glob("bundles/*.tar.xz") if kind == "bundles" else [part]
    sources, merged = data.draw(st.permutations(parts)), folder / "merged"
    assert main(["merge", *map(str, sources), "--results-dir", f"{merged}"]) == 0
    assert tables_of(merged) == tables_of(whole)


def test_merging_again_changes_nothing(halves: list[Path], typed: Typed, whole: Path) -> None:
    """Lines count the runs, the second time those that are there; origin.json says where each came from."""
    code, out, _ = typed("merge", *halves)
    numbers = {half: len(finished_folders(half)) for half in halves}
    lines = [f"{half}: {number} runs merged, 0 already there" for half, number in numbers.items()]
    assert (code, out.splitlines()) == (0, lines)
    files, tables = files_of(Path("results")), tables_of(Path("results"))
    assert tables == tables_of(whole)
    for half in halves:
        for run in finished_folders(half):
            origin = Path("results").joinpath("runs", *run.parts[-3:], "origin.json")
            assert read_json(origin) == {"merged_from": f"{half}"}
            copied = {path.name for path in origin.parent.iterdir()}
            assert copied == {path.name for path in run.iterdir()} - {"work"} | {"origin.json"}
    code, out, _ = typed("merge", *halves)
    lines = [f"{half}: 0 runs merged, {number} already there" for half, number in numbers.items()]
    assert out.splitlines() == lines
    assert (code, files_of(Path("results")), tables_of(Path("results"))) == (0, files, tables)


def test_the_same_run_with_other_costs_is_the_same_run(halves: list[Path], typed: Typed) -> None:
    """Two machines made it: the first copy is kept."""
    first = finished_folders(halves[0])[0]
    other = copy_runs([first], Path("other"))
    (run,) = finished_folders(other)
    costs = {"peak_memory_gb": 99.0}
    change_json(run / "record.json", finished="2020-01-01T00:00:00+00:00", costs=costs)
    code, out, _ = typed("merge", halves[0], other)
    assert (code, out.splitlines()[1]) == (0, "other: 0 runs merged, 1 already there")
    kept = Path("results").joinpath("runs", *first.parts[-3:], "record.json")
    assert kept.read_bytes() == (first / "record.json").read_bytes()


def test_a_conflict_is_named_and_nothing_is_overwritten(halves: list[Path], typed: Typed) -> None:
    """One id with two contents: a line with the files and both places; all other runs are merged."""
    first = finished_folders(halves[0])[0]
    copy_runs([first], halves[1])
    run = halves[1].joinpath("runs", *first.parts[-3:])
    evaluation = read_json(run / "record.json")["evaluation"]
    evaluation["scores"]["rouge1"]["f"] += 1
    change_json(run / "record.json", evaluation=evaluation)
    with (run / "predictions.jsonl").open("a") as file:
        file.write("\n")
    before = files_of(halves[1])
    code, out, err = typed("merge", *halves)
    place = Path("results").joinpath("runs", *first.parts[-3:])
    assert err.splitlines() == [
        f"left out: {run}: predictions.jsonl and record.json differ from those of the same run in {place};"
        " neither is changed: delete one of the two runs",
        "longsumbench: left out: 1 of the runs and files (named above); all others are merged",
    ]
    assert (code, files_of(halves[1])) == (3, before)
    assert (place / "record.json").read_bytes() == (first / "record.json").read_bytes()
    number = len(finished_folders(halves[1])) - 1
    assert out.splitlines()[1] == f"second: {number} runs merged, 0 already there"


def torn(run: Path) -> str:
    (run / "record.json").write_text("{")
    return "not a run's record ("


def renamed(run: Path) -> str:
    run.rename(run.with_name("0123456789ab"))
    return "the record of another run, "


def began(run: Path) -> str:
    Path("results").joinpath("runs", *run.parts[-3:], "work").mkdir(parents=True)
    return "is unfinished: let it end, or delete it"


def unreadable(run: Path) -> str:
    (run / "scores.csv").chmod(0)
    return "cannot be copied ("


def linked_out(run: Path) -> str:
    Path("private.txt").write_text("private")
    (run / "predictions.jsonl").unlink()
    (run / "predictions.jsonl").symlink_to(Path("private.txt").absolute())
    return "predictions.jsonl: a link that leaves its folder, which is not followed: "


def too_deep(run: Path) -> str:
    with chdir(run):
        for _ in range(30):
            Path("a").mkdir()
            os.chdir("a")
    return "folders inside each other, more than 20: "


SPOILS = [torn, renamed, began, unreadable, linked_out, too_deep]


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_run_that_cannot_be_merged(
    spoil: Callable[[Path], str], halves: list[Path], typed: Typed
) -> None:
    """A line says why, all others are merged, and there is no trace of it."""
    run = finished_folders(halves[0])[0]
    number, problem = len(finished_folders(halves[0])), spoil(run)
    with heeded():
        code, out, err = typed("merge", *halves)
    assert out.splitlines()[0] == f"first: {number - 1} runs merged, 0 already there"
    assert code == 3
    assert problem in err.partition("\n")[0]
    assert len(err.splitlines()) == 2
    assert len(finished_folders(Path("results"))) == number - 1 + len(finished_folders(halves[1]))
    assert not list(Path("results").glob(".merge*"))
    assert not any(path.is_symlink() for path in Path("results").rglob("*"))


def test_merges_wait_for_each_other(
    halves: list[Path], typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge holds a lock while it copies, so that two equal ones do not meet in a run's folder."""
    holders = []

    def copy_locked(*words: Any, **options: Any) -> None:
        holders.append(lock_holder(Path("results/.merging.lock")))
        shutil_copytree(*words, **options)

    shutil_copytree = shutil.copytree
    monkeypatch.setattr(shutil, "copytree", copy_locked)
    assert typed("merge", halves[0])[0] == 0
    assert [holder.pid for holder in holders if holder] == [os.getpid()] * len(
        finished_folders(halves[0])
    )


def test_places_that_are_no_results(halves: list[Path], typed: Typed) -> None:
    """A folder, a file, a damaged bundle and nothing at all: a line each, and the rest is merged."""
    Path("empty").mkdir()
    Path("notes.txt").write_text("no bundle")
    code, out, err = typed("merge", "empty", "notes.txt", "nowhere", *halves)
    number = sum(len(finished_folders(half)) for half in halves)
    assert (code, len(out.splitlines())) == (3, 2)
    assert len(finished_folders(Path("results"))) == number
    empty, notes, nowhere, last = err.splitlines()
    assert empty.startswith("left out: empty: no results folder (with runs/ or bundles/), and no ")
    assert notes.startswith("left out: notes.txt: this bundle of runs is damaged (")
    assert nowhere.startswith("left out: nowhere: no results folder")
    assert last.startswith("longsumbench: left out: 3 of the runs and files (named above); all ")


def test_ctrl_c_leaves_no_half_copied_run(
    halves: list[Path], typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted while the second run is copied: only the first one is there, and the same command merges the rest."""
    copytree, folders = shutil.copytree, list[Path]()

    def interrupted(source: Path, target: Path, **options: Any) -> None:
        copytree(source, target, **options)
        folders.append(source)
        if len(folders) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("longsumbench.exchange.merge.shutil.copytree", interrupted)
        code, _, err = typed("merge", *halves)
    kept = "merged runs are kept, and the same command merges the others"
    assert (code, kept in err) == (130, True)
    assert [run.name for run in finished_folders(Path("results"))] == [folders[0].name]
    assert not list(Path("results").glob(".merge*"))
    assert typed("merge", *halves)[0] == 0
    assert len(finished_folders(Path("results"))) == sum(
        len(finished_folders(half)) for half in halves
    )


def test_marks_stay_behind(halves: list[Path], typed: Typed) -> None:
    """What somebody else verified is as reported here."""
    run = finished_folders(halves[0])[0]
    assert typed("verify", run)[0] == 0
    assert (run / "verified.json").is_file()
    assert typed("merge", *halves)[0] == 0
    assert not list(Path("results").rglob("verified.json"))


def test_no_run_is_lost_by_kills() -> None:
    """Packing and merging are killed at two moments and repeated; the benchmark has sixty moments."""
    command = [sys.executable, str(ROOT / "benchmarks" / "killed_exchange.py"), "--moments=2"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    lines = [line.partition(" of ")[0] for line in process.stdout.splitlines()]
    assert (process.returncode, lines) == (0, ["pack: lost 0", "merge: lost 0"]), process.stderr
