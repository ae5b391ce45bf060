"""Packed runs: nothing is lost by packing; read as folders are, the same bytes for the same runs, safe to unpack."""

import csv
import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from support.commands import Command
from support.paths import ROOT
from support.toys import toy_words

import longsumbench
from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cache.locks import exclusive_lock
from longsumbench.cli.main import main
from longsumbench.runs import bundles
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results, find_stage, split_read_by
from longsumbench.runs.run_list import list_runs
from longsumbench.runs.run_names import hide_folders

RUN = ["run", "dataset.name=mine"]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, and with finished runs of Lead and Random and an interrupted one in `results`."""
    folder = tmp_path_factory.mktemp("toy")
    words = [*RUN, *toy_words(folder)]
    assert [main([*words, f"model={name}"]) for name in ("lead", "random")] == [0, 0]
    shutil.copytree(
        run_folder(folder, "lead"),
        begun := folder / "results/runs/mine/lead/0123456789ab",
        symlinks=True,
    )
    (begun / "record.json").unlink()
    return folder


@pytest.fixture
def work(toy: Path, here: Path) -> Path:
    """A copy of that results folder, with the table of its runs; the current folder is the one above."""
    shutil.copytree(toy / "results", here / "results", symlinks=True)
    assert main(["leaderboard"]) == 0
    return here


def run_folder(folder: Path, model: str) -> Path:
    """The folder of the finished run of a model."""
    (record,) = folder.glob(f"results/runs/mine/{model}/*/record.json")
    return record.parent


def pack_alone() -> None:
    """Pack the runs of `results`, and delete their folders."""
    assert main(["runs", "pack"]) == 0
    for path in Path("results/runs").glob("*/*/*/record.json"):
        shutil.rmtree(path.parent)


def read_contents(folder: Path) -> dict[str, bytes]:
    """Name → content of the files of a run, or of the tables."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {
        path.as_posix(): (folder / path).read_bytes() for path in paths if path.parts[0] != "work"
    }


def test_packed_runs_are_read_as_folders_are(work: Path, run_command: Command) -> None:
    """Packing deletes nothing. Without their folders, files, records, outputs and the table are the same."""
    everything = read_contents(Path("results/runs"))
    before = contents(work)
    line = run_command(0, "runs", "pack").out.splitlines()[-1]
    assert line.startswith("packed: 2 runs → results/bundles/mine.tar.xz (")
    assert read_contents(Path("results/runs")) == everything
    pack_alone()
    assert main(["leaderboard"]) == 0
    assert contents(work) == before


def contents(work: Path) -> list[object]:
    """Return all that is read of the runs of `results`."""
    results = Results(Path("results"))
    found: list[object] = [read_contents(Path("results/leaderboard"))]
    for run in results.records("mine"):
        outputs = longsumbench.load_outputs(run)["prediction"].to_list()
        files = read_contents(results.run_folder(run))
        del files["record.json"], files["config.yaml"]  # they have no paths in a bundle
        found += [hide_folders(run), outputs, files]
    return [*found, [(each.model, each.state, each.score) for each in list_runs(results)]]


def test_the_same_runs_give_the_same_bytes(work: Path) -> None:
    """Also when a run joins a bundle later; the index lists each run once, and a second packing changes nothing."""
    random = run_folder(work, "random")
    shutil.move(random, work / "aside")
    assert main(["runs", "pack"]) == 0
    shutil.move(work / "aside", random)
    assert main(["runs", "pack"]) == 0
    packed = read_contents(Path("results/bundles"))
    shutil.rmtree("results/bundles")
    for _ in range(2):
        assert main(["runs", "pack"]) == 0
        assert read_contents(Path("results/bundles")) == packed
    rows = list(csv.DictReader(io.StringIO(packed["mine.csv"].decode())))
    facts = [(row["model"], row["ranked_by"], row["n"]) for row in rows]
    assert facts == [("lead", "rougeLsum", "8"), ("random", "rougeLsum", "8")]
    assert len({row["digest"] for row in rows}) == 2


def test_no_command_changes_a_packed_run(work: Path, run_command: Command) -> None:
    """It counts as finished. What would change it is refused in a line, whose command unpacks it."""
    run = run_folder(work, "lead")
    pack_alone()
    copy = read_contents(Results(Path("results")).find(run.name))
    same = [*RUN, *toy_words(work), "model=lead"]
    assert "already finished" in run_command(0, *same).err
    for change in ("name=renamed", "score.metrics=[repetition]"):
        *_, line = run_command(2, *same, change).err.splitlines()
        assert f"the run {run.name} is packed, and no command changes it; unpack it first: " in line
    assert read_contents(Results(Path("results")).find(run.name)) == copy
    assert [path.name for path in Path("results/runs").glob("*/*/*")] == ["0123456789ab"]
    subprocess.run(["sh", "-c", line.partition("unpack it first: ")[2]], check=True)
    assert read_contents(run) == copy
    run_command(0, *same, "name=renamed")


def test_a_packed_run_is_not_replaced_by_less(work: Path, run_command: Command) -> None:
    """A folder that lacks a packed file, or is being changed, does not replace the packed run; a line says so."""
    run, pack = run_folder(work, "lead"), ("runs", "pack")
    run_command(0, *pack)
    packed, scores = read_contents(Path("results/bundles")), run / "scores.csv"
    scores.unlink()
    line = "lacks scores.csv, which is packed: the packed run stays as it is"
    assert line in run_command(0, *pack).err
    scores.write_text("half")
    with exclusive_lock(run / "work" / ".lock"):
        assert "is running (process " in run_command(0, *pack).err
    assert read_contents(Path("results/bundles")) == packed


