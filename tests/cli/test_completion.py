"""What shells offer for an unfinished command line."""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.run_records import record

from longsumbench.cli.completers import complete_override, complete_run
from longsumbench.cli.main import main
from longsumbench.runs.results import Results

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
LINES = {
    "lea": "leaderboard",
    "list experi": "experiments",
    "run model=lexr": "lexrank",
    "run -m model=lead,lexr": "lead,lexrank",
    "run dataset=min": "mine",
    "run experiment=smo": "smoke",
    "run model=seal model.segm": "model.segment_length=",
    "run --config-": "--config-dir",
    "inspect lead0": "lead00000000",
    "compare trunc lead0": "lead00000000",
    "paper seal-table2 scale=pro": "probe",
}


def test_bash_completes_lines(tmp_path: Path, own_config: Path) -> None:
    """A real bash, after the printed code, completes commands, flags, names, settings and ids of runs."""
    (own_config / "dataset").mkdir(parents=True)
    (own_config / "dataset" / "mine.yaml").write_text("name: mine\npath: x\n", encoding="utf-8")
    run = record("lead", 30)
    run.write(Results(tmp_path / "results").run_folder(run))
    environment = {**os.environ, "PYTHON": sys.executable}
    command = ["bash", "-c", BASH, "bash", *(f"longsumbench {line}" for line in LINES)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert dict(zip(LINES, map(str.strip, done.stdout.splitlines()), strict=True)) == LINES


def test_packed_runs_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of packed runs are offered as those of folders, with model and dataset."""
    monkeypatch.chdir(tmp_path)
    for run in (record("lead", 30), record("seal", 31, dataset="probe")):
        run.write(Results(Path("results")).run_folder(run))
    typed = argparse.Namespace(results_dir="results")
    in_folders = complete_run("no such file", typed)
    assert main(["runs", "pack"]) == 0
    shutil.rmtree("results/runs")
    assert complete_run("no such file", typed) == in_folders
    assert in_folders == {"lead00000000": "lead on arxiv", "seal00000000": "seal on probe"}


def test_an_answer_needs_no_heavy_library(own_config: Path) -> None:
    """Settings of a model are offered without torch, Hydra and pandas."""
    code = "import sys; from longsumbench.cli.completers import complete_override\n"
    code += "print(*complete_override('model.')); print(*sys.modules)"
    environment = {**os.environ, "COMP_LINE": "longsumbench run model=seal model."}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    found, loaded = done.stdout.splitlines()
    assert "model.segment_length=" in found.split()
    assert not {"torch", "transformers", "hydra", "pandas"} & set(loaded.split())


@pytest.mark.parametrize(
    ("prefix", "offered"),
    [
        ("", {"model=", "dataset=", "seed="}),
        ("tr", {"train.max_steps=", "train.learning_rate="}),
        ("scale=", {"scale=tiny", "scale=small", "scale=paper"}),
    ],
)
def test_groups_settings_and_names_of_groups(prefix: str, offered: set[str]) -> None:
    """Before "=" come groups and settings, after that of a group its names."""
    assert offered <= set(complete_override(prefix))
    assert "train.max_steps=" not in complete_override("")
    assert list(complete_override("seed=")) == []


@pytest.mark.parametrize(
    ("shell", "file"), [("bash", "~/.bashrc"), ("zsh", "~/.zshrc"), ("fish", "longsumbench.fish")]
)
def test_the_code_says_where_it_goes(
    shell: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each shell has code whose first line is a comment on how to install it."""
    assert main(["completion", shell]) == 0
    first, *code = capsys.readouterr().out.splitlines()
    assert first.startswith("# ")
    assert f"longsumbench completion {shell} >" in first
    assert file in first
    assert "longsumbench" in "\n".join(code)
