"""`stats`, and `analyze` with its analyses by name: composes and checks their settings, and carries them out.

The dataset's settings are composed as for `run`. The command's settings are checked against their dataclasses.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped] # has no annotations

from longsumbench.analysis.coherence import CoherenceSettings, analyze_coherence
from longsumbench.analysis.dataset.rank_recall import RankRecall, RankRecallSettings, rank_recall
from longsumbench.analysis.dataset.report import DatasetReport
from longsumbench.analysis.dataset.stats import StatsSettings, describe_dataset
from longsumbench.analysis.fusion import FusionSettings, analyze_fusion
from longsumbench.analysis.locality import LocalitySettings, analyze_locality
from longsumbench.analysis.sampled import AnalysisResult, SampleSettings
from longsumbench.arguments import public_function
from longsumbench.core import (
    DatasetSettings,
    RankerSettings,
    Scoring,
    build_settings,
    names_deciding,
    settings_deciding,
)
from longsumbench.errors import UnknownName, UsageError
from longsumbench.runs.compose import translate_hydra_error
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.plan import plan_dataset
from longsumbench.runs.results import Results


class Analysis(NamedTuple):
    """The dataclass of an analysis's settings, and settings of the dataset, these settings, results → its result."""

    settings: type[SampleSettings]
    find: Callable[..., AnalysisResult]


# Another analysis is one more line here.
ANALYSES: Mapping[str, Analysis] = {
    "locality": Analysis(LocalitySettings, analyze_locality),
    "fusion": Analysis(FusionSettings, analyze_fusion),
    "coherence": Analysis(CoherenceSettings, analyze_coherence),
}

_RANKING_SETTINGS = ("rank", "rank_checkpoint", "unit", "ranker")


@public_function
def stats(words: Sequence[str] = (), **settings: Any) -> DatasetReport | RankRecall:
    """Compute statistics of a dataset, as `longsumbench stats` does; nothing is written.

        stats(dataset="probe", sample=100).table()

    Args:
        words: settings as typed ("dataset=elife").
        settings: the same as arguments; a list is several values. With `rank`, rankers are scored instead.

    Returns:
        The statistics: lengths in words, shares and ROUGE 0–100. With `rank`, recalls 0–100.

    Raises:
        UsageError: a setting is invalid.
        DataError: the texts cannot be used, or lack a split.
    """
    words = [*words, *format_overrides(settings, swept=True)]
    if asks_for_ranking(words):
        return rank_recall(*_plan_rank_recall(words))
    texts, values = _split_settings(words, "stats")
    return DatasetReport(describe_dataset(texts, _build_command_settings(StatsSettings, values)))


@public_function
def analyze(
    analysis: str, words: Sequence[str] = (), results_dir: str | Path = "results", **settings: Any
) -> AnalysisResult:
    """Analyze the texts of a dataset or the summaries of runs, as `longsumbench analyze` does; nothing is written.

        analyze("locality", dataset="aclsum", sample=50).table()

    Args:
        analysis: "locality", "fusion" or "coherence".
        words: settings as typed ("dataset=elife").
        results_dir: where ids of runs are looked for.
        settings: the same as arguments; a list is several values.

    Returns:
        Numbers in `table()`, of fusion in `bars()` and `by_run()`; docs/how-to/analyze.md has their units.

    Raises:
        UsageError: the analysis or a setting is unknown or invalid, or a run has read other texts.
        DataError: the texts cannot be used.
    """
    if analysis not in ANALYSES:
        raise UnknownName("analysis", analysis, ANALYSES)
    texts, values = _split_settings([*words, *format_overrides(settings, swept=True)], "analyze")
    if "run" in values and analysis == "locality":
        raise UsageError("run= has no meaning for locality, which reads only sources: leave it out")
    planned = _build_command_settings(ANALYSES[analysis].settings, values)
    return ANALYSES[analysis].find(texts, planned, Results.at(results_dir))


def asks_for_ranking(words: Sequence[str]) -> bool:
    """Return whether the overrides of `longsumbench stats` name a setting of rankers."""
    return any(_head_of(word) in _RANKING_SETTINGS for word in words)


def _head_of(word: str) -> str:
    """Return the group or setting of an override."""
    return word.lstrip("+~").partition("=")[0].partition(".")[0]


def _plan_rank_recall(
    words: Sequence[str],
) -> tuple[DatasetSettings, RankRecallSettings, RankerSettings]:
    texts, values = _split_settings(words, "stats")
    ranker = _pop_group(values, "ranker")
    if values.get("rank") is None:  # "rank=" names no ranker
        values.pop("rank", None)
    settings: RankRecallSettings = _build_command_settings(RankRecallSettings, values)
    # settings that rankers share with the table are typed once
    inherited = {**settings.shared(), "score": settings_deciding(settings.score, "words")}
    for key in inherited.keys() & ranker.keys():
        raise UsageError(f"ranker.{key} follows {key}: set {key}={ranker[key]}")
    return texts, settings, build_settings(RankerSettings, {**inherited, **ranker}, "ranker.")


def _pop_group(values: dict[str, Any], name: str) -> dict[str, Any]:
    group = values.pop(name, {})
    if not isinstance(group, dict):
        raise UsageError(f"{name}={group} is not a group of settings; set {name}.<setting>=<value>")
    return group


def _build_command_settings(schema: Any, values: dict[str, Any]) -> Any:
    """Build the settings of a command; those that count overlap have the group `score` of a run."""
    if "score" not in schema.__dataclass_fields__:
        return build_settings(schema, values, "")
    group = _pop_group(values, "score")
    for name in sorted(names_deciding(Scoring, "measures") & group.keys()):
        raise UsageError(f"score.{name} adds measures to runs: leave it out here")
    scoring = build_settings(Scoring, group, "score.")
    return build_settings(schema, values, "", groups={"score": scoring})


def _split_settings(words: Sequence[str], command: str) -> tuple[DatasetSettings, dict[str, Any]]:
    """Return the dataset's settings, and the command's settings as nested values."""
    # the dataset is composed by Hydra, the rest is checked against the dataclass of the command
    dataset_words, command_words = [], []
    for word in words:
        if word.partition("=")[0].partition(".")[0] == "dataset":
            dataset_words.append(word)
        elif "=" in word:
            command_words.append(word)
        else:
            advice = f"write key=value (see longsumbench {command} --help)"
            raise UsageError(f"'{word}' is not a setting: {advice}")
    texts = plan_dataset(dataset_words)
    try:
        values = OmegaConf.to_container(OmegaConf.merge({}, *map(_read_setting, command_words)))
    except OmegaConfBaseException as error:
        raise translate_hydra_error(error) from error
    assert isinstance(values, dict)
    return texts, {str(key): value for key, value in values.items()}


def _read_setting(word: str) -> Mapping[str, Any] | DictConfig:
    """Parse one setting of the command; raise UsageError if its value is not valid YAML."""
    key, _, value = word.partition("=")
    if key == "run":  # ids of runs may look like numbers
        return {key: value.replace("'", "").strip()}
    try:
        return OmegaConf.from_dotlist([word])
    except YAMLError as error:
        raise UsageError(
            f"cannot read the value of '{key}': quote it twice, \"{key}='…'\""
        ) from error
