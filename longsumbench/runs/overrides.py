"""Overrides: those typed are checked and expanded into points; settings of Python or of a file become some.

    model={"name": "seal"}  →  model=seal        model.page_size=128  →  ++model.page_size=128 (in Hydra's form)

The YAML files hold only departures from the dataclasses, so typed settings are additions for Hydra. The dataclasses
decide which settings exist. Each error proposes what to write instead.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import product
from numbers import Real
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser import overrides_parser, overrides_visitor
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped] # not annotated

from longsumbench.core import SECTIONS, RunConfig, registry
from longsumbench.errors import UnknownName, UsageError, did_you_mean
from longsumbench.files import read_text

_READER = "reader"
# Hydra's parser reads the input in assert statements: without them (python -O) it cannot parse range(1,3) or {a: 1}.
# So its module is compiled again, with them.
if not __debug__:
    _visitor_file = Path(overrides_visitor.__file__)
    _visitor_code = compile(_visitor_file.read_bytes(), str(_visitor_file), "exec", optimize=0)
    exec(_visitor_code, vars(overrides_visitor))  # noqa: S102 - the same module, compiled with them
    overrides_parser.HydraOverrideVisitor = overrides_visitor.HydraOverrideVisitor
# Their values are full of what Hydra reads otherwise, as in "my_tool --words {words} {file}". Without quotes around the
# whole, they are taken as they are typed.
_COMMANDS = ("model.command", "model.version_command")
_NEEDS_NO_QUOTES = re.compile(
    r"(?!(?:null|true|false|nan|inf)$)[a-z_/][\w./-]*", re.ASCII | re.IGNORECASE
)


def format_overrides(settings: Mapping[str, Any], swept: bool = False) -> list[str]:
    """Return settings as overrides.

    Args:
        settings: setting → value. A dictionary as a value holds the settings of a group; `name` chooses in the group.
        swept: whether a list, tuple or range holds values to sweep over.

    Raises:
        UsageError: a value is of a type that no setting has.
    """
    words = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            # Own texts have a name of their own; then the format chooses.
            chooser = _READER if value.get(_READER) else "name"
            inner = {}
            for name, item in value.items():
                chooses = name == chooser and key in GROUPS
                inner[key if chooses else f"{key}.{name}"] = item
            words += format_overrides(inner, swept)
        elif swept and isinstance(value, list | tuple | range):
            if not value:
                raise UsageError(f"{key}={value!r} has no values to sweep over")
            words.append(f"{key}={','.join(_format_value(key, item) for item in value)}")
        else:
            words.append(f"{key}={_format_value(key, value)}")
    return words


def add_config_file(path: str | Path | None, words: Sequence[str]) -> list[str]:
    """Return the overrides that make the configuration of a run again (its `config.yaml`), followed by `words`.

    Single settings among `words` replace those of the file. `overwrite` is not taken from the file. Without a file,
    only `words` are returned.

    Raises:
        UsageError: the file is not the configuration of a run, or `words` choose another model, dataset or recipe.
    """
    if path is None:
        return list(words)
    keys = set(map(override_key, words))
    if groups_typed := sorted(keys & set(GROUPS)):
        raise UsageError(
            f"{groups_typed[0]}= cannot be combined with --config, which chooses it; single settings can"
        )
    values = read_config_file(Path(path))
    if values.get("model.imported"):
        problem = f"--config {path} is that of imported outputs of {values['model.name']}, which cannot be run"
        raise UsageError(f"{problem}: name the config.yaml of another run")
    left_out = {*keys, "overwrite"}
    # Sections take the seed and the device of the run.
    for section, key in product(SECTIONS, ("seed", "device")):
        if values.get(f"{section}.{key}") == values.get(key):
            left_out.add(f"{section}.{key}")
    chooser = f"dataset.{_READER}" if values.get(f"dataset.{_READER}") else "dataset.name"
    groups = {"model.name": "model", chooser: "dataset"}
    settings = {groups.get(key, key): value for key, value in values.items() if key not in left_out}
    return [*format_overrides(settings), *words]


def read_config_file(path: Path) -> dict[str, Any]:
    """Return full key ("train.seed") → value of the configuration of a run.

    Raises:
        UsageError: the file cannot be read, or is something else.
    """
    try:
        content = OmegaConf.to_container(OmegaConf.create(read_text(path)))
    except OSError as error:
        reason = error.strerror or first_error_line(error)
        raise UsageError(f"--config {path} cannot be read: {reason}") from error
    except (ValueError, YAMLError, OmegaConfBaseException) as error:
        problem = first_error_line(error)
        raise UsageError(f"--config {path} cannot be read: {problem}") from error
    values = flatten_config(content) if isinstance(content, dict) else {}
    for key in ("model.name", "dataset.name"):
        if not isinstance(values.get(key), str):
            raise UsageError(
                f"--config {path} is not the config.yaml of a run: model.name and dataset.name are missing"
            )
    return values


def flatten_config(content: Mapping[Any, Any]) -> dict[str, Any]:
    """Return full key ("train.seed") → value of a configuration in sections."""
    values: dict[str, Any] = {}
    for section, inner in content.items():
        if isinstance(inner, dict):
            values |= {f"{section}.{key}": value for key, value in inner.items()}
        else:
            values[str(section)] = inner
    return values


def _format_value(key: str, value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Real():
            return f"{value}"
        case str() | Path():
            text = str(value)
            if _NEEDS_NO_QUOTES.fullmatch(text) and key not in _COMMANDS:
                return text
            return str(QuotedString(text.replace("${", r"\${"), Quote.single).with_quotes())
        case list() | tuple() | range():
            return f"[{','.join(_format_value(key, item) for item in value)}]"
    raise UsageError(
        f"{key}=… is a {type(value).__name__}: give text, a number, True, False, None or a list"
    )


_RUN_HELP = "(see longsumbench run --help)"


# What users of other programs type
_SETTING_ALIASES = {
    "lr": "train.learning_rate",
    "steps": "train.max_steps",
    "beams": "decode.num_beams",
}


def not_an_override(word: str) -> UsageError:
    """Return the error for a word that has no "=" or deletes a setting."""
    for group, table in (("model", registry.systems), ("dataset", registry.corpora)):
        if word in table.targets():
            return UsageError(f"'{word}' is not an override: write {group}={word}")
    return UsageError(f"'{word}' is not an override: write key=value {_RUN_HELP}")


def unknown_setting(key: str) -> UsageError:
    """Return the error for an unknown setting; it proposes the section if only that is missing."""
    sections = [*SECTIONS.items()]
    sections += [("model", registry.load_config_class(name)) for name in registry.systems.shipped()]
    settings = dict.fromkeys((*GROUPS, *TOP_LEVEL_SETTINGS))
    for section, schema in sections:
        settings |= dict.fromkeys(f"{section}.{item.name}" for item in fields(schema))
    matches = [name for name in settings if name.partition(".")[2] == key]
    suggestion = did_you_mean(key.partition(".")[0], settings) or did_you_mean(key, settings)
    alias = _SETTING_ALIASES.get(key.rpartition(".")[2])
    if alias:
        suggestion = f" (did you mean '{alias}'?)"
    elif matches:
        suggestion = f" (did you mean {' or '.join(map(repr, matches))}?)"
    return UsageError(f"unknown setting '{key}'{suggestion} {_RUN_HELP}")


def unknown_choice(group: str, name: str, choices: Iterable[str]) -> UsageError:
    """Return the error for an unknown name in a group; for a path it proposes the right setting."""
    with suppress(
        OSError, RuntimeError, ValueError
    ):  # too long, a loop of links, an unknown home, NUL
        if group == "dataset" and name and Path(name).expanduser().exists():
            return UsageError(f"dataset={name} is a path: write dataset=jsonl dataset.path={name}")
    if group == "model" and "/" in name:
        checkpoint = f"model=seq2seq model.checkpoint={name}, or model=prompt for a language model"
        return UsageError(f"model={name} is a checkpoint: write {checkpoint}")
    return UnknownName(group or "configuration", name, choices)


GROUPS = ("model", "dataset", "scale", "train", "decode", "score", "experiment")
_DOTTED_SECTIONS = ("model", *SECTIONS)
TOP_LEVEL_SETTINGS = tuple(
    item.name for item in fields(RunConfig) if item.name not in (*_DOTTED_SECTIONS, "scale")
)


def as_hydra(word: str) -> str:
    """Check an override and return it in Hydra's form.

    Raises:
        UsageError: the word is not an override, or the setting is unknown.
    """
    key, sign, value = word.lstrip("+~").partition("=")
    if not sign or word.startswith("~"):  # in Hydra, ~ deletes a setting
        raise not_an_override(word)
    head = key.partition(".")[0].partition("/")[0].partition("@")[0]
    if head == "hydra":
        raise UsageError(f"'{word}': Hydra's own settings need `longsumbench run -m`")
    if key in _COMMANDS and value != "null" and not value.startswith(("'", '"')):
        value = ",".join(_format_value(key, command) for command in value.split(","))
    if (head in _DOTTED_SECTIONS and "." in key) or key in TOP_LEVEL_SETTINGS:
        return f"++{key}={value}"
    if head not in GROUPS or "." in key:
        raise unknown_setting(key)
    return f"{key}={value}"


def parse_overrides(words: Sequence[str]) -> list[Override]:
    """Parse overrides in Hydra's form, in a session of Hydra."""
    parser = OverridesParser.create(GlobalHydra.instance().config_loader())
    overrides: list[Override] = parser.parse_overrides(list(words))
    return overrides


