"""What decides a run's outcome: the settings and versions that its id is made of."""

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

_VERSIONS = {
    "decode": 1,
    "score": SCORING_VERSION,
    "sentences": sentences.SENTENCES_VERSION,
}  # rise with a step's outcome
_ASKED = ("metrics", "coherence_model", "bertscore_model")  # of score: what they ask for is added to a finished run
# of train, decode and score: they change no summary, no ROUGE
_NOT_HASHED = ("device", "workers", "evidence", "reference_evidence", *_ASKED)


def config_identity(config: RunConfig, system: System) -> str:
    """Return what is equal for two configurations that are the same run, without reading the dataset.

    One that asks for other measures of a run is not the same, so that both of a sweep are measured.
    """
    dataset = {**asdict(config.dataset), "results_dir": config.results_dir}
    asked = [getattr(config.score, name) for name in _ASKED]
    return digest([config.model.name, dataset, _outcome_settings(config, system), asked])


def _outcome_settings(config: RunConfig, system: System) -> dict[str, Any]:
    """Return the settings that decide a run's outcome, beside the dataset's texts."""
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
    """Return all that decides the outcome, and nothing else: its hash is the run id.

    Raises:
        DataError: the dataset does not have the split that is to be summarized.
    """
    if config.dataset.split not in texts.splits:
        has = ", ".join(texts.splits)
        told = f"{config.dataset.name} has no {config.dataset.split} split; choose dataset.split={has}"
        raise DataError(f"{told}{texts.way_to_splits}")
    queried = any(split.queried for split in texts.splits.values())
    return run_spec_on(config, system, texts.fingerprint, texts.metrics, queried)


def run_spec_on(
    config: RunConfig, system: System, fingerprint: str, metrics: Collection[str], queried: bool
) -> RunSpec:
    """Return all that decides the outcome on texts that need not be here.

    Args:
        config: of the run.
        system: with the run's settings.
        fingerprint: of the texts.
        metrics: those that the dataset names.
        queried: whether the texts come with queries.
    """
    beside = {f"metric {name}": registry.metrics.load(name).version for name in metrics}
    if "train" in system.decided_by and queried:
        beside["queries"] = QUERIES_VERSION
    settings, versions = _outcome_settings(config, system), {**_VERSIONS, **system.versions(), **beside}
    return RunSpec(config.model.name, config.dataset.name, settings, fingerprint, versions)
