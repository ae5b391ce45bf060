"""The run id: a hash of the settings and versions that decide the outcome of a run."""

from collections.abc import Collection, Mapping
from typing import Any

from longsumbench import core, sentences
from longsumbench.corpora.reading.load import Texts
from longsumbench.errors import DataError
from longsumbench.files import digest
from longsumbench.modeling.units import QUERIES_VERSION
from longsumbench.rouge.scorer import SCORING_VERSION

# A version rises when the outcome of its step changes.
STEP_VERSIONS = {
    "decode": 1,
    "score": SCORING_VERSION,
    "sentences": sentences.SENTENCES_VERSION,
    "queries": QUERIES_VERSION,
}


def config_identity(config: core.RunConfig, system: core.System) -> str:
    """Return a hash that is equal for configurations of the same run. It does not need the dataset.

    Configurations with different measures have different hashes, so that a sweep computes all of them. Settings without
    effect are left out; run ids contain them.
    """
    texts = core.outcome_settings(config.dataset)
    measures = core.settings_deciding(config.score, "measures")
    outcome, idle = _outcome(config, system), core.settings_without_effect(config)
    for section in outcome.keys() & {"model", "decode"}:
        outcome[section] = {
            key: value for key, value in outcome[section].items() if f"{section}.{key}" not in idle
        }
    return digest([config.model.name, config.results_dir, texts, outcome, measures])


def _outcome(config: core.RunConfig, system: core.System) -> dict[str, Any]:
    """Return the settings that decide a run's outcome, without the texts."""
    settings: dict[str, Any] = {
        "model": system.identity(),
        "split": config.dataset.split,
        "limit": config.decode.limit,
        "score": core.outcome_settings(config.score),
    }
    words = core.settings_deciding(config.score, "words")
    if words and (system.capabilities.counts_overlap or _learned_ranker(system)):
        settings["words_of_overlap"] = words
    parts = core.deciding_parts(system, config.train, config.decode)
    for section in parts - {"seed"}:
        settings[section] = core.outcome_settings(getattr(config, section))
    if "seed" in parts:
        settings["seed"] = [config.seed, config.train.seed, config.decode.seed]
    return settings


def key_of_run(config: core.RunConfig, system: core.System, texts: Texts) -> core.RunKey:
    """Return what decides the outcome of a run."""
    is_seeded = "seed" in core.deciding_parts(system, config.train, config.decode)
    return core.RunKey(
        model=config.model.name,
        dataset=config.dataset.name,
        split=config.dataset.split,
        seed=config.seed if is_seeded else None,
        fingerprint=texts.fingerprint,
        versions=current_versions(system, texts.metrics),
    )


def id_of_run(
    config: core.RunConfig,
    system: core.System,
    texts: Texts,
    versions: Mapping[str, int] | None = None,
) -> str:
    """Return the id of a run: twelve hexadecimal digits. `versions` are those of the code, by default of this one.

    Raises:
        DataError: the dataset lacks the split to summarize.
    """
    check_split(config.dataset, texts)
    deciding = {
        "model": config.model.name,
        "dataset": config.dataset.name,
        "settings": _outcome(config, system),
        "fingerprint": texts.fingerprint,
        "versions": versions or current_versions(system, texts.metrics),
    }
    if core.counts_letters(texts.splits[config.dataset.split][0].source_text()):
        deciding["letters"] = True  # earlier runs counted words between blanks
    return digest(deciding)[:12]


def check_split(settings: core.DatasetSettings, texts: Texts) -> None:
    """Check that a dataset has the split to summarize.

    Raises:
        DataError: it does not.
    """
    if settings.split not in texts.splits:
        choices = f"choose dataset.split={', '.join(texts.splits)}{texts.way_to_splits}"
        raise DataError(f"{settings.name} has no {settings.split} split; {choices}")


def current_versions(system: core.System, metrics: Collection[str]) -> dict[str, int]:
    """Return the versions of the code that decide the outcome of a run; `metrics` are those of the dataset."""
    ranker = _learned_ranker(system)
    ranker_version = {"ranker": ranker.version} if ranker else {}
    metric_versions = {
        f"metric {name}": core.registry.metrics.load(name).version for name in metrics
    }
    return {**STEP_VERSIONS, **core.system_versions(system), **ranker_version, **metric_versions}


def _learned_ranker(system: core.System) -> type[core.LearnedRanker] | None:
    """Return the class of the ranker that a system fits; None without one."""
    return core.learned_ranker(getattr(system.config, "rank", core.UNRANKED))
