"""Compares the output that guides show below their first command with what the command prints.

    python benchmarks/guides.py

The commands run in a temporary folder with results/reference, in a terminal of 80 columns. Some printed lines may be
left out of a page.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from longsumbench.cli.main import main as run_command

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "concepts/ledger.md",
    "how-to/compare.md",
    "how-to/repeat-a-paper.md",
    "how-to/test-your-summarizer.md",
    "how-to/trust.md",
)
BLOCK = re.compile(r"^# .*\n((?:(?:    .*)?\n)+)")  # below the title


def read_block(page: str) -> tuple[list[str], list[str]]:
    """Return the commands and the printed lines of a page's first block."""
    (block,) = BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    lines = [line.strip() for line in block.replace("\\\n", "").splitlines() if line.strip()]
    commands = [line for line in lines if line.startswith("longsumbench ")]
    return commands, lines[len(commands) :]


def run_commands(commands: list[str]) -> str:
    """Run commands in a new folder; return what the last one prints."""
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(ROOT / "results" / "reference", "results/reference")
        for command in commands:
            words = shlex.split(command, comments=True)[1:]
            if words[0] == "paper":
                words += ["--no-run", "--results-dir", "results/reference"]
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                code = run_command(words)
            if code:
                sys.exit(f"{command} ended with {code}:\n{printed.getvalue()}")
    return printed.getvalue()


def find_differences(page: str) -> Iterator[str]:
    """Yield each line of a page's first block that its command does not print."""
    commands, shown = read_block(page)
    if not (commands and shown):
        yield f"docs/{page} begins with no command and its output"
        return
    printed = {remove_ids(line) for line in run_commands(commands).splitlines()}
    for line in shown:
        if remove_ids(line) not in printed:
            yield f"docs/{page}: {line}"


def remove_ids(line: str) -> str:
    """Return a line without ids of runs of programs, which have the hash of the program's file."""
    return re.sub(r"\b[0-9a-f]{8}\b", "", line).strip()


def main() -> None:
    """Name the lines that are not printed; exit code 1 if there are some."""
    os.environ["COLUMNS"] = "80"
    differences: list[str] = []
    for page in PAGES:
        differences += find_differences(page)
    sys.exit("\n".join(differences) or None)


if __name__ == "__main__":
    main()
