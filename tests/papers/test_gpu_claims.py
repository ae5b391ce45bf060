"""benchmarks/gpu_claims.py runs anywhere on a CPU, so that whoever has a GPU can rely on it."""

import sys
from pathlib import Path

import gpu_claims
import pytest
from support.paper_tables import offer, toy_paper_table
from support.toys import tiny_overrides, write_jsonl

from longsumbench.papers.paper_tables import PaperRow
from longsumbench.runs.results import Results


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of two tables of Trunc with two seeds; the second has the runs of the first."""
    texts = write_jsonl(tmp_path / "texts")
    _, _, _, _, *settings = tiny_overrides(texts, steps=2)
    rows = {"Trunc": PaperRow("model=trunc")}
    scales = {"probe": "scale=tiny seed=1,2", "paper": "scale=tiny"}
    offer(
        monkeypatch,
        *(toy_paper_table(name, rows=rows, scales=scales) for name in ("toy-table1", "toy-table2")),
    )
    return [f"path.toys={texts}", *settings]


def printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> str:
    """Run the benchmark in this process on the CPU; return what it prints."""
    capsys.readouterr()
    options = [
        "--device",
        "cpu",
        "--jobs",
        "1",
        "--results-dir",
        str(folder),
        "--tables",
        "toy-table1,toy-table2",
    ]
    monkeypatch.setattr(sys, "argv", ["gpu_claims.py", *options, *words])
    gpu_claims.main()
    return capsys.readouterr().out


def test_missing_runs_are_made_once(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Runs of two tables are one run; finished ones are not repeated, and the comparison is in its own folder."""
    out = printed(tmp_path / "r", monkeypatch, capsys, *words)
    assert "2 runs on cpu" in out
    assert "times as fast as on one core" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["toy-table1", "2", "of", "2", "0", "0"] in [line[:6] for line in lines]
    assert {record.key.seed for record in Results(tmp_path / "r").records("toys")} == {1, 2}
    assert [record.key.seed for record in Results(tmp_path / "r" / "cpu").records("toys")] == [
        gpu_claims.CPU_SEED
    ]
    assert "0 runs on cpu" in printed(tmp_path / "r", monkeypatch, capsys, *words)
