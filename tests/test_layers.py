"""The layering: a module imports lower floors only. Read from the syntax tree, so imports inside functions count."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = {
    "checksums": 0,
    "errors": 0,
    "bounds": 0,
    "interrupts": 0,
    "printing": 0,
    "locks": 0,
    "shapes": 0,
    "progress": 0,
    "stages": 0,
    "cache": 1,
    "documents": 1,
    "output_facts": 2,
    "sentences": 1,
    "records": 1,
    "registry": 1,
    "bug_reports": 2,
    "configuration": 1,
    "corpora": 2,
    "segmentation": 2,
    "ranking": 2,
    "rouge": 2,
    "statistics": 2,
    "environment": 2,
    "sweeps": 2,
    "tables": 2,
    "published": 2,
    "metrics": 3,
    "scored_files": 3,
    "score_warnings": 4,
    "batching": 3,
    "pretrained": 3,
    "training_batches": 3,
    "team": 3,
    "standings": 3,
    "significance": 4,
    "ledger": 4,
    "nn": 3,
    "system": 4,
    "tokenization": 4,
    "shares": 4,
    "training": 4,
    "training_callbacks": 4,
    "generation": 4,
    "neural": 4,
    "learned_ranking": 4,
    "evidence": 5,
    "predictions": 5,
    "assisting": 5,
    "summarizing": 5,
    "scoring": 5,
    "identities": 5,
    "pipeline": 5,
    "comparing": 5,
    "inspecting": 5,
    "leaderboard": 5,
    "analysis": 5,
    "sweep_points": 4,
    "sweep_curves": 5,
    "report": 5,
    "catalogue": 5,
    "help_texts": 5,
    "arguments": 6,
    "status": 5,
    "override_advice": 5,
    "planning": 6,
    "rewriting": 6,
    "repro": 6,
    "repeating": 6,
    "launchers": 6,
    "jobs": 6,
    "launch": 6,
    "dataset_commands": 6,
    "cli": 6,
    "__main__": 6,
}
SAME_FLOOR = {  # who may import whom on one floor
    ("bounds", "errors"),
    ("locks", "errors"),
    ("locks", "shapes"),
    ("stages", "checksums"),
    ("progress", "printing"),
    ("stages", "errors"),
    ("stages", "locks"),
    ("configuration", "registry"),
    ("corpora", "rouge"),
    ("tokenization", "system"),
    ("training", "shares"),
    ("training", "system"),
    ("training", "training_callbacks"),
    ("training_callbacks", "shares"),
    ("learned_ranking", "system"),
    ("neural", "system"),
    ("neural", "tokenization"),
    ("neural", "training"),
    ("neural", "training_callbacks"),
    ("neural", "generation"),
    ("predictions", "evidence"),
    ("summarizing", "evidence"),
    ("metrics", "nn"),
    ("metrics", "pretrained"),
    ("pipeline", "evidence"),
    ("pipeline", "identities"),
    ("pipeline", "assisting"),
    ("pipeline", "predictions"),
    ("assisting", "predictions"),
    ("comparing", "predictions"),
    ("report", "comparing"),
    ("inspecting", "evidence"),
    ("inspecting", "predictions"),
    ("report", "inspecting"),
    ("analysis", "predictions"),
    ("report", "analysis"),
    ("report", "sweep_curves"),
    ("leaderboard", "report"),
    ("launch", "planning"),
    ("launch", "jobs"),
    ("launch", "launchers"),
    ("jobs", "planning"),
    ("launchers", "planning"),
    ("launchers", "jobs"),
    ("cli", "arguments"),
    ("cli", "launch"),
    ("cli", "launchers"),
    ("cli", "planning"),
    ("cli", "repro"),
    ("cli", "repeating"),
    ("rewriting", "planning"),
    ("repro", "rewriting"),
    ("repeating", "repro"),
    ("cli", "dataset_commands"),
    ("dataset_commands", "planning"),
    ("__main__", "cli"),
}
READS_TORCH_FILES = "longsumbench/corpora/ranked_files.py"  # a released corpus: torch is imported when one is opened
TOP_OF_SYSTEMS = 4  # systems use the bench up to this floor
HIDDEN_FROM_SYSTEMS = {"corpora", "records"}
LIBRARIES_HIDDEN_FROM_SYSTEMS = {"hydra"}


def sources(folder: str) -> list[Path]:
    return sorted(
        path for path in (ROOT / folder).rglob("*.py") if not {"models", "conf"} & set(inside(path).parts[1:])
    )


def inside(path: Path) -> Path:
    return path.relative_to(ROOT)


def imported(path: Path) -> Iterator[tuple[str, ...]]:
    """Yield every module a file imports, as its parts; of `from a import b` both a and a.b."""
    package = (
        ("longsumbench", *inside(path).parts[:-1]) if inside(path).parts[0] == "models" else inside(path).parts[:-1]
    )
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = (*start, *(node.module.split(".") if node.module else ()))
            yield from ((*module, alias.name) for alias in node.names)


def bench_modules(path: Path) -> set[str]:
    """Return the bench's modules a file imports, by the name in the table of floors."""
    return {parts[1] for parts in imported(path) if parts[0] == "longsumbench" and len(parts) > 1} - {"__version__"}


