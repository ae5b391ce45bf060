"""Facts of systems: what planning and finished runs ask for, without torch."""

import subprocess
import sys
from typing import Any

import pytest
from support.toys import TINY_FOR_ALL

from longsumbench.api import registry
from longsumbench.runs.known_systems import make_system

NEURAL = ("trunc", "ca", "ea", "seal", "etads", "pagesum", "hierarchical_transformer", "flat_transformer", "tdmca")
FLAGS = ["oracle", "keeps_evidence", "keeps_reference_evidence", "gives_attention", "supports_length_norms"]
FLAGS += ["shares_work", "extracts", "runs_untrained", "trains_scorer"]


def small(model: str) -> Any:
    kind = registry.config_of(model)
    return kind(**{key: value for key, value in TINY_FOR_ALL.items() if key in kind.__dataclass_fields__})


@pytest.mark.parametrize("model", NEURAL)
def test_known_facts_are_those_of_the_system(model: str) -> None:
    """Another process gets the facts of the system itself, and loads torch only for anything else."""
    system = make_system(config := small(model))
    facts = [system.versions(), system.identity(), sorted(system.decided_by)]
    flags = [getattr(system, name) for name in FLAGS]
    asked = (
        "import sys\nfrom longsumbench.api import registry\n"
        "from longsumbench.runs.known_systems import loaded_system, make_system\n"
        f"system = make_system(registry.config_of({model!r})(**{vars(config)!r}))\n"
        "facts = [system.versions(), system.identity(), sorted(system.decided_by)]\n"
        f"print((facts, [getattr(system, name) for name in {FLAGS}], system.state, 'torch' in sys.modules))\n"
        "print(type(loaded_system(system)).__name__, system.reader.config == system.config)"
    )
    done = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True)
    known, loaded = done.stdout.splitlines()
    assert known == repr((facts, flags, {}, False))
    assert loaded == f"{type(system).__name__} True"
