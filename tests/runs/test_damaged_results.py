"""Damaged files under `results/`: each is named in one line, and no other run suffers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.toys import write_jsonl

from longsumbench.cli.main import main

DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "a list": lambda path: path.write_bytes(b"[1, 2]"),
    "nested": lambda path: path.write_bytes(b"[" * 100_000 + b"]" * 100_000),
}
OPTIONS = (list[str](), ["jsonl", "--against", "length"])


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[Path]:
    """The folders of three runs, the victim last."""
    words = [
        "dataset=jsonl",
        f"dataset.path={write_jsonl(tmp_path / 'texts')}",
        f"results_dir={tmp_path / 'results'}",
    ]
    words += ["baselines=false", "score.resamples=100"]
    assert main(["run", "-m", "model=lead", "model.length=3,5", *words]) == 0
    assert main(["run", "model=random", "model.length=5", *words]) == 0
    capsys.readouterr()
    return sorted((tmp_path / "results").glob("runs/jsonl/*/*"))


def damages(path: Path) -> Iterator[str]:
    """Damage a file in each way; at the end it is as it was."""
    content = path.read_bytes()
    for name, damage in DAMAGES.items():
        damage(path)
        yield name
        path.write_bytes(content)


def test_a_damaged_record_is_left_out_in_one_line(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables name it once and have all other runs; a command on that run ends with one line."""
    *others, victim = runs
    where = ["--results-dir", str(tmp_path / "results")]
    for damage in damages(victim / "record.json"):
        for options in OPTIONS:
            assert main(["leaderboard", *options, *where]) == 0
            out, err = capsys.readouterr()
            (line,) = [line for line in err.splitlines() if str(victim) in line]
            assert line.startswith(f"left out: {victim / 'record.json'}: not a run's record ("), (
                damage
            )
            assert all(run.name[:8] in out for run in others)
        for words in (["compare", str(others[0]), str(victim)], ["inspect", str(victim), "0"]):
            assert main([*words, *where]) == 3
            (line,) = capsys.readouterr().err.splitlines()
            assert f"{victim / 'record.json'}: not a run's record (" in line


def test_another_damaged_file_ends_no_command_in_a_traceback(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands that need the file end with a documented exit code, and no other run is changed."""
    *others, victim = runs
    files = [path for run in others for path in run.rglob("*") if path.is_file()]
    before = [path.read_bytes() for path in files]
    where = ["--results-dir", str(tmp_path / "results")]
    for name in ("scores.csv", "predictions.jsonl"):
        for damage in damages(victim / name):
            for words in (
                ["leaderboard"],
                ["compare", str(others[0]), str(victim)],
                ["inspect", str(victim), "0"],
            ):
                assert main([*words, *where]) in (0, 2, 3, 4), (name, damage)
                assert "Traceback" not in capsys.readouterr().err
    assert [path.read_bytes() for path in files] == before
