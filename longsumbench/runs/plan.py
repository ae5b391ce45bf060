"""From the words of a command line to points: Hydra composes, `configuration` checks, `launch` runs them.

All points of a sweep are composed and checked before the first one runs, so that a misspelt setting costs no time.
Overrides of a setting (`model.page_size=128`) are handed to Hydra as additions, because its YAML files hold departures
from the dataclasses only; whether such a setting exists is checked against the dataclasses, with better advice.
"""

import copy
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped] # it ships no annotations

from longsumbench.api import registry
from longsumbench.api.config import (
    SECTIONS,
    DatasetSettings,
    Decoding,
    RunConfig,
    build_settings,
    check_lengths,
    resolve_config,
)
from longsumbench.api.system import System, check_search
from longsumbench.cache.artifacts import ArtifactCache, cache_folder
from longsumbench.conf import CONF
from longsumbench.corpora.reading.hub import check_copy_or_network
from longsumbench.errors import EnvironmentProblem, SuiteError, UsageError
from longsumbench.files import digest
from longsumbench.progress import print_line, track
from longsumbench.runs.override_advice import not_an_override, unknown_choice, unknown_setting
from longsumbench.runs.run_id import config_identity

GROUPS = ("model", "dataset", "scale", "train", "decode", "score", "experiment")
_SETTINGS = ("model", *SECTIONS)
TOP_LEVEL_SETTINGS = tuple(item.name for item in fields(RunConfig) if item.name not in (*_SETTINGS, "scale"))
_MODELS = "models"  # in a scale's file: system → its settings
_ALL = "all"  # among these systems: settings of all systems that have them
_OWN_SWEEP = "sweep"  # in an experiment's file: a list of lines, each the words of points as typed behind -m
_NO_VARIANT = ("device", "limit", "evidence", "reference_evidence")  # of decode: they change no summary


@dataclass(frozen=True)
class Planned:
    """A point that is settled but not begun.

    Attributes:
        name: the words in which it differs from the others of its sweep; empty for a point alone.
        config: all that was chosen.
        variant: the model and decode overrides that differ from the recipe ("input_length=64,norm=post").
        identity: equal for points that are one run, because they differ in nothing their system depends on.
        scale_typed: whether the user typed `scale=`.
    """

    name: str
    config: RunConfig
    variant: str
    identity: str
    scale_typed: bool = False


def plan(
    words: Sequence[str], sweep: bool = False, config_dir: str | None = None, probe: bool = False
) -> list[Planned]:
    """Compose and check the points that the words of a command line mean; do no work.

    Args:
        words: the overrides as typed.
        sweep: whether comma-separated values are swept over.
        config_dir: a folder with more YAML files.
        probe: whether to look if the texts, and what the metrics need, can be had.

    Raises:
        UsageError: the words cannot be meant.
        EnvironmentProblem: all texts are on the hub, no copy is here, and it cannot be reached; or a metric lacks a
            package or a model.
    """
    check_folder(config_dir)
    offer_plugins(config_dir)
    overrides = [as_hydra(word) for word in words]
    try:
        with hydra.initialize_config_module("longsumbench.conf", version_base="1.3"):
            named = [
                point
                for name, chosen in expand(overrides, sweep)
                for point in _of_experiment(name, chosen, sweep, config_dir)
            ]
            told = track(named, "planning", len(named), "points") if sweep else named  # ten points take a second or two
            composed = [compose(chosen, config_dir) for _, chosen in told]
            if probe:
                _check_datasets(composed)
            if sweep:
                _leave_out_what_others_take(composed)
            pairs = zip(named, composed, strict=True)
            points = [_settle_point(name, chosen, one, config_dir, probe) for (name, chosen), one in pairs]
            _check_metrics(points, probe)
            return points
    except (HydraException, OmegaConfBaseException) as error:
        raise translate_hydra_error(error) from error


