"""What a reader may rely on in every file."""

import ast
import re
from pathlib import Path

import pytest
from support.paths import ROOT

FOLDERS = ("longsumbench", "models", "conf", "tests", "benchmarks", "docs")
FILES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".yaml", ".md", ".toml"} and "__pycache__" not in path.parts
)
VAGUE = {"utils", "util", "common", "helpers", "helper", "base", "misc"}
MARKS = ("TO" + "DO", "FIX" + "ME", "XX" + "X")  # in halves, so that this file is not found
HOME = re.compile(r"/(home|Users|root)/\w")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_finished_and_runs_anywhere(path: Path) -> None:
    """No file has a name that says nothing, a mark of unfinished work or a path of one person's machine."""
    text = path.read_text(encoding="utf-8")
    assert path.stem not in VAGUE
    assert not any(mark in text for mark in MARKS)
    assert not HOME.search(text)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests").rglob("test_*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_every_test_states_its_property(path: Path) -> None:
    """The first line of a test says, in a sentence, what holds."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    tests = [node for node in tree if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    assert [
        test.name for test in tests if not (ast.get_docstring(test) or "").split("\n")[0].endswith((".", "?"))
    ] == []
