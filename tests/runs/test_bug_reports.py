"""An error inside a plug-in ends in one line that names the plug-in and the log with the traceback."""

import re
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from support.toys import told_in, toy_words

from longsumbench.cli.main import main

FAULTY = """
from dataclasses import dataclass
from longsumbench.core import System, SystemConfig

@dataclass
class Config(SystemConfig):
    name: str = "faulty"

class Faulty(System):
    Config = Config

    def summarize(self, examples, decoding):
        return {}["no such\\nkey"]

"""
Ends = Callable[..., str]


@pytest.fixture
def ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ends:
    """Run a system of a package that is installed; return the one line that the command ends in."""
    (tmp_path / "faulty_package.py").write_text(FAULTY)
    (tmp_path / "broken_package.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    group = "longsumbench.systems"
    points = [
        EntryPoint(
            "another", "faulty_package.elsewhere:Another", group
        ),  # of the same package, and not to blame
        EntryPoint("faulty", "faulty_package:Faulty", group),
        EntryPoint("broken", "broken_package:Broken", group),
    ]
    monkeypatch.setattr(
        "longsumbench.core.registry.entry_points",
        lambda group: [one for one in points if one.group == group],
    )

    def run(code: int, *words: str) -> str:
        assert main(["run", *words, *toy_words(tmp_path)]) == code
        return told_in(capsys.readouterr().err)[-1]

    return run


def log_in(line: str) -> str:
    """Return what is in the log that a line names."""
    found = re.search(r"its traceback is in (\S+\.log)", line)
    assert found is not None, line
    return Path(found[1]).read_text()


def test_an_error_in_a_plug_in_names_it(ends: Ends) -> None:
    """The line says whose fault it is and to whom to report it; the log holds the traceback."""
    line = ends(70, "model=faulty")
    assert line.startswith(
        "longsumbench: unexpected error in the plug-in of model 'faulty' (faulty_package:Faulty): KeyEr"
    )
    assert line.endswith("please report it, with that file, to the authors of that plug-in")
    assert "no such" in log_in(line)


def test_a_plug_in_that_cannot_be_imported_has_its_traceback_in_a_log(ends: Ends) -> None:
    """That is wrong usage, or a missing library: exit code 2."""
    line = ends(2, "model=broken")
    assert (
        "model 'broken' (broken_package:Broken) cannot be imported: ModuleNotFoundError: No module named 'no_s"
        in line
    )
    assert "import no_such_library" in log_in(line)