def plan_dataset(words: Sequence[str]) -> DatasetSettings:
    """Compose and check the settings of a dataset from `dataset=NAME` and `dataset.*`, as `plan` does.

    Raises:
        UsageError: an override is invalid.
    """
    offer_plugins(None)
    try:
        with hydra.initialize_config_module("longsumbench.conf", version_base="1.3"):
            ((_, chosen),) = expand([as_hydra(word) for word in words], sweep=False)
            section = OmegaConf.to_container(compose(chosen, None).dataset, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise translate_hydra_error(error) from error
    assert isinstance(section, dict)
    settings = {str(key): value for key, value in section.items()}
    dataset: DatasetSettings = build_settings(DatasetSettings, settings, "dataset.")
    return dataset


def check_folder(config_dir: str | None) -> None:
    """Check that a folder with more YAML files is there, before Hydra warns of it in its own way.

    Raises:
        UsageError: it is not.
    """
    if config_dir is not None and not Path(config_dir).is_dir():
        raise UsageError(f"--config-dir {config_dir}: no such folder")


def as_hydra(word: str) -> str:
    """Check a word of the command line and return it as Hydra takes it.

    Raises:
        UsageError: it is no override, or of nothing that exists.
    """
    key, sign, value = word.lstrip("+~").partition("=")
    if not sign or word.startswith("~"):  # Hydra's sign for what is to be deleted
        raise not_an_override(word)
    head = key.partition(".")[0].partition("/")[0].partition("@")[0]
    if head == "hydra":
        raise UsageError(f"'{word}': Hydra's own settings go with `longsumbench run -m` alone")
    if (head in _SETTINGS and "." in key) or key in TOP_LEVEL_SETTINGS:
        return f"++{key}={value}"
    if head not in GROUPS or "." in key:
        raise unknown_setting(key, [*GROUPS, *TOP_LEVEL_SETTINGS])
    return f"{key}={value}"


def expand(overrides: Sequence[str], sweep: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield every combination of the values that are swept over: its name, and its overrides.

    Raises:
        UsageError: several values are given, but no sweep is asked for; or a range, in which only a sweeper searches.
    """
    parsed = OverridesParser.create(GlobalHydra.instance().config_loader()).parse_overrides(list(overrides))
    choices, swept = [], []
    for word, override in zip(overrides, parsed, strict=True):
        swept.append(override.is_sweep_override())
        if swept[-1] and not sweep:
            raise UsageError(
                f"'{format_override(word)}' has several values: sweep over them with -m, or quote them as one"
            )
        if override.is_interval_sweep():
            raise UsageError(
                f"'{format_override(word)}' names no values, only their range: hydra/sweeper=optuna searches in it"
            )
        if isinstance(names := override.value(), list) and not _is_set(word):
            together = f"-m {override.get_key_element()}={','.join(map(str, names))}"
            raise UsageError(f"'{word}' names several at once: choose one, or sweep over them with {together}")
        values = override.sweep_string_iterator() if swept[-1] else ()
        choices.append([f"{override.get_key_element()}={value}" for value in values] if swept[-1] else [word])
    for chosen in product(*choices):
        varying = (format_override(word) for word, varies in zip(chosen, swept, strict=True) if varies)
        yield " ".join(varying), list(chosen)


def split_sweep_overrides(words: Sequence[str], config_dir: str | None = None) -> tuple[list[str], list[str]]:
    """Return the words that give one value, and those that give several or a range.

    Raises:
        UsageError: a word cannot be meant.
    """
    offer_plugins(config_dir)
    overrides = [as_hydra(word) for word in words]
    try:
        with hydra.initialize_config_module("longsumbench.conf", version_base="1.3"):
            parsed = OverridesParser.create(GlobalHydra.instance().config_loader()).parse_overrides(overrides)
    except HydraException as error:
        raise translate_hydra_error(error) from error
    swept = [override.is_sweep_override() for override in parsed]
    pairs = list(zip(words, swept, strict=True))
    return [word for word, several in pairs if not several], [word for word, several in pairs if several]


def swept_settings(words: Sequence[str], config_dir: str | None = None) -> list[str]:
    """Return the settings that are swept over ("model.page_size"): no seeds, and nothing that is chosen by name."""
    keys = [word.lstrip("+~").partition("=")[0] for word in split_sweep_overrides(words, config_dir)[1]]
    return [key for key in dict.fromkeys(keys) if "." in key and not key.endswith(".seed")]


def _of_experiment(
    name: str, overrides: Sequence[str], sweep: bool, config_dir: str | None
) -> Iterator[tuple[str, list[str]]]:
    """Yield the points that an experiment's own sweep makes of one; the point itself where none is chosen.

    Its words come before those that were typed, which therefore go before them, as before all that a file says.

    Raises:
        UsageError: it has points of its own, but no sweep is asked for, or they are not lines of words.
    """
    typed = {word.partition("=")[0]: format_override(word) for word in overrides}
    chosen = [word.partition("=")[2] for word in typed.values() if word.startswith("experiment=")]
    lines = compose_overrides(overrides, config_dir).get(_OWN_SWEEP) if chosen else None
    if lines is None:
        yield name, list(overrides)
        return
    if (
        isinstance(lines, str)
        or not isinstance(lines, Sequence)
        or not lines
        or not all(isinstance(line, str) and line.strip() for line in lines)
    ):
        form = "of lines with words as they would be typed behind -m"
        raise UsageError(f"experiment={chosen[-1]}: '{_OWN_SWEEP}' in its file is not a list {form}")
    if not sweep:
        raise UsageError(f"experiment={chosen[-1]} is a sweep over several points: run it with -m, without a sweeper")
    try:
        typed_lines = [shlex.split(line) for line in lines]
    except ValueError as error:  # a quotation mark that is not closed
        raise UsageError(f"experiment={chosen[-1]}: '{_OWN_SWEEP}' in its file cannot be read ({error})") from error
    points = [point for line in typed_lines for _, point in expand([as_hydra(word) for word in line], sweep)]
    for point in points:
        differing = [word for word in point if not all(word in other for other in points)]
        own = (
            typed.get(word.partition("=")[0], format_override(word)) for word in differing
        )  # the name says what is taken
        yield " ".join(filter(None, [name, *(word for word in own if word not in name.split())])), [*point, *overrides]


def compose(overrides: Sequence[str], config_dir: str | None) -> DictConfig:
    """Return what the overrides make of the YAML files; what an experiment sweeps over is left out."""
    composed = compose_overrides(overrides, config_dir)
    composed.pop(_OWN_SWEEP, None)
    return composed


def compose_overrides(overrides: Sequence[str], config_dir: str | None) -> DictConfig:
    """Let Hydra lay the overrides over the YAML files, the same ones once."""
    return copy.deepcopy(_laid(tuple(overrides), config_dir))


@lru_cache(maxsize=64)
def _laid(overrides: tuple[str, ...], config_dir: str | None) -> DictConfig:
    of_groups = tuple(word for word in overrides if not _is_set(word))
    if len(of_groups) < len(overrides):  # the files are read once for all points that choose the same ones
        return _with_settings(compose_overrides(of_groups, config_dir), [word for word in overrides if _is_set(word)])
    searched = [f"hydra.searchpath=[{quote_folder(config_dir, 'file://')}]"] if config_dir is not None else []
    try:
        composed: DictConfig = hydra.compose("run", [*of_groups, *searched])
    except ValueError as error:  # Hydra's, of a group's value that is no name
        raise UsageError(f"{error} (see longsumbench run --help)") from error
    OmegaConf.set_struct(composed, False)
    if composed.get(_MODELS) in scale_models(config_dir).values():  # else it is an unknown setting of another file
        del composed[_MODELS]
    return composed


def _is_set(word: str) -> bool:
    """Tell whether one of Hydra's overrides sets a value, and does not choose a file."""
    return word.startswith("++")


def _with_settings(composed: DictConfig, words: Sequence[str]) -> DictConfig:
    """Lay settings over a configuration, as Hydra does after it has read all files.

    Raises:
        UsageError: a value refers to another one in a way that cannot be read ("${").
    """
    for override in OverridesParser.create().parse_overrides(list(words)):
        try:
            OmegaConf.update(composed, override.key_or_group, override.value(), merge=True, force_add=True)
        except OmegaConfBaseException as error:
            typed = format_override(override.input_line or override.key_or_group)
            told = f"'{typed}' cannot be meant: {first_error_line(error)}"
            raise UsageError(f"{told} (see longsumbench run --help)") from error
    return composed


def quote_folder(folder: Path | str, before: str = "") -> str:
    """Return a folder's path as Hydra reads it, whatever its name."""
    path = str(Path(folder).resolve()).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{before}{path}'"


def _check_datasets(points: Sequence[DictConfig]) -> None:
    """Look, before the seconds that importing a network takes, whether the texts of any point can be had.

    Raises:
        EnvironmentProblem: those of none.
    """
    stages, problems = ArtifactCache(cache_folder()), []
    chosen = dict.fromkeys((str(one.dataset.name), OmegaConf.select(one, "dataset.path")) for one in points)
    for name, path in chosen:
        corpus = registry.corpora.load(name)
        if path is None and corpus.hub is not None and corpus.built_in is None:
            try:
                check_copy_or_network(corpus, stages)
            except EnvironmentProblem as problem:
                problems.append(problem)
    if len(problems) == len(chosen):
        raise problems[0]


def _check_metrics(points: Sequence[Planned], probe: bool) -> None:
    """Look for the metrics by which the points are scored and, to probe, for what they need; the same once.

    Raises:
        UsageError: nobody registered a metric, or a setting of it is missing or cannot be meant.
        EnvironmentProblem: a package or a model is missing.
    """
    checked = []
    for config in (planned.config for planned in points):
        wanted = dict.fromkeys([*registry.corpora.load(config.dataset.name).metrics, *config.score.metrics])
        if probe:
            wanted["rouge"] = None  # stemmed perl mode needs WordNet's lists
        for name in wanted:
            metric = registry.metrics.load(name)(config.score)
            if probe and (name, config.score) not in checked:
                checked.append((name, config.score))
                metric.check()


def _leave_out_what_others_take(points: Sequence[DictConfig]) -> None:
    """In a sweep over models, leave out a setting that only some of them have for the others; say so once."""
    known = {
        name: {item.name for item in fields(registry.systems.load(name).Config)}
        for name in dict.fromkeys(str(composed.model.name) for composed in points)
    }
    anywhere = set().union(*known.values())
    without: dict[str, dict[str, None]] = {}
    for composed in points:
        for key in [str(key) for key in composed.model if key in anywhere - known[composed.model.name]]:
            without.setdefault(key, {})[composed.model.name] = None
            del composed.model[key]
    for models in dict.fromkeys(", ".join(names) for names in without.values()):
        keys = ", ".join(f"model.{key}" for key, names in without.items() if ", ".join(names) == models)
        have = "have" if ", " in models else "has"
        print_line(f"left out for {models}, which {have} no such settings: {keys}")


def _settle_point(
    name: str, overrides: Sequence[str], composed: DictConfig, config_dir: str | None, probe: bool
) -> Planned:
    """Check a composed point; unless probing, a checkpoint on the hub need not be there."""
    system_class = registry.systems.load(composed.model.name)
    config = resolve_config(composed, system_class.Config)
    check_lengths(config.model, config.decode)
    system = system_class(config.model)
    check_evidence(system, config.decode)
    check_search(system, config.decode)
    try:
        same = config_identity(config, system)
    except EnvironmentProblem:
        if probe:
            raise
        same = digest(asdict(config))
    scale_typed = any(format_override(word).startswith("scale=") for word in overrides)
    return Planned(name, config, _variant(overrides, config, system.decided_by, config_dir), same, scale_typed)


def check_evidence(system: System, decode: Decoding) -> None:
    """Check that a system can say what is looked at for a reference, where that is asked for.

    Raises:
        UsageError: it cannot.
    """
    if decode.reference_evidence and not (system.keeps_evidence and system.keeps_reference_evidence):
        told = f"model={system.config.name}, at least with these settings, cannot tell what is looked at for one"
        raise UsageError(f"decode.reference_evidence=true asks what is looked at for the reference: {told}")


def _variant(overrides: Sequence[str], config: RunConfig, decided_by: frozenset[str], config_dir: str | None) -> str:
    """Return the model and decode overrides that differ from the recipe and decide the outcome, sorted.

    What a list is by itself may follow from other settings (all layers, of as many as there are): it differs where it
    is not what these make of it.
    """
    kept = [word for word in overrides if not format_override(word).startswith(("model.", "decode.", "decode="))]
    if len(kept) == len(overrides):
        return ""
    typed = {format_override(word).partition("=")[0] for word in overrides}
    recipe = _usual_settings(kept, config, config_dir)
    lists = {f"model.{key}" for key, value in asdict(config.model).items() if isinstance(value, list)}
    known = {f"model.{key}" for key in asdict(config.model)} - lists  # others were left out: see plan
    others = [word for word in overrides if word in kept or format_override(word).partition("=")[0] in known]
    recipe_of_lists = _usual_settings(others, config, config_dir) if lists else recipe
    changed = []
    for section in ("model", *({"decode"} & decided_by)):
        for key, value in asdict(getattr(config, section)).items():
            usual = asdict(getattr(recipe_of_lists if isinstance(value, list) else recipe, section))[key]
            settled = value is None and f"{section}.{key}" not in typed  # it follows from what was typed
            if value != usual and not settled and (section == "model" or key not in _NO_VARIANT):
                changed.append(f"{key}={format_setting(value)}")
    return ",".join(sorted(changed))


def _usual_settings(overrides: Sequence[str], config: RunConfig, config_dir: str | None) -> RunConfig:
    """Return what some overrides of a point would make of it alone.

    A value that the user must give is missing: whatever is given differs from the default.
    """
    composed = compose(overrides, config_dir)
    for section in ("model", "decode"):
        for key in [key for key in composed[section] if OmegaConf.is_missing(composed[section], key)]:
            del composed[section][key]
    return resolve_config(composed, type(config.model))


def format_setting(value: Any) -> str:
    """Return a setting's value as it is typed on the command line; of a folder only its own name."""
    if isinstance(value, list):
        return f"[{','.join(map(format_setting, value))}]"
    if isinstance(value, str) and "/" in value and Path(value).expanduser().is_dir():
        return Path(value).name
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value))


