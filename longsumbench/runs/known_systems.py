"""Facts of neural systems, cached: planning and finished runs ask only for these, and loading torch takes seconds."""

import json
import sys
from contextlib import suppress
from dataclasses import asdict
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypedDict, cast

import longsumbench
from longsumbench.cache.artifacts import cache_folder
from longsumbench.core import TRAINED_TOKENIZERS, UNRANKED, Capabilities, System, registry
from longsumbench.errors import EnvironmentProblem
from longsumbench.files import BadFile, digest, read_json, write_atomically


class _Facts(TypedDict):
    decided_by: list[str]
    capabilities: Capabilities
    identity: dict[str, Any]
    version: int
    step_versions: dict[str, int]


class _KnownSystem:
    """Answers by the facts of a system that learned nothing yet; anything else that is asked of it loads the system."""

    def __init__(self, config: Any, facts: _Facts) -> None:
        self.config = config
        self.decided_by, self.capabilities = frozenset(facts["decided_by"]), facts["capabilities"]
        self.version, self.step_versions = facts["version"], facts["step_versions"]
        self.identity = lambda: facts["identity"]

    @cached_property
    def loaded(self) -> System:
        system: System = registry.systems.load(self.config.name)(self.config)
        return system

    def __getattr__(self, name: str) -> Any:
        if name == "state" and "loaded" not in vars(self):
            return {}
        return getattr(self.loaded, name)


def make_system(config: Any) -> System:
    """Return the system of some settings. If its facts are known, its code is loaded when it has to work.

    Raises:
        SuiteError: as making a system.
    """
    cacheable = _is_described_by_settings(config)
    path = cache_folder() / "systems" / f"{digest([asdict(config), _code_state()])[:24]}.json"
    if cacheable and registry.systems.built_in[config.name].partition(":")[0] not in sys.modules:
        with suppress(FileNotFoundError, BadFile):
            return cast(System, _KnownSystem(config, read_json(path, _Facts)))
    system: System = registry.systems.load(config.name)(config)
    if cacheable and not path.exists():
        with suppress(
            OSError, EnvironmentProblem
        ):  # a package that is missing is reported where it is needed
            facts = {
                "decided_by": sorted(system.decided_by),
                "capabilities": asdict(system.capabilities),
                "identity": system.identity(),
                "version": system.version,
                "step_versions": dict(system.step_versions),
            }
            write_atomically(path, json.dumps(facts))
    return system


def loaded_system(system: System) -> System:
    """Return a system with its code."""
    loaded: System = getattr(system, "loaded", system)
    return loaded


def _is_described_by_settings(config: Any) -> bool:
    """Return True for a built-in neural system that no file and no plug-in decides: its facts follow from the code."""
    starts_at_random = getattr(config, "init", None) == "random" and not hasattr(
        config, "checkpoint"
    )
    own_tokenizer = getattr(config, "tokenizer", None) in TRAINED_TOKENIZERS
    own_ranker = getattr(config, "rank", UNRANKED) in (UNRANKED, *registry.rankers.built_in)
    return (
        config.name in registry.systems.built_in
        and starts_at_random
        and own_tokenizer
        and own_ranker
    )


@cache
def _code_state() -> list[list[Any]]:
    """Return path, size and time of every file of the suite's code: other code may give other facts."""
    root = Path(longsumbench.__file__).parent
    files = sorted(path for folder in (root, root / "models") for path in folder.rglob("*.py"))
    return [[str(path), (status := path.stat()).st_size, status.st_mtime_ns] for path in files]
