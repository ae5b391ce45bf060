"""What a reader may rely on in every file."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

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


def test_files_are_finished_and_run_anywhere() -> None:
    """No file has a name that says nothing, a mark of unfinished work or a path of one person's machine."""
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert path.stem not in VAGUE, path
        assert not any(mark in text for mark in MARKS), path
        assert not HOME.search(text), path


def test_every_test_states_its_property() -> None:
    """The first line of a test says, in a sentence, what holds."""
    trees = [
        ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("test_*.py")
    ]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    stated = {
        node.name: (ast.get_docstring(node) or "").split("\n")[0].endswith((".", "?"))
        for node in nodes
    }
    assert [
        name for name, is_stated in stated.items() if name.startswith("test_") and not is_stated
    ] == []


def names_in(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    targets = (
        statement.targets
        if isinstance(statement, ast.Assign)
        else [getattr(statement, "target", None)]
    )
    yield from (
        name.id
        for target in targets
        if target
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    )


def test_a_public_name_is_defined_once() -> None:
    """No two modules define the same public name, but for each dataset's `CORPUS`."""
    modules = [
        path for folder in ("longsumbench", "models") for path in (ROOT / folder).rglob("*.py")
    ]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in modules]
    counts = Counter(
        name for tree in trees for name in {name for item in tree.body for name in names_in(item)}
    )
    twice = {name for name, count in counts.items() if count > 1 and not name.startswith("_")}
    assert twice == {"CORPUS"}


def test_no_test_module_imports_another() -> None:
    """What several test modules use is in tests/support/."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    imports = re.compile(r"^\s*(?:from|import) (?:[\w.]+\.)?test_", re.MULTILINE)
    assert [str(path) for path in files if imports.search(path.read_text(encoding="utf-8"))] == []


def test_assert_statements_only_narrow_types() -> None:
    """`python -O` drops them, so none does work or checks input: they say that a value is not None, or its type."""
    files = [
        path for folder in ("longsumbench", "models") for path in (ROOT / folder).rglob("*.py")
    ]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    narrowing = re.compile(r"(isinstance\([\w.]+, \w+\)|[\w.\[\]]+ is not None)")
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert):
                assert narrowing.fullmatch(ast.unparse(node.test)), (path, ast.unparse(node))