def format_override(override: str) -> str:
    """Return one of Hydra's overrides as a user would write it."""
    return override.lstrip("+")


def offer_plugins(config_dir: str | None) -> None:
    """Let all systems and corpora be chosen by name, those of other packages too, even without a YAML file.

    YAML files are read anew from here on.
    """
    _laid.cache_clear()
    files = [path for folder in _folders(config_dir) for path in folder.glob("*/*.yaml") if path.is_file()]
    names = (tuple(registry.systems.targets()), tuple(registry.corpora.targets()))
    _offer(config_dir, *names, tuple((path, path.stat().st_mtime_ns) for path in files))


@lru_cache(maxsize=1)  # what is offered stays so until something differs
def _offer(
    config_dir: str | None, models: tuple[str, ...], datasets: tuple[str, ...], files: tuple[tuple[Path, int], ...]
) -> None:
    scale_models.cache_clear()
    nodes: dict[str, dict[str, Any]] = {group: {"default": {group: {}}} for group in ("train", "decode", "score")}
    for group, names in (("model", models), ("dataset", datasets)):
        nodes[group] = {name: {group: {"name": name}} for name in names}
    nodes["scale/model"] = _sizes(config_dir)
    store = ConfigStore.instance()
    for group, named in nodes.items():
        store.repo.pop(group.partition("/")[0], None)  # of an earlier folder
        for name, node in named.items():
            if not any((folder / group / f"{name}.yaml").is_file() for folder in _folders(config_dir)):
                store.store(group=group, name=name, node=node, package="_global_")


