"""Guides begin with a command and what it prints, which is what it prints here."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from support.commands import Command
from support.paths import ROOT

BLOCK = re.compile(r"^# .*\n((?:(?:    .*)?\n)+)")  # below the title
# Pages whose first command needs only results/reference
PUBLISHED = ("how-to/trust.md", "how-to/repeat-a-paper.md", "concepts/ledger.md")
RUN_HERE = ("how-to/compare.md", "how-to/test-your-summarizer.md")


def first_block(page: str) -> tuple[list[str], list[str]]:
    """Return the commands and the printed lines of a page's first block."""
    (block,) = BLOCK.findall((ROOT / "docs" / page).read_text())
    lines = [line.strip() for line in block.replace("\\\n", "").splitlines() if line.strip()]
    commands = [line for line in lines if line.startswith("longsumbench ")]
    return commands, lines[len(commands) :]


@pytest.mark.numbers
@pytest.mark.parametrize("page", [*PUBLISHED, *RUN_HERE])
def test_the_output_of_a_guide_is_what_its_command_prints(
    page: str, here: Path, run_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typed as on the page, in a terminal of 80 columns; some printed lines may be left out of the page."""
    monkeypatch.setenv("COLUMNS", "80")
    shutil.copytree(ROOT / "results" / "reference", here / "results" / "reference")
    commands, printed = first_block(page)
    assert commands
    assert printed
    for command in commands:
        words = shlex.split(command, comments=True)[1:]
        if words[0] == "paper":
            words += ["--no-run", "--results-dir", "results/reference"]
        output = run_command(0, *words)
    lines = {without_id(line) for line in (output.out + output.err).splitlines()}
    assert [line for line in map(without_id, printed) if line not in lines] == []


def without_id(line: str) -> str:
    """Return a printed line without the id of a run of a program, which has the hash of the program's file."""
    return re.sub(r"\b[0-9a-f]{8}\b", "", line).strip()
