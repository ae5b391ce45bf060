"""From a resolved configuration to the fewest words of a command line that mean it: what `runs.plan` does, reversed.

Words are looked for under today's settings and YAML files; what these cannot say is named.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from types import NoneType
from typing import Any, get_args, get_type_hints

import hydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from longsumbench.api import registry
from longsumbench.api.config import RunConfig, resolve_config
from longsumbench.conf import CONF
from longsumbench.errors import UsageError
from longsumbench.runs.plan import Planned, as_hydra, compose, offer_plugins, plan, translate_hydra_error

_CHOSEN = ("model.name", "dataset.name", "scale")  # by model=, dataset= and scale=
NOT_OF_THE_POINT = ("overwrite",)  # what was to become of an earlier run
# Settings whose default is another one since some other setting is there: that setting, and the default before.
_CHANGED = {"dataset.strict": ("dataset.workers", True)}


@dataclass(frozen=True)
class Rewritten:
    """A configuration of an earlier day in today's words.

    Attributes:
        words: what to type after `longsumbench run`.
        planned: the point that these mean.
        gone: settings that no longer exist → their values.
        later: settings that came later → their values in this point.
        unlike: settings that come out otherwise → (then, now).
    """

    words: tuple[str, ...]
    planned: Planned
    gone: Mapping[str, Any] = field(default_factory=dict)
    later: Mapping[str, Any] = field(default_factory=dict)
    unlike: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def rewrite(config: Mapping[str, Any], config_dir: str | None = None) -> Rewritten:
    """Return the fewest words that make a resolved configuration again.

    What others follow goes first (the seed), then single values, then lists, which may follow from these.

    Raises:
        UsageError: there is no such system or dataset, or today's code refuses the settings.
    """
    search = _Search(flat(config), config_dir)
    search.choose("scale", config["scale"])
    for path in sorted(CONF.glob("*/*.yaml")):
        if path.parent.name in ("train", "decode", "score"):
            search.choose(path.parent.name, path.stem)
    with suppress(UsageError):  # some settings go together with others only
        search.set(lambda key: "." not in key)
        search.set(lambda key: not isinstance(search.wanted[key], list))
    try:
        search.set(lambda key: True)
    except UsageError as problem:
        search.leave_open(problem)
    search.leave_out_what_follows()
    (planned,) = plan(search.words, config_dir=config_dir)
    then, now = flat(config), flat(asdict(planned.config))
    return Rewritten(
        tuple(search.words),
        planned,
        gone={key: value for key, value in then.items() if key not in now},
        later={key: value for key, value in now.items() if key not in then},
        unlike={key: (value, now[key]) for key, value in then.items() if key in now and now[key] != value},
    )


def flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return full key → value of a resolved configuration ("train.seed")."""
    values: dict[str, Any] = {}
    for section, content in config.items():
        if isinstance(content, Mapping):
            values |= {f"{section}.{key}": value for key, value in content.items()}
        else:
            values[section] = content
    return {key: value for key, value in values.items() if key not in NOT_OF_THE_POINT}


class _Search:
    """Words on their way to a configuration.

    Args:
        wanted: full key → value.
        config_dir: a folder with more YAML files.
    """

    def __init__(self, wanted: Mapping[str, Any], config_dir: str | None) -> None:
        self.wanted = {key: value for key, value in wanted.items() if not _was_default(key, wanted)}
        self._config_dir = config_dir
        self._tried: dict[frozenset[str], dict[str, Any]] = {}
        self._chosen: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        self._take({name: as_word(name, wanted[f"{name}.name"]) for name in ("model", "dataset")})

    @property
    def words(self) -> list[str]:
        """What is to be typed, so far."""
        return list(self._chosen.values())

    def choose(self, group: str, name: str) -> None:
        """Choose a file of a group, if fewer words are to be said then."""
        before, differing = self._chosen, self._differing()
        if any(key.partition(".")[0] == group for key in differing):
            with suppress(UsageError):
                self._take({**before, group: as_word(group, name)})
            if len(differing) - len(self._differing()) < (1 if group == "scale" else 2):
                self._take(before)

    def set(self, which: Callable[[str], bool]) -> None:
        """Set what differs, of the settings that are meant.

        Raises:
            UsageError: today's code refuses it.
        """
        while keys := [key for key in self._differing() if key not in (*_CHOSEN, *self._chosen) and which(key)]:
            self._take({**self._chosen, **{key: as_word(key, self.wanted[key]) for key in keys}})

    def leave_open(self, problem: UsageError) -> None:
        """Leave open one of the system's settings that a scale gives, and that is to follow from others here.

        Raises:
            UsageError: the problem, where that does not help.
        """
        before = self._chosen
        hints = get_type_hints(registry.systems.load(self.wanted["model.name"]).Config)
        open_ones = [f"model.{name}" for name, kind in hints.items() if NoneType in get_args(kind)]
        for key in [key for key in open_ones if key not in before]:
            with suppress(UsageError):
                self._take({**before, key: as_word(key, None)})
                self.set(lambda key: True)
                return
            self._chosen = before
        raise problem

    def leave_out_what_follows(self) -> None:
        """Leave out the settings of the system that follow from its others."""
        for key in [key for key in self._chosen if key.startswith("model.")]:
            before, values = self._chosen, self._values
            with suppress(UsageError):
                self._take({other: word for other, word in before.items() if other != key})
            if self._values != values:
                self._take(before)

    def _take(self, chosen: dict[str, str]) -> None:
        """Take key → word for the words, and see what they mean."""
        words = frozenset(chosen.values())
        if words not in self._tried:
            self._tried[words] = flat(asdict(_mean(list(chosen.values()), self._config_dir)))
        self._chosen, self._values = chosen, self._tried[words]

    def _differing(self) -> list[str]:
        """Return the settings, of those that still exist, that come out otherwise."""
        return [key for key, value in self._values.items() if key in self.wanted and value != self.wanted[key]]


def _was_default(key: str, config: Mapping[str, Any]) -> bool:
    """Tell whether a setting has a value that was the default, before that changed."""
    since, default = _CHANGED.get(key, (key, None))
    return since not in config and config[key] == default


def _mean(words: Sequence[str], config_dir: str | None) -> RunConfig:
    """Return the configuration that words mean: as `plan`, but for what is no part of it.

    Raises:
        UsageError: an override is invalid.
    """
    offer_plugins(config_dir)
    try:
        with hydra.initialize_config_module("longsumbench.conf", version_base="1.3"):
            composed = compose([as_hydra(word) for word in words], config_dir)
    except (HydraException, OmegaConfBaseException) as error:
        raise translate_hydra_error(error) from error
    return resolve_config(composed, registry.systems.load(composed.model.name).Config)


def as_word(key: str, value: Any) -> str:
    """Return an override that gives a setting a value, as it is typed but for the shell's quotes."""
    return f"{key}={as_value(value)}"


def as_value(value: Any) -> str:
    """Return a value in Hydra's grammar, text quoted where it would be read as something else."""
    if isinstance(value, str):
        with suppress(HydraException):
            if OverridesParser.create().parse_override(f"key={value}").value() == value:
                return value
        return str(QuotedString(value.replace("${", r"\${"), Quote.single).with_quotes())
    if isinstance(value, list):
        return f"[{','.join(map(as_value, value))}]"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)