def _sizes(config_dir: str | None) -> dict[str, Any]:
    """Return "scale-system" → what the scale says of the system.

    A built-in system takes those settings of all systems that it has. Other systems take only their own.
    """
    found = {}
    for scale, blocks in scale_models(config_dir).items():
        for name in {*registry.systems.built_in, *blocks} - {_ALL}:
            settings = {}
            with suppress(Exception):  # a system that cannot be imported says so when it is chosen
                known = fields(registry.config_of(name)) if name in registry.systems.built_in else ()
                settings = {item.name: blocks[_ALL][item.name] for item in known if item.name in blocks.get(_ALL, {})}
            found[f"{scale}-{name}"] = {"model": {**settings, **blocks.get(name, {})}}
    return found


@lru_cache(maxsize=1)
def scale_models(config_dir: str | None) -> dict[str, dict[str, dict[str, Any]]]:
    """Return scale → system → settings: what the files of the scales have under `models`."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for path in (path for folder in _folders(config_dir) for path in (folder / "scale").glob("*.yaml")):
        with suppress(YAMLError, OmegaConfBaseException, OSError, ValueError):  # Hydra says so when it is chosen
            content = OmegaConf.to_container(OmegaConf.load(path))
            blocks = content.get(_MODELS) if isinstance(content, dict) else None
            if isinstance(blocks, dict) and all(isinstance(block, dict) for block in blocks.values()):
                found.setdefault(path.stem, blocks)
    return found


def _folders(config_dir: str | None) -> list[Path]:
    """Return where YAML files are, the suite's own first, as Hydra looks for them."""
    return [CONF, *([Path(config_dir)] if config_dir else [])]


