"""What a reader may rely on in every file."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from support.paths import ROOT

FOLDERS = ("longsumbench", "models", "conf", "reproduction", "tests", "benchmarks", "docs")
ENDINGS = {".py", ".yaml", ".md", ".toml"}


def files_in(*folders: str) -> list[Path]:
    """Return all files that people write, below some folders."""
    paths: list[Path] = []
    for folder in folders:
        paths += (path for path in (ROOT / folder).rglob("*") if path.suffix in ENDINGS)
    return sorted(path for path in paths if "__pycache__" not in path.parts)


@cache
def trees_in(*folders: str) -> dict[Path, ast.Module]:
    """Return file → syntax tree of the Python below some folders."""
    return {
        path: ast.parse(path.read_text()) for path in files_in(*folders) if path.suffix == ".py"
    }


VAGUE = {"utils", "util", "common", "helpers", "helper", "base", "misc"}
MARKS = ("TO" + "DO", "FIX" + "ME", "XX" + "X")  # in halves, so that this file is not found
HOME = re.compile(r"/(home|Users|root)/\w")


def test_files_are_finished_and_run_anywhere() -> None:
    """No file has a name that says nothing, a mark of unfinished work or a path of one person's machine."""
    for path in files_in(*FOLDERS):
        text = path.read_text()
        assert path.stem not in VAGUE, path
        assert not any(mark in text for mark in MARKS), path
        assert not HOME.search(text), path


def test_every_test_states_its_property() -> None:
    """The first line of a test says, in a sentence, what holds."""
    for path, tree in trees_in("tests").items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                first_line = (ast.get_docstring(node) or "").split("\n")[0]
                assert first_line.endswith((".", "?")), (path, node.name)


def names_in(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module defines."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    for target in targets:
        for name in ast.walk(target):
            if isinstance(name, ast.Name):
                yield name.id


def test_a_public_name_is_defined_once() -> None:
    """No two modules define the same public name, but for each dataset's `CORPUS`."""
    counts: Counter[str] = Counter()
    for tree in trees_in("longsumbench", "models", "reproduction").values():
        names: set[str] = set()
        for statement in tree.body:
            names.update(names_in(statement))
        counts.update(names)
    twice = {name for name, count in counts.items() if count > 1 and not name.startswith("_")}
    assert twice == {"CORPUS"}


def test_no_test_module_imports_another() -> None:
    """What several test modules use is in tests/support/."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    imports = re.compile(r"^\s*(?:from|import) (?:[\w.]+\.)?test_", re.MULTILINE)
    assert [str(path) for path in files if imports.search(path.read_text())] == []


def test_assert_statements_only_narrow_types() -> None:
    """`python -O` drops them, so none does work or checks input: they say that a value is not None, or its type."""
    narrowing = re.compile(r"(isinstance\([\w.]+, \w+\)|[\w.\[\]]+ is not None)")
    for path, tree in trees_in("longsumbench", "models", "reproduction").items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert):
                assert narrowing.fullmatch(ast.unparse(node.test)), (path, ast.unparse(node))
