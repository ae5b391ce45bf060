"""Names → systems, corpora, metrics, rankers."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import MappingProxyType

import pytest
from support.toys import refuses

from longsumbench.core import SystemConfig, registry
from longsumbench.core.catalogue import about
from longsumbench.core.registry import Registry
from longsumbench.errors import BrokenPlugin, UnknownName

KIND = Registry(
    "model",
    "longsumbench.systems",
    MappingProxyType({"path": "pathlib:Path", "gone": "nowhere:Thing"}),
)


def plug_in(monkeypatch: pytest.MonkeyPatch, **targets: str) -> None:
    """Pretend that another package declares these entry points."""
    points = [EntryPoint(name, target, "longsumbench.systems") for name, target in targets.items()]
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [point for point in points if point.group == group]
    )


def test_a_plug_in_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that another package declares works like a built-in one, which keeps its meaning; it is of one kind.

    It is listed with the first line of its docstring.
    """
    plug_in(monkeypatch, mine="pathlib:PurePath", path="nowhere:Thing")
    assert list(KIND.targets()) == ["path", "gone", "mine"]
    assert KIND.load("mine") is Path.__mro__[1]
    assert KIND.load("path") is Path
    assert about(KIND, "mine") == "Base class for manipulating paths without I/O."
    assert "mine" not in registry.corpora.targets()


def test_an_unknown_name_says_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error knows plug-ins too."""
    plug_in(monkeypatch, mine="pathlib:PurePath")
    with refuses(
        r"unknown model 'mien' \(did you mean 'mine'\?\); known: gone, mine, path", UnknownName
    ):
        KIND.load("mien")


@pytest.mark.parametrize("target", ["nowhere:Thing", "pathlib:Nothing", "broken_plug_in:Thing"])
def test_a_broken_plug_in_harms_only_itself(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its import raises is one usage error that names it; listing and other names still work."""
    (tmp_path / "broken_plug_in.py").write_text("raise RuntimeError('at import')")
    monkeypatch.syspath_prepend(tmp_path)
    plug_in(monkeypatch, broken=target)
    with refuses(rf"model 'broken' \({target}\) cannot be imported"):
        KIND.load("broken")
    assert "broken" in KIND.targets()
    assert "cannot be imported" in about(KIND, "broken")
    assert KIND.load("path") is Path


@pytest.mark.parametrize(
    "table", [registry.systems, registry.corpora, registry.metrics, registry.rankers]
)
def test_every_built_in_name_can_be_loaded(table: Registry) -> None:
    """No built-in name means something that is missing."""
    for name in table.shipped():
        assert table.load(name) is not None


class NoConfig:
    """A system without settings."""


class PlainConfig:
    """A system whose settings inherit nothing."""

    @dataclass
    class Config:
        """Settings that know nothing of systems."""

        name: str = "plain"


class Undecorated:
    """A system whose settings are no dataclass."""

    class Config(SystemConfig):
        """Settings without fields."""


@pytest.mark.parametrize("kind", [NoConfig, PlainConfig, Undecorated])
def test_a_plug_in_without_settings_of_a_system_is_named(
    kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says which plug-in it is, where it is, and what its Config has to be."""
    target = f"{__name__}:{kind.__name__}"
    plug_in(monkeypatch, mine=target)
    expected = rf"^model 'mine' \({target}\) has no usable settings: .*inherits longsumbench\.core\.SystemConfig$"
    with refuses(expected, BrokenPlugin):
        registry.load_config_class("mine")
