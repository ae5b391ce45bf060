"""The run id: a hash of the settings and versions that decide the outcome of a run."""

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from longsumbench import sentences
from longsumbench.api import registry
from longsumbench.api.config import Decoding, Recipe, RunConfig, Scoring, without_later_settings
from longsumbench.api.system import System
from longsumbench.corpora.reading.load import Texts
from longsumbench.errors import DataError
from longsumbench.files import digest
from longsumbench.modeling.units import QUERIES_VERSION
from longsumbench.rouge.signature import SCORING_VERSION
from longsumbench.runs.record import RunSpec

# A version rises when the outcome of its step changes.
_VERSIONS = {"decode": 1, "score": SCORING_VERSION, "sentences": sentences.SENTENCES_VERSION}
_ASKED = ("metrics", "coherence_model", "bertscore_model")  # score.*: added to finished runs
# Settings of train, decode and score that change neither summaries nor ROUGE.
_NOT_HASHED = ("device", "workers", "evidence", "reference_evidence", *_ASKED)


def config_identity(config: RunConfig, system: System) -> str:
    """Return a hash that is equal for configurations of the same run. It does not need the dataset.

    Configurations with different measures have different hashes, so that a sweep computes all of them.
    """
    dataset = {**asdict(config.dataset), "results_dir": config.results_dir}
    asked = [getattr(config.score, name) for name in _ASKED]
    return digest([config.model.name, dataset, _outcome_settings(config, system), asked])


def _outcome_settings(config: RunConfig, system: System) -> dict[str, Any]:
    """Return the settings that decide a run's outcome, without the texts."""
    settings: dict[str, Any] = {
        "model": system.identity(),
        "split": config.dataset.split,
        "limit": config.decode.limit,
        "score": hashed_settings(config.score),
    }
    for section in ("train", "decode"):
        if section in system.decided_by:
            settings[section] = hashed_settings(getattr(config, section))
    if "seed" in system.decided_by:
        settings["seed"] = [config.seed, config.train.seed, config.decode.seed]
    return settings


def hashed_settings(section: Recipe | Decoding | Scoring) -> dict[str, Any]:
    """Return the settings of a section that decide a run's outcome."""
    return without_later_settings({key: value for key, value in asdict(section).items() if key not in _NOT_HASHED})


def run_spec(config: RunConfig, system: System, texts: Texts) -> RunSpec:
    """Return all that decides the outcome; its hash is the run id.

    Raises:
        DataError: the dataset lacks the split to summarize.
    """
    if config.dataset.split not in texts.splits:
        has = ", ".join(texts.splits)
        problem = f"{config.dataset.name} has no {config.dataset.split} split; choose dataset.split={has}"
        raise DataError(f"{problem}{texts.way_to_splits}")
    queried = any(split.queried for split in texts.splits.values())
    return run_spec_on(config, system, texts.fingerprint, texts.metrics, queried)


def run_spec_on(
    config: RunConfig, system: System, fingerprint: str, metrics: Collection[str], queried: bool
) -> RunSpec:
    """Return all that decides the outcome, for texts that may be on another machine."""
    metric_versions = {f"metric {name}": registry.metrics.load(name).version for name in metrics}
    if "train" in system.decided_by and queried:
        metric_versions["queries"] = QUERIES_VERSION
    settings, versions = _outcome_settings(config, system), {**_VERSIONS, **system.versions(), **metric_versions}
    return RunSpec(config.model.name, config.dataset.name, settings, fingerprint, versions)
