"""`longsumbench paper`: what is printed, and how it ends."""

from pathlib import Path

import pytest
from support.commands import Command
from support.paper_tables import offer, toy_paper_table
from support.toys import write_jsonl


@pytest.fixture
def folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, with one table of the papers."""
    offer(monkeypatch, toy_paper_table())
    return here


def test_a_table_is_printed_with_its_files(folder: Path, run_command: Command) -> None:
    """The tables, the verdicts and the paths of the files are on stdout; overrides may follow flags."""
    texts = write_jsonl(folder / "texts")
    said = run_command(
        0, "paper", "toy-table1", "--results-dir", "r", f"path.toys={texts}", "score.resamples=100"
    ).out
    assert "What the paper claims" in said
    assert said.splitlines()[-4:] == [
        f"r/papers/toy-table1{end}" for end in (".md", ".csv", "-a.png", ".json")
    ]
    assert "1 reproduced, 1 undecided, 1 not tested" in " ".join(
        run_command(0, "paper", "list", "--results-dir", "r").out.split()
    )


def test_no_run_runs_nothing(folder: Path, run_command: Command) -> None:
    """The page names what is missing, and the exit code is 0."""
    assert "0 of 3 runs finished." in run_command(0, "paper", "toy-table1", "--no-run").out
    assert not list(folder.glob("results/runs/*"))


WRONG = """
toy-tabel1 → unknown table or figure 'toy-tabel1' (did you mean 'toy-table1'?); known: toy-table1
toy-table1 path.toys=gone → path.toys=gone: no such file or folder
→ name a table or figure: `longsumbench paper list` shows all
"""


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_a_wrong_word_is_one_line_and_writes_nothing(
    line: str, folder: Path, run_command: Command
) -> None:
    """One line says what is wrong and what to write; nothing is written."""
    words, problem = line.split("→ ")
    error_lines = run_command(2, "paper", *words.split()).err.splitlines()
    assert error_lines[-1].startswith(f"longsumbench: {problem}")
    assert not list(folder.glob("results/papers/*"))


def test_an_interrupt_shows_the_finished_runs_and_how_to_continue(
    folder: Path, run_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is printed, the last line says how to continue, and the exit code is that of all interrupts."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("longsumbench.models.baselines.system.Random.summarize", interrupted)
    texts = write_jsonl(folder / "texts")
    said = run_command(130, "paper", "toy-table1", f"path.toys={texts}", "score.resamples=100")
    assert "1 of 3 runs finished" in said.out
    assert said.err.splitlines()[-1].endswith(
        "the page shows the finished runs, and the same command continues"
    )
