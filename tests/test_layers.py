"""Who imports whom: packages in one order, systems apart, no cycles, and no torch before it is needed."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from support.paths import ROOT
from support.processes import run_python

SMALL = "errors arguments interrupts sentences formatting progress files"
# Each package imports only what is before it.
IN_ORDER = """conf formatting errors arguments interrupts sentences progress files cache core rouge modeling
    metrics corpora models runs leaderboards views sweeps outputs analysis exchange site cli __main__"""
ORDER = IN_ORDER.split()
SEEN_BY_SYSTEMS = {"conf", *SMALL.split(), "cache", "core", "rouge", "modeling", "models"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] == "longsumbench" else ("longsumbench", *parts)).removesuffix(
        ".__init__"
    )


FILES: list[Path] = []
for folder in ("longsumbench", "models", "conf"):
    FILES += (ROOT / folder).rglob("*.py")
MODULES = {module_name(path): path for path in FILES}


def imported(name: str) -> Iterator[str]:
    """Yield the suite's modules that a module imports, also inside its functions."""
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            yield from submodules or ({node.module} & MODULES.keys())
        elif isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & MODULES.keys()


EDGES = []  # pairs of modules of packages, of which the first imports the second
for name in MODULES:
    for imported_name in imported(name):
        if "." in name and "." in imported_name:
            EDGES.append((name, imported_name))


def test_a_package_imports_only_packages_before_it() -> None:
    """Imports go one way; systems see the contracts and the parts of models, and the core sees no system."""
    for name, other in EDGES:
        mine, its = (ORDER.index(module.split(".")[1]) for module in (name, other))
        assert its <= mine, f"{name} imports {other}"
        assert ORDER[its] != "models" or ORDER[mine] == "models", (
            f"{name} imports the system {other}"
        )
        assert ORDER[mine] != "models" or ORDER[its] in SEEN_BY_SYSTEMS, f"{name} imports {other}"
        same = name.split(".")[2:3] == other.split(".")[2:3]
        assert ORDER[its] != "models" or same, f"{name} imports another system, {other}"


def test_the_suite_does_not_know_the_papers() -> None:
    """Nothing imports or names a module of `reproduction`, which entry points reach; it imports public names alone."""
    for path in MODULES.values():
        assert "longsumbench_reproduction" not in path.read_text(), path
    for path in (ROOT / "reproduction").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                assert not any(name.startswith("_") for name in names), (path, names)


def test_no_module_imports_itself_by_others() -> None:
    """There is an order in which all modules could be read."""
    graph: dict[str, set[str]] = {}
    for name, other in EDGES:
        graph.setdefault(name, set()).add(other)
    TopologicalSorter(graph).prepare()


def test_what_is_light_imports_no_torch() -> None:
    """The contracts, the datasets and the baselines load neither torch nor transformers."""
    packages = {*SMALL.split(), "cache", "core"}
    light = [name for name in MODULES if packages & {*name.split(".")[1:2]}]
    code = (
        "import sys\nfrom importlib import import_module\nfrom longsumbench.core import registry\n"
        f"for name in {[*light, 'longsumbench.models.baselines.system']}:\n    import_module(name)\n"
        "    assert not {'torch', 'transformers'} & set(sys.modules), name\n"
        "for name in registry.corpora.targets():\n    registry.corpora.load(name)\n"
        "    assert not {'torch', 'transformers'} & set(sys.modules), name"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_reader_passes_few_functions() -> None:
    """From the command to a system's forward there are at most 11 functions."""
    run_script = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
    printed = run_python(run_script, ROOT / "benchmarks" / "hops.py")
    assert int(printed.splitlines()[-1].split()[0]) <= 11, printed
