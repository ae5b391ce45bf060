"""A table is made of what is finished, after running what is missing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.paper_tables import TOYS, offer, toy_paper_table
from support.toys import write_jsonl

from longsumbench.errors import EnvironmentProblem, PointsFailed, UsageError
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.command import paper
from longsumbench_reproduction.papers.page_model import PaperPageFile, read_written
from longsumbench_reproduction.papers.paper_tables import PaperRow

RANDOM = "longsumbench.models.baselines.system.Random.summarize"


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words that give the texts of the tables toy-table1 and toy-table2, which share the row Random."""
    other = toy_paper_table(
        "toy-table2", rows={"Chance": PaperRow("model=random"), "Oracle": PaperRow("model=oracle")}
    )
    offer(monkeypatch, toy_paper_table(), other)
    return [f"path.toys={write_jsonl(tmp_path / 'texts')}", "score.resamples=100"]


def make(
    folder: Path, words: Sequence[str], name: str = "toy-table1", run: bool = True
) -> list[Path]:
    """Make a table with the results folder `folder / "r"`."""
    return [*paper(name, words, run, folder / "r").files]


def written(folder: Path, name: str = "toy-table1") -> PaperPageFile:
    """Return what the files of a table show."""
    found = read_written(Results(folder / "r"), name)
    assert found is not None
    return found


def finish_times(folder: Path) -> dict[str, int]:
    """Return run id → time of its record."""
    records = folder.glob("r/runs/*/*/*/record.json")
    return {path.parent.name: path.stat().st_mtime_ns for path in records}


def test_settings_may_be_typed_or_arguments(typed: list[str], tmp_path: Path) -> None:
    """Both make the same page, also of texts in a folder whose name has a blank; it shows what the command prints."""
    folder = write_jsonl(tmp_path / "my texts")
    settings: dict[str, Any] = {"path": {"toys": folder}, "score": {"resamples": 100}}
    given = paper("toy-table1", results_dir=tmp_path / "r", **settings)
    words = [f"path.toys={folder}", "score.resamples=100"]
    again = paper("toy-table1", words, False, tmp_path / "r")
    assert again.job.missing == []
    assert given.render() == again.render()
    assert "Lead and Random" in again.render()


def test_tables_share_runs(typed: list[str], tmp_path: Path) -> None:
    """A run of two tables is run once, and a table that is complete runs nothing."""
    make(tmp_path, typed)
    before = finish_times(tmp_path)
    make(tmp_path, typed, "toy-table2")
    after = finish_times(tmp_path)
    assert {run: after[run] for run in before} == before
    assert len(after) == len(before) + 1  # Oracle
    shared = set(written(tmp_path).runs) & set(written(tmp_path, "toy-table2").runs)
    assert len(shared) == 2
    make(tmp_path, typed)
    assert finish_times(tmp_path) == after


def test_a_failed_run_is_continued_by_the_same_command(
    typed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are on the page; the next command runs only what is missing."""

    def exhausted(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(RANDOM, exhausted)
        with pytest.raises(PointsFailed, match="out of memory"):
            make(tmp_path, typed)
    assert written(tmp_path).missing == ("Random on Toys seed=1", "Random on Toys seed=2")
    (lead,) = before = finish_times(tmp_path)
    assert list(written(tmp_path).runs) == [lead]
    make(tmp_path, typed)
    assert written(tmp_path).missing == ()
    assert finish_times(tmp_path)[lead] == before[lead]


def test_texts_out_of_reach(
    typed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs on other texts are made, and the error names the word to type; without any texts no page is written."""

    def unreachable(*_: object) -> None:
        raise EnvironmentProblem("no network")

    monkeypatch.setattr(
        "longsumbench_reproduction.papers.run_planning.check_copy_or_network", unreachable
    )
    far = {"arXiv": {"probe": "dataset=arxiv"}}
    both = toy_paper_table("both", datasets={**TOYS, **far})
    offer(monkeypatch, both, toy_paper_table("far", datasets=far))
    with pytest.raises(PointsFailed, match=r"4 runs not started: .*add path.arxiv=FOLDER"):
        make(tmp_path, typed, "both")
    assert len(written(tmp_path, "both").runs) == 3
    with pytest.raises(EnvironmentProblem, match=r"add path.arxiv=FOLDER"):
        make(tmp_path, [], "far")
    assert read_written(Results(tmp_path / "r"), "far") is None


def test_finished_runs_need_no_texts(
    typed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of outputs asks the sweep to complete finished runs; if their texts are gone, it shows what is there."""
    make(tmp_path, typed)
    monkeypatch.setattr("longsumbench_reproduction.papers.command.SHOWS_OUTPUTS", {"scores"})
    (tmp_path / "r" / "papers" / "toy-table1.md").unlink()
    make(tmp_path, typed[1:])  # the texts are files, and no folder is named
    assert len(written(tmp_path).runs) == 3
    assert (tmp_path / "r" / "papers" / "toy-table1.md").is_file()
    with pytest.raises(UsageError, match=r"add path.toys=FOLDER"):
        make(tmp_path, ["score.resamples=200"])


def test_no_sweeper_chooses_settings(typed: list[str], tmp_path: Path) -> None:
    """A table has its settings, so that no sweeper chooses them."""
    with pytest.raises(UsageError, match="hydra/sweeper=optuna chooses settings"):
        make(tmp_path, [*typed, "hydra/sweeper=optuna"])