def own_name(path: Path) -> str:
    return inside(path).parts[1].removesuffix(".py")


def floor(name: str) -> int:
    assert name in FLOORS, f"longsumbench/{name} has no floor: add it to FLOORS in tests/test_layers.py"
    return FLOORS[name]


BENCH = [path for path in sources("longsumbench") if own_name(path) != "__init__"]
SYSTEMS = sources("models")


@pytest.mark.parametrize("path", BENCH, ids=lambda path: str(inside(path)))
def test_the_bench_imports_lower_floors_only(path: Path) -> None:
    """A module of the bench imports lower floors, its own package, and what the table allows on its own floor."""
    name = own_name(path)
    for other in bench_modules(path) - {name, "models", "conf"}:
        allowed = floor(other) < floor(name) or (name, other) in SAME_FLOOR
        assert allowed, f"{inside(path)} (floor {floor(name)}) imports {other} (floor {floor(other)})"


@pytest.mark.parametrize("path", BENCH, ids=lambda path: str(inside(path)))
def test_the_bench_does_not_know_its_systems(path: Path) -> None:
    """No module of the bench imports a system: it reaches one only by name, through the registry."""
    assert "models" not in bench_modules(path)


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: str(inside(path)))
def test_a_system_knows_the_contract_only(path: Path) -> None:
    """A system imports no other system, nothing above the contract's floor, no corpus, no record and no Hydra."""
    modules = list(imported(path))
    own = inside(path).parts[1]
    systems = {parts[2] for parts in modules if parts[:2] == ("longsumbench", "models") and len(parts) > 2}
    bench = bench_modules(path) - {"models"}
    assert systems <= {own}, f"{inside(path)} imports another system"
    assert not bench & HIDDEN_FROM_SYSTEMS
    assert not {parts[0] for parts in modules} & LIBRARIES_HIDDEN_FROM_SYSTEMS
    assert max(map(floor, bench), default=0) <= TOP_OF_SYSTEMS
    assert not any(parts[0] == "models" for parts in modules), "import it as longsumbench.models"


def test_the_table_is_a_staircase() -> None:
    """What the table allows on one floor goes one way: no two modules may import each other."""
    assert all(FLOORS[name] == FLOORS[other] for name, other in SAME_FLOOR)
    order: list[str] = []
    waiting = set(FLOORS)
    while ready := {name for name in waiting if not any((name, other) in SAME_FLOOR for other in waiting)}:
        order.extend(ready)
        waiting -= ready
    assert not waiting


def heavy_after(statement: str) -> str:
    """Run a statement in a fresh interpreter and return which heavy libraries it loaded."""
    code = f"{statement}\nimport sys\nprint(*sorted({{'torch', 'transformers'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_contract_pulls_in_no_torch() -> None:
    """Importing the contract, or any single-file module of floor 2 and below, loads neither torch nor transformers."""
    light = [name for name, level in FLOORS.items() if level <= 2 and (ROOT / "longsumbench" / f"{name}.py").is_file()]
    statements = [f"import longsumbench.{name}" for name in ["system", *light]]
    assert heavy_after("\n".join([*statements, "import longsumbench.models.baselines.system"])) == ""


def test_datasets_pull_in_no_torch() -> None:
    """Importing any dataset loads neither torch nor transformers."""
    assert heavy_after("from longsumbench.registry import corpora\nfor n in corpora.targets(): corpora.load(n)") == ""


@pytest.mark.parametrize("path", [p for p in BENCH if FLOORS.get(own_name(p), 9) <= 2], ids=lambda p: str(inside(p)))
def test_low_floors_name_no_torch(path: Path) -> None:
    """No module of floor 2 or below imports torch or transformers, not even inside a function, but for one."""
    allowed = {"torch"} if inside(path).as_posix() == READS_TORCH_FILES else set()
    assert {parts[0] for parts in imported(path)} & {"torch", "transformers"} == allowed