def expand(overrides: Sequence[str], sweep: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the overrides of every combination of the swept values.

    Raises:
        UsageError: there are several values without a sweep, or a range, which needs a sweeper.
    """
    choices, swept_keys = [], set()
    for word, override in zip(overrides, parse_overrides(overrides), strict=True):
        key, typed_word = override.get_key_element(), format_override(word)
        several = override.is_sweep_override()
        if several and not sweep:
            raise UsageError(
                f"'{typed_word}' has several values: sweep over them with -m, or quote them"
            )
        if override.is_interval_sweep():
            raise UsageError(f"'{typed_word}' is a range: use hydra/sweeper=optuna to search it")
        names = override.value()
        if isinstance(names, list) and not sets_value(word):
            together = f"-m {key}={','.join(map(str, names))}"
            raise UsageError(
                f"'{word}' has several names: choose one, or sweep over them with {together}"
            )
        if several:
            swept_keys.add(key)
            choices.append([f"{key}={value}" for value in override.sweep_string_iterator()])
        else:
            choices.append([word])
    for combination in product(*choices):
        varying = [
            format_override(word) for word in combination if word.partition("=")[0] in swept_keys
        ]
        yield " ".join(varying), list(combination)


def swept_settings(swept: Sequence[str]) -> list[str]:
    """Return the settings of swept overrides ("model.page_size"), without seeds and without groups."""
    keys = dict.fromkeys(map(override_key, swept))
    return [key for key in keys if "." in key and not key.endswith(".seed")]


def override_key(override: str) -> str:
    """Return the setting or the group of an override ("model.page_size")."""
    return override.lstrip("+").partition("=")[0]


def format_override(override: str) -> str:
    """Return an override without Hydra's plus signs."""
    return override.lstrip("+")


def sets_value(word: str) -> bool:
    """Return True if an override sets a value, False if it chooses a file."""
    return word.startswith("++")


def first_error_line(error: BaseException) -> str:
    """Return the first non-empty line of an error; its type if there is none."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
