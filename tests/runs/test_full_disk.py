"""A disk that is full while a sweep runs: one clear line, nothing finished is lost, the same command completes it."""

import errno
import os
from pathlib import Path

import pytest
from support.toys import toy_words

from longsumbench.cli.main import main


def test_a_moment_without_space_costs_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run whose record cannot be written has failed with the reason, the others are kept."""
    replace, failed = os.replace, list[str]()

    def full_once(source: str, target: Path) -> None:
        if Path(target).name == "record.json" and not failed:
            failed.append(str(target))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        replace(source, target)

    words = ["run", "-m", "model=lead", "model.length=3,4,5", *toy_words(tmp_path)]
    with monkeypatch.context() as patches:
        patches.setattr(os, "replace", full_once)
        assert main(words) == 1
    error = capsys.readouterr().err
    assert "3 runs: 2 done, 0 found finished, 1 failed" in error
    assert f"the disk is full at {failed[0]}" in error
    assert main(words) == 0
    assert "3 runs: 1 done, 2 found finished, 0 failed" in capsys.readouterr().err
