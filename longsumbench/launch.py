"""From the words of a command line to points: Hydra composes and sweeps, `configuration` checks, `pipeline` runs.

Overrides of a setting (`model.page_size=128`) are handed to Hydra as additions, because its YAML files hold departures
from the dataclasses only; whether such a setting exists is checked against the dataclasses, with better advice.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from longsumbench import registry
from longsumbench.configuration import SECTIONS, RunConfig, resolve
from longsumbench.errors import SuiteError, UnknownName, UsageError, as_suite_error, did_you_mean
from longsumbench.pipeline import Point, with_baselines
from longsumbench.records import RunRecord

CONF = Path(__file__).parent / "conf"
GROUPS = ("model", "dataset", "scale", "train", "decode", "score", "experiment")
SETTINGS = ("model", *SECTIONS)
TOP = tuple(item.name for item in fields(RunConfig) if item.name not in (*SETTINGS, "scale"))


@dataclass
class Launch:
    """One `longsumbench run`: its words, and what became of its points.

    Attributes:
        words: the overrides as typed.
        command: everything as typed, for the records.
        show: only print the resolved configuration.
        finished: the records of this launch's points, baselines included.
        failed: overrides of a point → why.
    """

    words: Sequence[str]
    command: tuple[str, ...] = ()
    show: bool = False
    finished: list[RunRecord] = field(default_factory=list)
    results_dirs: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)

    def start(self, multirun: bool, config_dir: str | None) -> None:
        """Compose the points and run them, one after the other.

        Raises:
            SuiteError: the words cannot be meant, or the only point failed.
        """
        os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach us as exceptions instead of being printed
        flags = ["--multirun"] * multirun + (["--config-dir", config_dir] if config_dir else [])
        if config_dir and not Path(config_dir).is_dir():
            raise UsageError(f"--config-dir {config_dir}: no such folder")
        OmegaConf.register_new_resolver("longsumbench.process", os.getpid, replace=True)
        overrides = [as_hydra(word) for word in self.words]
        offer_plugins(config_dir)
        typed, sys.argv = sys.argv, [sys.argv[0], *overrides, *flags]
        try:
            hydra.main(config_path="pkg://longsumbench.conf", config_name="run", version_base="1.3")(self.point)()
        except (HydraException, OmegaConfBaseException) as error:
            raise translate(error) from error
        finally:
            sys.argv = typed

    def point(self, composed: DictConfig) -> None:
        """Run one point; in a sweep its failure is noted and the others go on."""
        try:
            self._run(composed)
        except Exception as error:
            known = as_suite_error(error)
            if HydraConfig.get().mode != RunMode.MULTIRUN:
                raise known or error from error
            if known is None:
                traceback.print_exc()
            what = " ".join(readable(HydraConfig.get().overrides.task))
            self.failed[what] = str(known or f"{type(error).__name__}: {error}")
            print(f"failed: {what}: {self.failed[what]}", file=sys.stderr)

    def _run(self, composed: DictConfig) -> None:
        model_config = registry.systems.load(composed.model.name).Config
        self._drop_what_others_take(composed, model_config)
        config = resolve(composed, model_config)
        if self.show:
            print(OmegaConf.to_yaml(OmegaConf.structured(config)))
            return
        point = Point(config, variant(composed), self.command, say=lambda line: print(line, file=sys.stderr))
        self.results_dirs.add(config.results_dir)
        self.finished += with_baselines(point)

    def _drop_what_others_take(self, composed: DictConfig, model_config: type) -> None:
        """In a sweep over models, a setting that only some of them have is left out for the others."""
        chosen = [word.partition("=")[2].split(",") for word in self.words if word.startswith("model=")]
        others = [registry.systems.load(name).Config for name in (chosen[-1] if chosen else [])]
        known = {item.name for item in fields(model_config)}
        elsewhere = {item.name for other in others for item in fields(other)}
        for key in list(composed.model):
            if key not in known and key in elsewhere and HydraConfig.get().mode == RunMode.MULTIRUN:
                print(f"model={composed.model.name} has no {key}: left out for it", file=sys.stderr)
                del composed.model[key]


def as_hydra(word: str) -> str:
    """Check a word of the command line and return it as Hydra takes it.

    Raises:
        UsageError: it is no override, or of nothing that exists.
    """
    key, sign, _ = word.lstrip("+~").partition("=")
    if not sign:
        raise UsageError(f"'{word}' is no override: write key=value (see longsumbench run --help)")
    head = key.partition(".")[0].partition("/")[0].partition("@")[0]
    if head in SETTINGS and "." in key:
        return f"++{key}={word.partition('=')[2]}"
    if head not in (*GROUPS, *TOP, "hydra"):
        raise UsageError(f"unknown setting '{key}'{did_you_mean(key, [*GROUPS, *TOP])}")
    return word


def readable(overrides: Sequence[str]) -> list[str]:
    """Return Hydra's overrides as a user would write them."""
    return [str(word).lstrip("+") for word in overrides]


def offer_plugins(config_dir: str | None) -> None:
    """Let systems and corpora of other packages be chosen by name even when they ship no YAML file."""
    folders = [CONF, *([Path(config_dir)] if config_dir else [])]
    store = ConfigStore.instance()
    for group, table in (("model", registry.systems), ("dataset", registry.corpora)):
        for name in table.targets():
            if not any((folder / group / f"{name}.yaml").is_file() for folder in folders):
                node: dict[str, Any] = {"name": name} if group == "model" else {"dataset": {"name": name}}
                store.store(group=group, name=name, node=node, package=group if group == "model" else "_global_")


def variant(composed: DictConfig) -> str:
    """Return the model and decode overrides that differ from the recipe: "input_length=64, num_beams=4"."""
    words = readable(HydraConfig.get().overrides.task)
    typed = [word for word in words if word.startswith(("model.", "decode."))]
    if not typed:
        return ""
    recipe = hydra.compose("run", [as_hydra(word) for word in words if word not in typed])
    kept = []
    for word in typed:
        key = word.partition("=")[0]
        value = OmegaConf.select(composed, key)
        if value != OmegaConf.select(recipe, key) and key != "decode.limit" and key in existing(composed, key):
            kept.append(f"{key.partition('.')[2]}={value}")
    return ", ".join(sorted(kept))


def existing(composed: DictConfig, key: str) -> tuple[str, ...]:
    """Return the key when the point still has it: a sweep drops settings that its system does not have."""
    section, _, name = key.partition(".")
    return (key,) if name.partition(".")[0] in composed.get(section, {}) else ()


def translate(error: Exception) -> SuiteError:
    """Turn what Hydra says of a command line into one line."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        return UnknownName(group or "configuration", name, error.options or choices(group))
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return UsageError(f"{first} (see longsumbench run --help)")


def choices(group: str) -> list[str]:
    """Return the names of a group's YAML files."""
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))