def translate_hydra_error(error: Exception) -> SuiteError:
    """Turn what Hydra says of a command line into one line."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = str(error.missing_cfg_file).partition("/")
        inner, slash, rest = name.partition("/")
        if slash and (CONF / group / inner).is_dir():  # a group in a group: model/recipe
            group, name = f"{group}/{inner}", rest
        return unknown_choice(group, name, error.options or [])
    if isinstance(error, OverrideParseException):
        word = format_override(error.override)
        return UsageError(f"cannot read '{word}': quote its value twice, \"{word.partition('=')[0]}='…'\"")
    first = first_error_line(error)
    if first.startswith("Error merging override") and error.__cause__ is not None:
        first += f": {first_error_line(error.__cause__)}"  # which alone says why
    return UsageError(f"{first} (see longsumbench run --help)")


def first_error_line(error: BaseException) -> str:
    """Return the first line of what an error says that is not empty; its kind if there is none."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def show_config(points: Sequence[Planned]) -> str:
    """Return the resolved configurations as YAML, points that are the same run once."""
    shown: dict[str, str] = {}
    for planned in points:
        text = OmegaConf.to_yaml(OmegaConf.create(asdict(planned.config)))
        shown.setdefault(planned.identity, f"# {planned.name}\n{text}" if planned.name else text)
    return "---\n".join(shown.values()).rstrip()
