"""What shells offer for an unfinished command line."""

import os
import subprocess
import sys

import pytest

# A line per argument: what bash has for it after TAB. The shell function means the installed command.
BASH = """
longsumbench() { "$PYTHON" -m longsumbench "$@"; }
eval "$(longsumbench completion bash)"
COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:' COMP_TYPE=9
for COMP_LINE in "$@"; do
    COMP_POINT=${#COMP_LINE}
    _python_argcomplete longsumbench
    echo "${COMPREPLY[@]}"
done
"""
LINES = {"lea": "leaderboard", "list experi": "experiments", "run --config-": "--config-dir"}


def test_bash_completes_names() -> None:
    """A real bash, after the printed code, completes the names of commands, of their words and of flags."""
    pytest.importorskip("argcomplete", reason="the extra completion")
    command = ["bash", "-c", BASH, "bash", *(f"longsumbench {line}" for line in LINES)]
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert [line.strip() for line in done.stdout.splitlines()] == list(LINES.values())
