"""Damaged files under `results/`: each is named in one line, and no other run suffers."""

from pathlib import Path

import pytest
from support.toys import toy_words

from longsumbench.cli.main import main


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[Path]:
    """The folders of three runs, the victim last."""
    words = toy_words(tmp_path)
    assert main(["run", "-m", "model=lead", "model.length=3,5", *words]) == 0
    assert main(["run", "model=random", "model.length=5", *words]) == 0
    capsys.readouterr()
    return sorted((tmp_path / "results").glob("runs/jsonl/*/*"))


@pytest.mark.parametrize("name", ["record.json", "scores.csv", "predictions.jsonl"])
def test_a_damaged_file_harms_its_run_alone(
    name: str, runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables have all other runs; commands on the run end in one line, and a record that cannot be read is named."""
    *others, victim = runs
    path, where = victim / name, ["--results-dir", str(tmp_path / "results")]
    problem = f"{path}: not a run's record ("
    path.write_bytes(path.read_bytes()[:-20])
    assert main(["leaderboard", *where]) == 0
    out, err = capsys.readouterr()
    assert all(run.name[:8] in out for run in others)
    assert (f"left out: {problem}" in err) == (name == "record.json")
    for words in (["compare", str(others[0]), str(victim)], ["inspect", str(victim), "0"]):
        assert main([*words, *where]) in ((3,) if name == "record.json" else (0, 2, 3))
        err = capsys.readouterr().err
        assert "Traceback" not in err
        assert (problem in err) == (name == "record.json")
