"""A setting describes itself: what depends on what it decides, and how it is listed."""

from dataclasses import dataclass

import pytest

from longsumbench.core import (
    SECTIONS,
    RunConfig,
    names_deciding,
    outcome_settings,
    setting,
    settings_deciding,
)
from longsumbench.core.catalogue import setting_rows


@dataclass
class Mine:
    """Settings of a made-up system; one has no description."""

    unit_length: int = setting(64, "longest unit", "tokens", "a paper", decides="units")
    layers: list[int] = setting([1], "layers with attention")
    threads: int = setting(2, "threads of the machine", decides="nothing")
    plain: str | None = None


@dataclass
class NamedSettings:
    """Settings of a made-up system with a name."""

    name: str = setting("mine", "name of the system")


def test_worked_settings() -> None:
    """The rows of a list; a plain field decides everything; a list is not shared."""
    assert setting_rows(Mine, "model.") == [
        ["model.unit_length", "64", "tokens: longest unit (a paper)"],
        ["model.layers", "[1]", "layers with attention"],
        ["model.threads", "2", "threads of the machine"],
        ["model.plain", "", ""],
    ]
    assert names_deciding(Mine, "units", "nothing") == {"unit_length", "threads", "plain"}
    assert settings_deciding(Mine(unit_length=8), "units") == {"unit_length": 8}
    assert outcome_settings(Mine()) == {}
    assert outcome_settings(Mine(layers=[2], threads=1)) == {"layers": [2]}
    assert Mine().layers is not Mine().layers


def test_a_setting_that_is_added_changes_no_id() -> None:
    """Only settings that differ from their default are part of an id; the name of the system always is."""

    @dataclass
    class Wider(NamedSettings):
        width: int = 7

    assert outcome_settings(NamedSettings()) == outcome_settings(Wider()) == {"name": "mine"}
    assert outcome_settings(Wider(width=8)) == {"name": "mine", "width": 8}


@pytest.mark.parametrize("schema", [*SECTIONS.values(), RunConfig])
def test_every_setting_has_a_meaning(schema: type) -> None:
    """`longsumbench list settings` explains each setting."""
    assert [key for key, _, meaning in setting_rows(schema, "") if not meaning] == []
