"""Search for the best settings: Optuna chooses each point by the scores of the points before it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import hydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override

from longsumbench.errors import UsageError
from longsumbench.runs.plan import first_error_line


def search_settings(
    settings: Mapping[str, Any], ranges: Sequence[str], score_of: Callable[[list[str]], float | None]
) -> None:
    """Let Optuna ask for points.

    Args:
        settings: those of conf/hydra/sweeper/optuna.yaml.
        ranges: overrides with several values or a range ("model.length=choice(3,4)").
        score_of: runs a point, given the overrides that Optuna chose; returns None if it failed.

    Raises:
        UsageError: a range or a setting of the search is invalid.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    overrides = OverridesParser.create().parse_overrides(list(ranges))
    try:
        sampler = hydra.utils.instantiate(settings["sampler"])
        study = optuna.create_study(sampler=sampler, direction=settings["direction"])
        trials = range(settings["n_trials"])
    except Exception as error:  # errors of Optuna have no common class
        raise UsageError(f"hydra/sweeper=optuna: {first_error_line(error)} (hydra.sweeper.*)") from error
    for _ in trials:
        trial = study.ask()
        score = score_of([f"{override.get_key_element()}={_suggest(trial, override)}" for override in overrides])
        study.tell(trial, score, optuna.trial.TrialState.FAIL if score is None else None)


def _suggest(trial: Any, override: Override) -> Any:
    """Return Optuna's choice for a setting."""
    name, value = override.key_or_group, override.value()
    if not isinstance(value, IntervalSweep):
        return trial.suggest_categorical(name, list(override.sweep_string_iterator()))
    suggest = trial.suggest_int if isinstance(value.start, int) else trial.suggest_float
    try:
        return suggest(name, value.start, value.end, log="log" in value.tags)
    except ValueError as error:
        raise UsageError(f"'{override.input_line}': {first_error_line(error)}") from error
