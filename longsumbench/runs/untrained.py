"""Systems that need no training here: baselines, checkpoints that were trained elsewhere, prompted language models."""

import logging
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import FitContext, RunConfig, System, deciding_parts, registry
from longsumbench.errors import UsageError
from longsumbench.runs.pipeline import system_and_texts
from longsumbench.runs.plan import plan
from longsumbench.runs.results import read_run_config

_log = logging.getLogger(__name__)

_USUAL_LENGTH = 100  # words of a summary, where no training texts say how long one is
_SETTING_PREFIXES = ("model.", "decode.", "device=", "seed=")


def plan_by_name(name: str, words: Sequence[str], evidence: str) -> RunConfig:
    """Check the settings of a system that is used as it is; `evidence` is the default of `decode.evidence`.

    Raises:
        UsageError: the system has to be trained, or a setting is unknown or invalid.
    """
    if extra := [word for word in words if not word.startswith(_SETTING_PREFIXES)]:
        raise UsageError(f"'{extra[0]}': model={name} has these settings here: {', '.join(_SETTING_PREFIXES)}")
    config = plan([f"model={name}", "dataset=jsonl", "train.max_steps=0", f"decode.evidence={evidence}", *words])[
        0
    ].config
    if _needs_training(config):
        advice = "name a run (longsumbench list runs) or the folder of a checkpoint"
        raise UsageError(f"model={name} has to be trained first: {advice}")
    if getattr(config.model, "length", None) == "train":
        config.model.length = str(_USUAL_LENGTH)
        _log.info(f"model.length={_USUAL_LENGTH} words, as no training texts say how long a summary is; type another")
    return config


def system_by_name(config: RunConfig) -> System:
    """Return the system of `plan_by_name`, ready to summarize; errors are those of `System.fit`."""
    system: System = registry.systems.load(config.model.name)(config.model)
    system.fit(FitContext(None, None, config.train, user_cache()))
    return system


def was_trained(folder: Path) -> bool:
    """Return True if the system of a run was trained in it."""
    return _needs_training(read_run_config(folder))


def system_of_run(folder: Path) -> System:
    """Return the system of a run that trained nothing, made again from its texts; errors are those of a run."""
    config, stages = read_run_config(folder), user_cache()
    system, texts = system_and_texts(config, stages)
    system.fit(FitContext.of(texts.splits, config.train, stages))
    return system


def _needs_training(config: RunConfig) -> bool:
    system: System = registry.systems.load(config.model.name)(config.model)
    return "train" in deciding_parts(system, config.train, config.decode)
