"""What the words of the commands that look at one dataset mean: `stats` and `analyze`.

Its settings are composed as `run` composes them; the command's own are checked against their dataclasses.
"""

from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped] # it ships no annotations

from longsumbench.analysis.coherence.coherence import CoherenceSettings
from longsumbench.analysis.dataset.rank_recall import RankRecallSettings
from longsumbench.analysis.dataset.stats import StatsSettings
from longsumbench.analysis.fusion.fusion import FusionSettings
from longsumbench.analysis.locality.locality import LocalitySettings
from longsumbench.analysis.sampled import SampleSettings
from longsumbench.api.config import DatasetSettings, RunConfig, build_settings
from longsumbench.api.ranker import RankerSettings
from longsumbench.errors import UsageError
from longsumbench.runs.plan import plan, plan_dataset, translate_hydra_error

_OF_RANKING = ("rank", "unit", "ranker")  # what `longsumbench stats` is asked of rankers
_OF_SYSTEMS = ("model", "scale", "train", "decode", "experiment", "device")  # and of what systems would see
ANALYSIS_SETTINGS = {"locality": LocalitySettings, "fusion": FusionSettings, "coherence": CoherenceSettings}


def asks_for_ranking(words: Sequence[str]) -> bool:
    """Tell whether `longsumbench stats` is asked how much of the references the best paragraphs say."""
    return any(_head_of(word) in _OF_RANKING for word in words)


def _head_of(word: str) -> str:
    """Return the group or setting that a word of the command line begins with."""
    return word.lstrip("+~").partition("=")[0].partition(".")[0]


def plan_description(words: Sequence[str]) -> tuple[DatasetSettings, StatsSettings, list[tuple[RunConfig, str]]]:
    """Compose and check what the words of `longsumbench stats` mean that describe a dataset; do no work.

    Args:
        words: the overrides as typed: `dataset=NAME`, `dataset.*`, `model=NAME[,NAME...]` and what else decides how
            systems read, as `run -m` takes it, and the command's own.

    Returns:
        Which texts; what is asked; settings and variant of each system that is to tell what it would see.

    Raises:
        UsageError: the words cannot be meant.
    """
    of_systems = [word for word in words if _head_of(word) in _OF_SYSTEMS]
    named = [word.partition("=")[2].strip() for word in words if word.partition("=")[0] == "run"]  # ids are no numbers
    others = [word for word in words if word not in of_systems and word.partition("=")[0] != "run"]
    texts, own = _dataset_and_own(others, "stats")
    asked: StatsSettings = build_settings(StatsSettings, {**own, **({"run": named[-1]} if named else {})}, "")
    models = [word for word in of_systems if word.partition("=")[0] == "model"]
    if not of_systems:
        return texts, asked, []
    if not models:
        raise UsageError(f"'{of_systems[0]}' says how a system reads, and none is named: add model=NAME[,NAME...]")
    shared = [word for word in words if _head_of(word) in ("dataset", "seed")]
    points = {one.identity: one for one in plan([*of_systems, *shared], sweep=True)}
    for planned in points.values():
        if planned.config.dataset != texts:
            told = "read the dataset otherwise than dataset=… dataset.* alone say: give these settings, too"
            raise UsageError(f"'{' '.join(of_systems)}' would {told}")
    return texts, asked, [(planned.config, planned.variant) for planned in points.values()]


def plan_stats(words: Sequence[str]) -> tuple[DatasetSettings, RankRecallSettings, RankerSettings]:
    """Compose and check what the words of `longsumbench stats` mean that rank paragraphs; do no work.

    Args:
        words: the overrides as typed: `dataset=NAME`, `dataset.*`, `rank`, `unit`, `seed`, `device`, `ranker.*`.

    Raises:
        UsageError: the words cannot be meant.
    """
    texts, own = _dataset_and_own(words, "stats")
    of_ranker = own.pop("ranker", {})
    if not isinstance(of_ranker, dict):
        raise UsageError(f"ranker={of_ranker} is not a group of settings; set ranker.<setting>=<value>, or rank=<name>")
    if own.get("rank") is None:  # "rank=": nothing is asked for
        own.pop("rank", None)
    asked: RankRecallSettings = build_settings(RankRecallSettings, {str(key): value for key, value in own.items()}, "")
    inherited = {"unit": asked.unit, "seed": asked.seed, "device": asked.device}
    for key in inherited.keys() & of_ranker.keys():
        raise UsageError(f"ranker.{key} follows {key}: set {key}={of_ranker[key]}")
    return texts, asked, build_settings(RankerSettings, {**inherited, **of_ranker}, "ranker.")


def plan_analyze(analysis: str, words: Sequence[str]) -> tuple[DatasetSettings, SampleSettings]:
    """Compose and check what the words of `longsumbench analyze` mean; do no work.

    Args:
        analysis: "locality", "fusion" or "coherence".
        words: the overrides as typed: `dataset=NAME`, `dataset.*`, and the analysis's own settings.

    Raises:
        UsageError: the words cannot be meant.
    """
    runs = [word.partition("=")[2] for word in words if word.partition("=")[0] == "run"]  # an id may look like a number
    others = [word for word in words if word.partition("=")[0] != "run"]
    texts, own = _dataset_and_own(others, "analyze")
    if runs and analysis == "locality":
        raise UsageError("run= has no meaning for locality, which looks at sources only: leave it out")
    asked: SampleSettings = build_settings(
        ANALYSIS_SETTINGS[analysis], {**own, **({"run": runs[-1]} if runs else {})}, ""
    )
    return texts, asked


def _dataset_and_own(words: Sequence[str], command: str) -> tuple[DatasetSettings, dict[str, Any]]:
    """Read the words of a command that looks at one dataset: its settings, and the command's own as nested values.

    Args:
        words: the overrides as typed: `dataset=NAME`, `dataset.*`, and the command's own keys.
        command: its name, for messages.

    Raises:
        UsageError: the words cannot be meant.
    """
    of_dataset = [word for word in words if word.partition("=")[0].partition(".")[0] == "dataset"]
    others = [word for word in words if word not in of_dataset]
    for word in others:
        if "=" not in word:
            raise UsageError(f"'{word}' is no setting: write key=value (see longsumbench {command} --help)")
    texts = plan_dataset(of_dataset)
    try:
        own = OmegaConf.to_container(OmegaConf.merge({}, *map(_read, others)))
    except OmegaConfBaseException as error:
        raise translate_hydra_error(error) from error
    assert isinstance(own, dict)
    return texts, {str(key): value for key, value in own.items()}


def _read(word: str) -> DictConfig:
    """Read one setting of the command.

    Raises:
        UsageError: its value cannot be read.
    """
    try:
        return OmegaConf.from_dotlist([word])
    except YAMLError as error:
        key = word.partition("=")[0]
        raise UsageError(f"cannot read the value of '{key}': quote it twice, \"{key}='…'\"") from error
