"""The name that a user gives a run: tables show it, and it decides nothing."""

from pathlib import Path

from support.toys import write_jsonl

from longsumbench.cli.main import main
from longsumbench.runs.results import Results


def test_a_name_decides_nothing(here: Path) -> None:
    """A finished run that is named, or renamed, keeps its id and its outputs."""
    write_jsonl(here / "toy")
    words = ["run", "model=lead", "dataset=jsonl", "dataset.path=toy", "model.length=9"]
    names, runs = [], set()
    for name in ([], ["name=short one"], ["name=nine"], []):
        assert main([*words, *name]) == 0
        run, *_ = Results(Path("results")).records("jsonl")
        names.append(run.config.name)
        runs.add((run.run_id, run.finished))
    assert (names, len(runs)) == ([None, "short one", "nine", "nine"], 1)
