"""The list of tables and figures says what the papers print, and what was made here."""

from pathlib import Path

import pytest
from support.paper_tables import offer, toy_paper_table

from longsumbench.files import write_atomically
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers import command
from longsumbench_reproduction.papers.command import render_paper_tables
from longsumbench_reproduction.papers.paper_tables import read_paper_tables

DONE = '{"name": "toy-table1", "scale": "probe", "runs": {"a": 60, "b": 90}, "missing": %s, "claims": %s}'
HOLDS = '{"claim": "a > b", "measure": "rouge1", "dataset": "Toys", "outcome": "reproduced"}'


def list_lines(folder: Path) -> list[str]:
    """Return the lines of the list."""
    return render_paper_tables(Results(folder)).splitlines()


def test_a_line_for_each_paper_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name, title, numbers that the paper prints, scales (the default first), and scale, runs and verdicts here."""
    monkeypatch.setenv("COLUMNS", "200")
    offer(
        monkeypatch,
        toy_paper_table(prints="Table 2", source="you2019etads"),
        toy_paper_table("toy-table9", title="None", prints="Table 9"),
    )
    write_atomically(
        tmp_path / "papers" / "toy-table1.json", DONE % ("[]", f"[{HOLDS}, {HOLDS}, {HOLDS}]")
    )
    assert list_lines(tmp_path) == [
        "toy-table1  Lead and Random",
        "            scale=probe|paper; 30 printed numbers; made here: probe, 2 runs, 2 min 30 s, 3 reproduced",
        "toy-table9  None",
        "            scale=probe|paper",
    ]
    (tmp_path / "papers").rename(tmp_path / "elsewhere")
    monkeypatch.setattr(command, "_REFERENCE", tmp_path / "reference")
    write_atomically(tmp_path / "reference" / "papers" / "toy-table1.json", DONE % ("[]", "[]"))
    assert list_lines(tmp_path)[1].endswith(
        "30 printed numbers; published: probe, 2 runs, 2 min 30 s"
    )


def test_runs_and_hours_are_known_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package has what the suite publishes of each paper table."""
    monkeypatch.setenv("COLUMNS", "300")
    listed = [line for line in list_lines(tmp_path) if "published: " in line]
    assert len(listed) == len(read_paper_tables())
    assert "published: probe, 72 runs, 1 h 50 min, 1 reproduced" in "".join(listed)
