"""Searches over settings: Optuna asks for one point after the other."""

import re
from pathlib import Path

import pytest
from support.commands import Command
from support.sweeping import untrained
from support.toys import write_jsonl

from longsumbench.cli.main import main
from longsumbench.runs.record import RunRecord

OPTUNA = ["hydra/sweeper=optuna", "model=lead", "baselines=false"]


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The overrides of points that take no training."""
    return untrained(write_jsonl(tmp_path / "toy"), tmp_path)


def test_a_search_is_continued(words: list[str], tmp_path: Path, log_lines: list[str]) -> None:
    """Optuna asks for points by their score; the same command asks for the same ones, which are finished."""
    search = [
        *OPTUNA,
        "hydra.sweeper.n_trials=3",
        "model.length=choice(1,2,4,6)",
        "dataset.split=validation",
    ]
    assert main(["run", "-m", *words, *search]) == 0
    done = [RunRecord.read(path.parent) for path in (tmp_path / "r").rglob("record.json")]
    assert {one.config.model["length"] for one in done} <= {"1", "2", "4", "6"}
    assert f"{len(done)} runs: {len(done)} done, 0 found finished, 0 failed" in log_lines
    assert main(["run", "-m", *words, *search]) == 0
    assert f"{len(done)} runs: 0 done, {len(done)} found finished, 0 failed" in log_lines


def test_an_invalid_point_of_a_search_ends_nothing(words: list[str], log_lines: list[str]) -> None:
    """Its reason is logged, and it counts as a trial without a score."""
    search = [*OPTUNA, "hydra.sweeper.n_trials=6", "model.length=choice(-1,4)"]
    assert main(["run", "-m", *words, *search]) == 0
    assert any(line.startswith("no score: model.length=-1") for line in log_lines)
    assert any(line.startswith("the search goes by the test split") for line in log_lines)


def test_a_search_whose_points_fail_has_failed(tmp_path: Path, run_command: Command) -> None:
    """As with any sweep, exit code 1 and each reason; a point is named by what is searched."""
    words = untrained(write_jsonl(tmp_path / "toy", train=0, validation=0), tmp_path)
    search = [
        *OPTUNA,
        "model=trunc",
        "hydra.sweeper.n_trials=2",
        "model.snippet_length=choice(16,32)",
        "scale=tiny",
    ]
    said = run_command(1, "run", "-m", *words, *search).err
    assert re.search(r"of [12] runs? failed", said)
    assert re.search(
        r"^model\.snippet_length=\d\d  .*learns from a training split", said, flags=re.M
    )
