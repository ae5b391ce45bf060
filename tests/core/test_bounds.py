"""Every setting has bounds: junk is refused before a run, and what is accepted runs to a documented end."""

import random
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from support.tiny_seq2seq import tiny_checkpoint
from support.toys import refuses

from longsumbench.analysis.dataset.stats import StatsSettings
from longsumbench.core import (
    SECTIONS,
    Between,
    RankerSettings,
    RunConfig,
    build_settings,
    collect_bounds,
    registry,
)
from longsumbench.core.bounds import Date
from longsumbench.core.registry import load_config_class
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.runs import plan as planning
from longsumbench_reproduction.analysis.analyze import ANALYSES
from longsumbench_reproduction.analysis.rank_recall import RankRecallSettings

MODELS = {name: load_config_class(name) for name in registry.systems.shipped()}
ANALYSIS_SETTINGS = {name: analysis.settings for name, analysis in ANALYSES.items()}
COMMANDS = {
    "ranker": RankerSettings,
    "stats": StatsSettings,
    "rank": RankRecallSettings,
    **ANALYSIS_SETTINGS,
}
SCHEMAS = {**MODELS, **SECTIONS, **COMMANDS, "run": RunConfig}
SECTION_KEYS = [
    f"{section}.{item.name}" for section, schema in SECTIONS.items() for item in fields(schema)
]
TOP_KEYS = [
    item.name for item in fields(RunConfig) if item.name not in (*SECTIONS, "model", "scale")
]
JUNK = (
    *(
        "-1",
        "0",
        "1.5",
        "1e30",
        "-1e30",
        "nan",
        "inf",
        "1e-300",
        f"{2**63}",
        f"{10**30}",
        "abc",
        "''",
    ),
    *(
        "null",
        "true",
        "[]",
        "{}",
        "[1",
        "'[--5]'",
        "'[a,1]'",
        "${x}",
        "x" * 10_000,
        "'a\x00\x1b[2Jb'",
    ),
)
SERVER = (
    "model.engine=api model.checkpoint=tiny model.base_url=http://localhost:9/v1 model.reading=whole"
    " model.length=20"
)


BY_NAME = {  # messages that name what a setting chooses instead of its key
    "score.metrics": "unknown metric '",
    "dataset.name": "unknown dataset '",
    "model.rank_checkpoint": "rank_checkpoint",
}


def list_settings(model: str) -> list[str]:
    """Return the full keys of all settings of a run of a model."""
    own = [f"model.{item.name}" for item in fields(MODELS[model]) if item.name != "name"]
    return [*own, *SECTION_KEYS, *TOP_KEYS]


def cases(seed: int, models: tuple[str, ...] = tuple(MODELS)) -> list[tuple[str, str, str]]:
    """Return all (model, key, junk), in an order that the seed decides."""
    shuffled: list[tuple[str, str, str]] = []
    for model in models:
        shuffled += product([model], list_settings(model), JUNK)
    random.Random(seed).shuffle(shuffled)
    return shuffled


def build_words(model: str, key: str, value: str, folder: Path) -> list[str]:
    """Return the words of a command line that sets one key, on toy data; a word that is typed later wins."""
    needed = {
        "pagesum": ["model.init=random"],
        "seq2seq": [f"model.checkpoint={tiny_checkpoint()}"],
        "prompt": SERVER.split(),
        "command": ["model.command=cat"],
    }
    data = ["dataset=jsonl", f"dataset.path={folder}"]
    return [f"model={model}", *data, *needed.get(model, []), f"{key}={value}"]


def check_plan(model: str, key: str, value: str, folder: Path) -> bool:
    """Plan a run with one setting; return whether it is accepted, and if not, check the message."""
    try:
        planning.plan(build_words(model, key, value, folder))
    except UsageError as error:
        message = str(error)
        assert "\n" not in message
        named = key in message or BY_NAME.get(key, key) in message
        assert named or (key == "model.init" and "is not a checkpoint" in message), message
        return False
    except EnvironmentProblem:  # any name may be one on the hub
        return True
    return True


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_setting_declares_its_values(name: str) -> None:
    """Each number has bounds, and each text its allowed values or the declaration that it is free."""
    hints = get_type_hints(SCHEMAS[name])
    for key, bound in collect_bounds(SCHEMAS[name]).items():
        kinds = _types_in(hints[key])
        if {int, float} & kinds:
            assert isinstance(bound, Between), key
        elif str in kinds:
            assert bound is not None, key
            assert not isinstance(bound, Between), key


def _types_in(hint: Any) -> set[Any]:
    return {hint}.union(*map(_types_in, get_args(hint)))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("share", [0.0005, pytest.param(0.1, marks=pytest.mark.slow)])
def test_planning_refuses_junk_in_one_line(share: float, toy: Path) -> None:
    """A setting that is no sensible value ends in one line that names it, before anything is done."""
    every = cases(seed=1)
    for case in every[: int(share * len(every))]:
        check_plan(*case, toy)


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ("2019-10", True),
        ("2020-02-29", True),
        ("2019-13", False),
        ("20191029", False),
    ],
)
def test_a_date_is_a_month_or_a_day(given: str, allowed: bool) -> None:
    """Other notations would be compared wrongly, and are refused."""
    assert (Date().problem(given) is None) == allowed


def test_a_plug_in_needs_no_bounds() -> None:
    """Settings without bounds keep their own checks; only numbers that are not finite are refused."""

    @dataclass
    class Plain:
        name: str = "plain"
        words: int = 5
        rate: float = 0.5

    assert build_settings(Plain, {"words": -(10**12)}, "model.").words == -(10**12)
    with refuses(r"^model\.rate=inf is not a finite number$"):
        build_settings(Plain, {"rate": "inf"}, "model.")