@pytest.mark.parametrize("kind", ["changed", "added", "index"])
def test_what_was_changed_after_packing_is_refused(
    kind: str, work: Path, toy: Path, run_command: Command
) -> None:
    """Neither a digit or a run in the copy in the cache nor one in the index of a bundle can be changed unseen."""
    pack_alone()
    copy = Results(Path("results")).unpack("mine")
    assert copy is not None
    record = next(copy.rglob("record.json"))
    path = Path("results/bundles/mine.csv") if kind == "index" else record
    if kind == "added":
        shutil.copytree(record.parent, record.parent.with_name("f" * 12))
        path = copy
    else:
        text = path.read_text()
        digit = text.rindex("1")
        path.write_text(f"{text[:digit]}2{text[digit + 1 :]}")
    problem = (
        "not the index of the runs" if kind == "index" else "this copy of packed runs is damaged"
    )
    error = run_command(3, "verify", "results").err
    assert f"{copy if kind == 'changed' else path}: {problem}" in error
    if kind == "index":
        path.unlink()
    else:
        shutil.rmtree(copy)
    words = ("verify", "results", "--dataset-path", toy / "toy")
    assert problem not in run_command(0, *words).err


def test_a_finished_folder_replaces_the_packed_run(work: Path) -> None:
    """A run that is in both is read from its folder, and packed from there; an unfinished folder hides nothing."""
    run, results = run_folder(work, "lead"), Results(Path("results"))
    assert main(["runs", "pack"]) == 0
    (run / "scores.csv").write_text("changed")
    assert results.find(run.name).resolve() == run
    assert len(list(results.records("mine"))) == 2
    assert main(["runs", "pack"]) == 0
    (run / "record.json").unlink()
    packed = Results(Path("results")).find(run.name)
    assert not packed.is_relative_to(results.root)
    assert (packed / "scores.csv").read_text() == "changed"


Member = tuple[tarfile.TarInfo, io.BufferedIOBase | None]


def member(name: str, content: bytes = b"x", **fields: object) -> Member:
    """A file in a bundle."""
    info = tarfile.TarInfo(f"runs/mine/lead/1/{name}")
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, io.BytesIO(content)


MUCH = 3_000_000  # bytes, more than a bundle may hold in these tests
HOSTILE: dict[str, tuple[list[Member], str]] = {
    "a place above": ([member("../../../../x")], "is not a file of a run on mine"),
    "a link": (
        [member("x", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd")],
        "is not a file of a run on mine",
    ),
    "a long name": ([member("n" * 5_000)], "the name is too long, or another file has it"),
    "a part of another machine": ([member("work/.lock")], "is not a file of a run on mine"),
    "much": ([member("a", bytes(MUCH))], "hold more than 1.0 MB: runs cannot be packed so tightly"),
    "a large header": (
        [member("a", pax_headers={"comment": "a" * MUCH})],
        "is damaged (a header of 3.0 MB)",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_bundle_is_refused_in_one_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_command: Command
) -> None:
    """Whatever a bundle holds, its name and one reason are printed, and nothing of it stays."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(bundles, "_SMALL_CONTENT", 1_000_000)
    monkeypatch.setattr(bundles, "_MOST_CONTENT", 2)
    members, problem = HOSTILE[kind]
    with tarfile.open(tmp_path / "mine.tar.xz", "w:xz") as archive:
        for info, content in members:
            archive.addfile(info, content)
    for _, content in members:
        if content is not None:
            content.seek(0)
    line, _ = run_command(
        3, "merge", tmp_path / "mine.tar.xz", "--results-dir", tmp_path / "results"
    ).err.splitlines()
    assert line.startswith(f"left out: {tmp_path / 'mine.tar.xz'}: ")
    assert problem in line
    assert len(line) < 600
    assert not [path for path in tmp_path.rglob("*") if "lead" in path.parts]


def test_published_bundles_have_no_texts_of_others() -> None:
    """The published bundles have scores, records and settings; of generated reports and free outputs also texts."""
    for bundle in (ROOT / "results/reference/bundles").glob("*.tar.xz"):
        with tarfile.open(bundle) as archive:
            files = {name.rsplit("/", 1)[-1] for name in archive.getnames()}
        allowed = {"config.yaml", "record.json", "scores.csv"}
        # The outputs of compressed caches are under the MIT licence (docs/compressed-caches.md); those of `strategies.py`
        # were written here by free models, and the sessions of `compaction.py` are made up.
        if bundle.name.startswith(("probe.", "caches_", "strategies_", "compaction.")):
            allowed.add("predictions.jsonl")
        # Planted facts, and a free model's answers of a few words.
        if bundle.name.startswith("answers_"):
            allowed |= {"verdicts-answers.jsonl", "verdicts-fact_survival.jsonl"}
        assert bundle.name == "probe.tar.xz" or files <= allowed, bundle


def test_a_link_in_work_is_followed_to_finished_stages_only(work: Path) -> None:
    """Another person's run may link to private folders there: these are not read as texts or weights of the run."""
    run = run_folder(work, "lead")
    corpus = find_stage(run, "corpus")
    assert corpus.is_symlink()
    (private := work / "private").mkdir()
    for file in corpus.iterdir():
        shutil.copy(file, private)
    (private / "checksums.json").unlink()
    corpus.unlink()
    corpus.symlink_to(private)
    assert not find_stage(run, "corpus").exists()
    assert split_read_by(run, RunRecord.read(run)) is None
