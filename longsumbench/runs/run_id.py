"""The run id: a hash of the settings and versions that decide the outcome of a run."""

from collections.abc import Collection, Mapping
from typing import Any

from longsumbench import core, sentences
from longsumbench.corpora.reading.load import Texts
from longsumbench.errors import DataError
from longsumbench.files import digest
from longsumbench.modeling.versions import QUERIES_VERSION
from longsumbench.rouge.scorer import SCORING_VERSION

# A version rises when the outcome of its step changes.
STEP_VERSIONS = {
    "decode": 1,
    "score": SCORING_VERSION,
    "sentences": sentences.SENTENCES_VERSION,
    "queries": QUERIES_VERSION,
}


def config_identity(config: core.RunConfig) -> str:
    """Return a hash that is equal for configurations of the same run. It does not need the dataset.

    Configurations with different measures have different hashes, so that a sweep computes all of them. Settings without
    effect are left out; run ids contain them.
    """
    texts = core.outcome_settings(config.dataset)
    measures = core.settings_deciding(config.score, "measures")
    outcome, idle = _outcome(config), core.settings_without_effect(config)
    for section in outcome.keys() & {"model", "decode"}:
        outcome[section] = {
            key: value for key, value in outcome[section].items() if f"{section}.{key}" not in idle
        }
    return digest([config.model.name, config.results_dir, texts, outcome, measures])


def _outcome(config: core.RunConfig) -> dict[str, Any]:
    """Return the settings that decide a run's outcome, without the texts."""
    settings: dict[str, Any] = {
        "model": config.model.identity(),
        "split": config.dataset.split,
        "limit": config.decode.limit,
        "score": core.outcome_settings(config.score),
    }
    words, model = core.settings_deciding(config.score, "words"), config.model
    if words and (model.capabilities.counts_overlap or core.learned_ranker(model.rank)):
        settings["words_of_overlap"] = words
    parts = core.deciding_parts(config.model, config.train, config.decode)
    for section in parts - {"seed"}:
        settings[section] = core.outcome_settings(getattr(config, section))
    if "seed" in parts:
        settings["seed"] = [config.seed, config.train.seed, config.decode.seed]
    return settings


def key_of_run(config: core.RunConfig, texts: Texts) -> core.RunKey:
    """Return what decides the outcome of a run."""
    is_seeded = "seed" in core.deciding_parts(config.model, config.train, config.decode)
    return core.RunKey(
        model=config.model.name,
        dataset=config.dataset.name,
        split=config.dataset.split,
        seed=config.seed if is_seeded else None,
        fingerprint=texts.fingerprint,
        versions=current_versions(config.model, texts.metrics),
    )


def id_of_run(
    config: core.RunConfig, texts: Texts, versions: Mapping[str, int] | None = None
) -> str:
    """Return the id of a run: twelve hexadecimal digits. `versions` are those of the code, by default of this one.

    Raises:
        DataError: the dataset lacks the split to summarize.
    """
    check_split(config.dataset, texts)
    deciding = {
        "model": config.model.name,
        "dataset": config.dataset.name,
        "settings": _outcome(config),
        "fingerprint": texts.fingerprint,
        "versions": versions or current_versions(config.model, texts.metrics),
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


def current_versions(model: core.SystemConfig, metrics: Collection[str]) -> dict[str, int]:
    """Return the versions of the code that decide the outcome of a run; `metrics` are those of the dataset."""
    ranker = core.ranker_version(model.rank)
    ranker_version = {} if ranker is None else {"ranker": ranker}
    metric_versions = {
        f"metric {name}": core.registry.metrics.load(name).version for name in metrics
    }
    return {**STEP_VERSIONS, **model.versions(), **ranker_version, **metric_versions}
