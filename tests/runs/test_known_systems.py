"""Facts of systems: what planning and finished runs ask for, without torch."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.toys import TINY_FOR_ALL, tiny_overrides, write_jsonl

from longsumbench.cli.main import main
from longsumbench.core import registry, system_versions
from longsumbench.runs.known_systems import make_system

NEURAL = (
    "trunc",
    "ca",
    "ea",
    "seal",
    "etads",
    "pagesum",
    "hierarchical_transformer",
    "flat_transformer",
    "tdmca",
)


def small(model: str) -> Any:
    kind = registry.config_of(model)
    return kind(
        **{key: value for key, value in TINY_FOR_ALL.items() if key in kind.__dataclass_fields__}
    )


def test_a_finished_run_loads_no_torch(tmp_path: Path) -> None:
    """The same command again, of a system that was trained, finds the run without torch or transformers."""
    words = [
        "run",
        *tiny_overrides(write_jsonl(tmp_path / "toy")),
        "baselines=false",
        f"results_dir={tmp_path / 'r'}",
    ]
    assert main(words) == 0
    code = "import sys; from longsumbench.cli.main import main; main(sys.argv[1:])\n"
    code += "print({'torch', 'transformers', 'datasets'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], check=True, capture_output=True, text=True
    )
    assert "already finished" in done.stderr
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("model", NEURAL)
def test_known_facts_are_those_of_the_system(model: str) -> None:
    """Another process gets the facts of the system itself, and loads torch only for anything else."""
    system = make_system(config := small(model))
    facts = [
        system_versions(system),
        system.identity(),
        sorted(system.decided_by),
        system.capabilities,
    ]
    asked = (
        "import sys\nfrom longsumbench.core import registry, system_versions\n"
        "from longsumbench.runs.known_systems import loaded_system, make_system\n"
        f"system = make_system(registry.config_of({model!r})(**{vars(config)!r}))\n"
        "facts = [system_versions(system), system.identity(), sorted(system.decided_by), system.capabilities]\n"
        "print((facts, system.state, 'torch' in sys.modules))\n"
        "print(type(loaded_system(system)).__name__, system.reader.config == system.config)"
    )
    done = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True)
    known, loaded = done.stdout.splitlines()
    assert known == repr((facts, {}, False))
    assert loaded == f"{type(system).__name__} True"
