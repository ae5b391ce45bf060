"""The guide to tiny checkpoints works from its first to its last command, without a network."""

import re
import shlex
from pathlib import Path

import pytest
from support.paths import ROOT
from support.processes import run_python

from longsumbench.cli.main import main
from longsumbench.runs.results import Results

PAGE = (ROOT / "docs" / "how-to" / "tiny-checkpoints.md").read_text()


@pytest.mark.usefixtures("here", "empty_cache")
def test_every_command_of_the_guide_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its script writes both checkpoints; its commands, typed in their order, end with 0 and a table of all runs."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (script,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    lines = [
        shlex.split(line)
        for line in re.findall(r"^    (\S.*)$", PAGE.replace(script, ""), re.MULTILINE)
    ]
    assert lines[0] == ["python", "tiny.py"]
    run_python(script)
    for program, *words in lines[1:]:
        assert (program, words, main(words)) == ("longsumbench", words, 0), capsys.readouterr().err
    trained = {
        (run.key.model, run.fit.steps)
        for run in Results(Path("results")).records("probe")
        if run.parameters
    }
    assert trained == {("seq2seq", 0), ("seq2seq", 20), ("prompt", 0)}
