"""Damaged files under `results/`: each is named in one line, and no other run suffers."""

from pathlib import Path

import pytest
from support.commands import Command
from support.run_records import record, write_run

from longsumbench.core import Summary


@pytest.mark.parametrize("name", ["record.json", "scores.csv", "predictions.jsonl"])
def test_a_damaged_file_harms_its_run_alone(
    name: str, tmp_path: Path, run_command: Command
) -> None:
    """Tables have all other runs; commands on the run end in one line, and a record that cannot be read is named."""
    outputs = [Summary(example, "A summary.") for example in "ab"]
    runs = [record(model, 30, n=2) for model in ("ca", "lead", "random")]
    *others, victim = (write_run(tmp_path, run, outputs, [0.2, 0.4]) for run in runs)
    path, place = victim / name, ("--results-dir", tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    screen = run_command(0, "leaderboard", *place)
    assert all(run.name[:8] in screen.out for run in others)
    problem, is_record = f"{path}: not a run's record (", name == "record.json"
    assert (f"left out: {problem}" in screen.err) == is_record
    of_inspect = 0 if name == "predictions.jsonl" else 3  # its first line is whole
    commands = {("compare", others[0], victim): 3, ("inspect", victim, "0"): of_inspect}
    for words, code in commands.items():
        error = run_command(code, *words, *place).err
        assert "Traceback" not in error
        assert (problem in error) == is_record
