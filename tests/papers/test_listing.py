"""The list of tables and figures says what the papers print, and what was made here."""

from pathlib import Path

import pytest
from support.artifacts import offer, toy_artifact

from longsumbench.files import write_atomically
from longsumbench.papers.artifacts import find_artifact
from longsumbench.papers.listing import count_printed, describe_status, render_artifacts
from longsumbench.papers.write import MadePage
from longsumbench.runs.record import Results

DONE = '{"name": "toy-table1", "scale": "probe", "runs": ["a", "b"], "missing": %s, "seconds": 150, "verdicts": %s}'


def test_a_line_for_each_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name, title, numbers that the paper prints, scales (the default first), and scale, runs and verdicts here."""
    offer(monkeypatch, toy_artifact(prints="Table 2", source="you2019etads"), toy_artifact("toy-table9", title="None"))
    verdicts = '{"undecided": 1, "reproduced": 3}'
    write_atomically(tmp_path / "papers" / "toy-table1.json", DONE % ("[]", verdicts))
    monkeypatch.setenv("COLUMNS", "200")
    lines = render_artifacts(Results(tmp_path)).splitlines()
    assert lines[-2].split("  ")[0] == "toy-table1"
    for part in ("Lead and Random", "30", "probe, paper", "probe; 2 runs, 2.5 min; 3 reproduced, 1 undecided"):
        assert part in lines[-2]
    assert lines[-1].endswith("probe, paper")


def test_an_unfinished_table(tmp_path: Path) -> None:
    """The number of finished runs is said; planned settings have no runs."""
    write_atomically(tmp_path / "papers" / "toy-table1.json", DONE % ('["c"]', "{}"))
    results = Results(tmp_path)
    assert describe_status(results, toy_artifact()) == "probe; 2 of 3 runs, 2.5 min"
    assert describe_status(results, toy_artifact(kind="dimensions")) == "probe"
    assert describe_status(results, toy_artifact("toy-table2")) == ""


def test_printed_numbers_are_counted_by_source_and_table() -> None:
    """SEAL's Table 2 prints 20 rows of three numbers and two more; a table of a longer number is another one."""
    assert count_printed(find_artifact("seal-table2")) == 62
    assert count_printed(toy_artifact(prints="Table 99")) == 0
    assert MadePage("x", "probe").verdicts == {}
