"""The name that a user gives a run: tables show it, and it decides nothing."""

from pathlib import Path

import pytest
from support.toys import write_jsonl

from longsumbench.cli.main import main
from longsumbench.runs.results import Results


def test_a_name_is_shown_and_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finished run that is named, or renamed, keeps its id and its outputs; its baselines have no name."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "toy")
    words = ["run", "model=lead", "dataset=jsonl", "dataset.path=toy", "model.length=9"]
    found = []
    for name in ([], ["name=short one"], ["name=nine"], []):
        assert main([*words, *name]) == 0
        (run,) = [
            one for one in Results(Path("results")).records("jsonl") if one.key.model == "lead"
        ]
        found.append((run.run_id, run.finished, run.config.name))
    assert {one[:2] for one in found} == {found[0][:2]}
    assert [one[2] for one in found] == [None, "short one", "nine", "nine"]
    capsys.readouterr()
    assert main(["leaderboard", "jsonl", "--columns", "rougeLsum"]) == 0
    printed = capsys.readouterr().out
    assert "nine, length=9" in printed
    assert printed.count("nine") == 1
