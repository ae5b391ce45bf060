"""`stats`: composes and checks its settings, and computes the statistics; commands of plug-ins use the same functions.

The dataset's settings are composed as for `run`. The command's settings are checked against their dataclasses.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped] # has no annotations

from longsumbench.analysis.dataset.stats import StatsSettings, describe_dataset
from longsumbench.analysis.dataset.tables import DatasetReport
from longsumbench.arguments import public_function
from longsumbench.core import DatasetSettings, Scoring, build_settings, names_deciding
from longsumbench.core.registry import Registry
from longsumbench.errors import UsageError
from longsumbench.runs.compose import translate_hydra_error
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.plan import plan_dataset

if TYPE_CHECKING:
    import pandas as pd


# A setting of `stats` → "module:attribute" of a function: words → `StatsReport`. With the setting, `stats` calls it.
statistics = Registry("statistic", "longsumbench.statistics")


class StatsReport(Protocol):
    """What `longsumbench stats` shows and writes."""

    def table(self) -> "pd.DataFrame":
        """Return the numbers."""

    def render(self) -> str:
        """Return the tables for the terminal."""

    def csv(self) -> str:
        """Return all numbers as CSV, one in a row."""


@public_function
def stats(words: Sequence[str] = (), **settings: Any) -> StatsReport:
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
    if name := plugged_statistic(words):
        report: StatsReport = statistics.load(name)(words)
        return report
    texts, values = split_settings(words, "stats")
    return DatasetReport(describe_dataset(texts, build_command_settings(StatsSettings, values)))


def plugged_statistic(words: Sequence[str]) -> str | None:
    """Return the first setting of `longsumbench stats` that asks for the statistics of a plug-in."""
    names = (word.lstrip("+~").partition("=")[0].partition(".")[0] for word in words)
    return next((name for name in names if name in statistics.targets()), None)


def pop_group(values: dict[str, Any], name: str) -> dict[str, Any]:
    """Remove a group of settings from the values of a command, and return it."""
    group = values.pop(name, {})
    if not isinstance(group, dict):
        raise UsageError(f"{name}={group} is not a group of settings; set {name}.<setting>=<value>")
    return group


def build_command_settings(schema: Any, values: dict[str, Any]) -> Any:
    """Build the settings of a command; those that count overlap have the group `score` of a run."""
    if "score" not in schema.__dataclass_fields__:
        return build_settings(schema, values, "")
    group = pop_group(values, "score")
    for name in sorted(names_deciding(Scoring, "measures") & group.keys()):
        raise UsageError(f"score.{name} adds measures to runs: leave it out here")
    scoring = build_settings(Scoring, group, "score.")
    return build_settings(schema, values, "", groups={"score": scoring})


def split_settings(words: Sequence[str], command: str) -> tuple[DatasetSettings, dict[str, Any]]:
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
