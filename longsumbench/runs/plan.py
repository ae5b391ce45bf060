"""Turn a command line into points: Hydra composes the settings, `longsumbench.api.config` checks them.

All points of a sweep are checked before the first one runs, so that a misspelt setting costs no time.
The YAML files hold only departures from the dataclasses. So overrides (`model.page_size=128`) are additions for Hydra.
The dataclasses decide which settings exist.
"""

import copy
import logging
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
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
from yaml import YAMLError  # type: ignore[import-untyped] # not annotated

from longsumbench.api import (
    SAME_SYSTEM,
    SECTIONS,
    DatasetSettings,
    Decoding,
    RunConfig,
    System,
    check_lengths,
    check_search,
    check_trained_part,
    dataset_files,
    describe_card,
    names_deciding,
    read_dataset_file,
    registry,
    resolve_config,
)
from longsumbench.cache.artifacts import ArtifactCache, cache_folder
from longsumbench.conf import CONF, user_config_folder
from longsumbench.corpora.reading.hub import check_copy_or_network
from longsumbench.errors import EnvironmentProblem, SuiteError, UnknownName, UsageError
from longsumbench.files import digest
from longsumbench.formatting import format_plain_value
from longsumbench.progress import track
from longsumbench.runs.override_advice import not_an_override, unknown_choice, unknown_setting
from longsumbench.runs.run_id import config_identity

_log = logging.getLogger(__name__)

GROUPS = ("model", "dataset", "scale", "train", "decode", "score", "experiment")
_SETTINGS = ("model", *SECTIONS)
TOP_LEVEL_SETTINGS = tuple(item.name for item in fields(RunConfig) if item.name not in (*_SETTINGS, "scale"))
_MODELS = "models"  # in a scale's file: system → its settings
_ALL = "all"  # the settings of all systems that have them
_RECIPES = "model/recipe"  # a group: settings of a model for a dataset
_NAMED = ("checkpoint", "revision")  # settings of a model without which its row in a table says nothing
_OWN_SWEEP = "sweep"  # in an experiment's file: a list of lines, each with overrides as typed after -m


@dataclass(frozen=True)
class Planned:
    """A checked point that has not started.

    Attributes:
        name: the overrides that differ from other points of the sweep; empty for a single point.
        config: the resolved configuration.
        variant: the model and decode overrides that differ from the recipe ("input_length=64,norm=post").
        identity: a hash; points with the same identity are the same run.
        scale_typed: True if the user typed `scale=`.
    """

    name: str
    config: RunConfig
    variant: str
    identity: str
    scale_typed: bool = False


def plan(
    words: Sequence[str], sweep: bool = False, config_dir: str | None = None, probe: bool = False
) -> list[Planned]:
    """Compose and check the points of a command line.

    Args:
        words: the overrides as typed.
        sweep: True to sweep over comma-separated values.
        config_dir: a folder with more YAML files.
        probe: True to check that the texts, and the requirements of the metrics, are available.

    Raises:
        UsageError: an override is invalid.
        EnvironmentProblem: the texts are not cached and the hub is unreachable; or a metric lacks a package or model.
    """
    return plan_lines([words], sweep, config_dir, probe)[0]


def plan_lines(
    lines: Sequence[Sequence[str]], sweep: bool = True, config_dir: str | None = None, probe: bool = False
) -> list[list[Planned]]:
    """Compose and check the points of several command lines, those of a sweep together; arguments as of `plan`.

    Raises:
        UsageError: an override is invalid.
        EnvironmentProblem: as `plan`.
    """
    with hydra_session(config_dir):
        named = [
            (number, point, with_recipe(typed, config_dir))
            for number, words in enumerate(lines)
            for name, chosen in expand([as_hydra(word) for word in words], sweep)
            for point, typed in _of_experiment(name, chosen, sweep, config_dir)
        ]
        tracked = track(named, "planning", len(named), "points") if sweep else named
        composed = [compose(chosen, config_dir) for _, _, chosen in tracked]
        if probe:
            _check_datasets(composed)
        if sweep:
            typed = {format_override(word).partition("=")[0] for _, _, chosen in named for word in chosen}
            _drop_foreign_settings(composed, typed)
        pairs = zip(named, composed, strict=True)
        points = [_settle_point(name, chosen, made, config_dir, probe) for (_, name, chosen), made in pairs]
        _check_metrics(points, probe)
        warnings = [describe_card(point.config, made.decode) for point, made in zip(points, composed, strict=True)]
        for warning in dict.fromkeys(filter(None, warnings)):
            _log.warning(warning)
        found: list[list[Planned]] = [[] for _ in lines]
        for (number, _, _), point in zip(named, points, strict=True):
            found[number].append(point)
        return found


def plan_dataset(words: Sequence[str]) -> DatasetSettings:
    """Compose and check the settings of a dataset from `dataset=NAME` and `dataset.*`, as `plan` does.

    Raises:
        UsageError: an override is invalid.
    """
    (point,) = plan(["model=lead", *words])
    return point.config.dataset


@contextmanager
def hydra_session(config_dir: str | None = None) -> Iterator[None]:
    """Let Hydra compose the suite's YAML files, and those of a folder, inside; its errors become errors of one line.

    Raises:
        UsageError: an override is invalid, or the folder does not exist.
    """
    if config_dir is not None and not Path(config_dir).is_dir():
        raise UsageError(f"--config-dir {config_dir}: no such folder")
    offer_plugins(config_dir)
    try:
        with hydra.initialize_config_module("longsumbench.conf", version_base="1.3"):
            yield
    except (HydraException, OmegaConfBaseException) as error:
        raise translate_hydra_error(error) from error


def search_path(config_dir: str | None) -> list[str]:
    """Return the override that adds the user's folder of YAML files and `config_dir`, as far as they exist."""
    folders = [str(folder.resolve()).replace("\\", "\\\\").replace("'", "\\'") for folder in _added_folders(config_dir)]
    quoted = ",".join(f"'file://{folder}'" for folder in folders)
    return [f"hydra.searchpath=[{quoted}]"] if folders else []


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
    if (head in _SETTINGS and "." in key) or key in TOP_LEVEL_SETTINGS:
        return f"++{key}={value}"
    if head not in GROUPS or "." in key:
        raise unknown_setting(key, [*GROUPS, *TOP_LEVEL_SETTINGS])
    return f"{key}={value}"


def expand(overrides: Sequence[str], sweep: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the overrides of every combination of the swept values.

    Raises:
        UsageError: there are several values without a sweep, or a range, which needs a sweeper.
    """
    parsed = OverridesParser.create(GlobalHydra.instance().config_loader()).parse_overrides(list(overrides))
    choices, swept = [], []
    for word, override in zip(overrides, parsed, strict=True):
        swept.append(override.is_sweep_override())
        if swept[-1] and not sweep:
            raise UsageError(
                f"'{format_override(word)}' has several values: sweep over them with -m, or quote them as one value"
            )
        if override.is_interval_sweep():
            raise UsageError(
                f"'{format_override(word)}' is a range without values: use hydra/sweeper=optuna to search it"
            )
        if isinstance(names := override.value(), list) and not _is_set(word):
            together = f"-m {override.get_key_element()}={','.join(map(str, names))}"
            raise UsageError(f"'{word}' has several names: choose one, or sweep over them with {together}")
        values = override.sweep_string_iterator() if swept[-1] else ()
        choices.append([f"{override.get_key_element()}={value}" for value in values] if swept[-1] else [word])
    for chosen in product(*choices):
        varying = (format_override(word) for word, varies in zip(chosen, swept, strict=True) if varies)
        yield " ".join(varying), list(chosen)


def split_sweep_overrides(words: Sequence[str], config_dir: str | None = None) -> tuple[list[str], list[str]]:
    """Return the overrides with one value, and the overrides with several values or a range.

    Raises:
        UsageError: an override is invalid.
    """
    overrides = [as_hydra(word) for word in words]
    with hydra_session(config_dir):
        parsed = OverridesParser.create(GlobalHydra.instance().config_loader()).parse_overrides(overrides)
    swept = [override.is_sweep_override() for override in parsed]
    pairs = list(zip(words, swept, strict=True))
    return [word for word, several in pairs if not several], [word for word, several in pairs if several]


def swept_settings(swept: Sequence[str]) -> list[str]:
    """Return the settings of swept overrides ("model.page_size"), without seeds and without groups."""
    keys = [word.lstrip("+").partition("=")[0] for word in swept]
    return [key for key in dict.fromkeys(keys) if "." in key and not key.endswith(".seed")]


def _of_experiment(
    name: str, overrides: Sequence[str], sweep: bool, config_dir: str | None
) -> Iterator[tuple[str, list[str]]]:
    """Yield the points of an experiment's sweep, or the point itself. Typed overrides win over the file."""
    typed = {word.partition("=")[0]: format_override(word) for word in overrides}
    chosen = [word.partition("=")[2] for word in typed.values() if word.startswith("experiment=")]
    lines = compose_overrides(overrides, config_dir).get(_OWN_SWEEP) if chosen else None
    if lines is None:
        yield name, list(overrides)
        return
    if not OmegaConf.is_list(lines) or not lines or not all(isinstance(line, str) and line.strip() for line in lines):
        form = "a list of lines with overrides as typed after -m"
        raise UsageError(f"experiment={chosen[-1]}: '{_OWN_SWEEP}' in its file is not {form}")
    if not sweep:
        raise UsageError(f"experiment={chosen[-1]} has several points: run it with -m, without a sweeper")
    try:
        typed_lines = [shlex.split(line) for line in lines]
    except ValueError as error:  # an open quotation mark
        raise UsageError(f"experiment={chosen[-1]}: '{_OWN_SWEEP}' in its file cannot be read ({error})") from error
    points = [point for line in typed_lines for _, point in expand([as_hydra(word) for word in line], sweep)]
    for point in points:
        differing = [word for word in point if not all(word in other for other in points)]
        shown = (typed.get(word.partition("=")[0], format_override(word)) for word in differing)
        added = [word for word in shown if word not in name.split()]
        yield " ".join(filter(None, [name, *added])), [*point, *overrides]


def with_recipe(overrides: Sequence[str], config_dir: str | None) -> list[str]:
    """Return overrides, with the model and the dataset of a recipe that is chosen by name and names them.

    `model/recipe=NAME` of such a recipe needs no `model=` and no `dataset=`; a dataset that is typed wins.

    Raises:
        UnknownName: there is no such recipe.
        UsageError: the recipe is for another model; or it names none, and none is typed.
    """
    typed = dict(word.partition("=")[::2] for word in overrides)
    if (name := typed.get(_RECIPES)) is None:
        return list(overrides)
    files = {path.stem: path for folder in _folders(config_dir) for path in (folder / _RECIPES).glob("*.yaml")}
    if name not in files:
        raise UnknownName("recipe", name, files)
    content = OmegaConf.load(files[name])
    chosen = {group: OmegaConf.select(content, f"{group}.name") for group in ("model", "dataset")}
    wanted = typed.get("model", chosen["model"])
    if wanted is None:
        raise UsageError(f"model/recipe={name} names no model: add model= and dataset=")
    if wanted != (chosen["model"] or wanted):
        raise UsageError(f"model/recipe={name} is for model={chosen['model']}, not model={wanted}: leave one out")
    return [*overrides, *(f"{group}={named}" for group, named in chosen.items() if named and group not in typed)]


def compose(overrides: Sequence[str], config_dir: str | None) -> DictConfig:
    """Return the configuration of some overrides, without the sweep of an experiment."""
    composed = compose_overrides(overrides, config_dir)
    composed.pop(_OWN_SWEEP, None)
    return composed


def compose_overrides(overrides: Sequence[str], config_dir: str | None) -> DictConfig:
    """Merge overrides into the YAML files with Hydra; results are cached."""
    return copy.deepcopy(_composed_once(tuple(overrides), config_dir))


@lru_cache(maxsize=64)
def _composed_once(overrides: tuple[str, ...], config_dir: str | None) -> DictConfig:
    choices = tuple(word for word in overrides if not _is_set(word))
    if len(choices) < len(overrides):  # points with the same choices share the files
        return _with_settings(compose_overrides(choices, config_dir), [word for word in overrides if _is_set(word)])
    for name, path in dataset_files().items():
        if f"dataset={name}" in choices:
            read_dataset_file(path)  # its errors name the file
    try:
        composed: DictConfig = hydra.compose("run", [*choices, *search_path(config_dir)])
    except ValueError as error:  # from Hydra: the value of a group is not a name
        raise UsageError(f"{error} (see longsumbench run --help)") from error
    except YAMLError as error:
        raise UsageError(f"a file is not valid YAML: {' '.join(str(error).split())}") from error
    OmegaConf.set_struct(composed, False)
    if composed.get(_MODELS) in scale_models(config_dir).values():  # otherwise another file has an unknown setting
        del composed[_MODELS]
    return composed


def _is_set(word: str) -> bool:
    """Return True if an override sets a value, False if it chooses a file."""
    return word.startswith("++")


def _with_settings(composed: DictConfig, words: Sequence[str]) -> DictConfig:
    """Merge settings into a configuration, as Hydra does after reading all files."""
    for override in OverridesParser.create().parse_overrides(list(words)):
        try:
            OmegaConf.update(composed, override.key_or_group, override.value(), merge=True, force_add=True)
        except OmegaConfBaseException as error:
            typed = format_override(override.input_line or override.key_or_group)
            problem = f"'{typed}' is invalid: {first_error_line(error)}"
            raise UsageError(f"{problem} (see longsumbench run --help)") from error
    return composed


def _check_datasets(points: Sequence[DictConfig]) -> None:
    """Check that the texts of at least one point are available, before slow imports."""
    stages, problems = ArtifactCache(cache_folder()), []
    keys = ("filler", "name", "path", "reader")
    typed = ([OmegaConf.select(point.dataset, key) for key in keys] for point in points)
    chosen = dict.fromkeys(
        (filler or DatasetSettings(str(name), path, reader).reader, path) for filler, name, path, reader in typed
    )
    for reader, path in chosen:
        corpus = registry.corpora.load(str(reader))
        if path is None and corpus.hub is not None and corpus.built_in is None:
            try:
                check_copy_or_network(corpus, stages)
            except EnvironmentProblem as problem:
                problems.append(problem)
    if len(problems) == len(chosen):
        raise problems[0]


def _check_metrics(points: Sequence[Planned], probe: bool) -> None:
    """Load the metrics of all points; with `probe`, check that their packages and models are available."""
    checked = []
    for config in (planned.config for planned in points):
        wanted = dict.fromkeys([*registry.corpora.load(str(config.dataset.reader)).metrics, *config.score.metrics])
        if probe:
            wanted["rouge"] = None  # perl mode with stems needs WordNet's lists
        for name in wanted:
            metric = registry.metrics.load(name)(config.score)
            if probe and (name, config.score) not in checked:
                checked.append((name, config.score))
                metric.check()


def _drop_foreign_settings(points: Sequence[DictConfig], typed: Set[str]) -> None:
    """In a sweep over models, drop the settings that a model does not have; report the typed ones once."""
    known = {
        name: {item.name for item in fields(registry.systems.load(name).Config)}
        for name in dict.fromkeys(str(composed.model.name) for composed in points)
    }
    all_settings, left_out = set().union(*known.values()), defaultdict[str, dict[str, None]](dict)
    for composed in points:
        for key in [str(key) for key in composed.model if key in all_settings - known[composed.model.name]]:
            left_out[key][composed.model.name] = None
            del composed.model[key]
    for key, models in left_out.items():
        if f"model.{key}" not in typed:  # an experiment's file may set what only some of its models have
            continue
        have = "have" if len(models) > 1 else "has"
        _log.info(f"left out for {', '.join(models)}, which {have} no such setting: model.{key}")


def _settle_point(
    name: str, overrides: Sequence[str], composed: DictConfig, config_dir: str | None, probe: bool
) -> Planned:
    """Check a composed point; without `probe`, a checkpoint on the hub may be unavailable."""
    system_class = registry.systems.load(composed.model.name)
    config = resolve_config(composed, system_class.Config)
    check_lengths(config.model, config.decode)
    system = system_class(config.model)
    check_evidence(system, config.decode)
    check_search(system, config.decode)
    check_trained_part(system, config.train, config.decode)
    try:
        same = config_identity(config, system)
    except EnvironmentProblem:
        if probe:
            raise
        same = digest(asdict(config))
    scale_typed = any(format_override(word).startswith("scale=") for word in overrides)
    return Planned(name, config, _variant(overrides, config, system.decided_by, config_dir), same, scale_typed)


def check_scale(points: Sequence[Planned]) -> None:
    """Check that no point would train at the papers' sizes without a GPU, unless the user typed `scale=paper`.

    Raises:
        UsageError: one would.
    """
    torch = sys.modules.get("torch")  # there, once a system that needs it was loaded
    for config in (planned.config for planned in points if not planned.scale_typed and torch is not None):
        trains = "train" in registry.systems.load(config.model.name).decided_by and config.train.max_steps
        on_cpu = config.train.device == "cpu" or not torch.cuda.is_available()  # type: ignore[union-attr]
        if config.scale == "paper" and trains and on_cpu:
            what = f"model={config.model.name} dataset={config.dataset.name} trains at scale=paper"
            advice = "choose scale=small (ten minutes) or scale=tiny, or type scale=paper to do it nevertheless"
            raise UsageError(f"{what}, which takes days without a GPU: {advice}")


def check_evidence(system: System, decode: Decoding) -> None:
    """Check that a system supports `decode.reference_evidence`, if that is set.

    Raises:
        UsageError: the system does not support it.
    """
    if decode.reference_evidence and not (system.keeps_evidence and system.keeps_reference_evidence):
        reason = f"model={system.config.name}, at least with these settings, keeps no evidence of the reference"
        raise UsageError(f"decode.reference_evidence=true: {reason}")


def _variant(overrides: Sequence[str], config: RunConfig, decided_by: frozenset[str], config_dir: str | None) -> str:
    """Return the typed model and decode settings that differ from the recipe and decide summaries, sorted.

    A checkpoint is always named. How summaries are made, and what was trained, is named if it is not the usual.
    """
    unusual = [f"{key}={format_setting(value)}" for key in _NAMED if (value := getattr(config.model, key, None))]
    if config.decode.mode != "write" and "decode" in decided_by:
        unusual.append(f"mode={config.decode.mode}")
    if config.train.only != "all" and "train" in decided_by:
        unusual.append(f"only={config.train.only}")
    of_recipe = tuple(f"model.{key}=" for key in _NAMED)  # a checkpoint's card has usual settings, too
    kept = [
        word
        for word, shown in zip(overrides, map(format_override, overrides), strict=True)
        if shown.startswith(of_recipe) or not shown.startswith(("model.", "decode.", "decode="))
    ]
    if len(kept) == len(overrides):
        return ",".join(sorted(unusual))
    typed = {format_override(word).partition("=")[0] for word in overrides}
    recipe = _usual_settings(tuple(kept), type(config.model), config_dir)  # type: ignore[arg-type] # a class is hashable
    changed = []
    for section in ("model", *({"decode"} & decided_by)):
        chosen = getattr(config, section)
        for key in {item.name for item in fields(chosen)} - names_deciding(chosen, *SAME_SYSTEM):
            name, value, usual = f"{section}.{key}", getattr(chosen, key), recipe
            if isinstance(value, list):  # its default may follow from other settings, such as all layers
                others = {f"{section}.{item.name}" for item in fields(chosen)} - {name}  # not those that others have
                words = tuple(
                    word for word in overrides if word in kept or format_override(word).partition("=")[0] in others
                )
                usual = _usual_settings(words, type(config.model), config_dir)  # type: ignore[arg-type]
            asked = name in typed or (section == "decode" and section in typed)
            if asked and value != getattr(getattr(usual, section), key):
                changed.append(f"{key}={format_setting(value)}")
    return ",".join(sorted({*changed, *unusual}))


@lru_cache(maxsize=64)
def _usual_settings(overrides: tuple[str, ...], model_config: type, config_dir: str | None) -> RunConfig:
    """Return the configuration of some of a point's overrides.

    Mandatory values without default are removed, and settings that an experiment's file has for other models.
    """
    composed = compose(overrides, config_dir)
    for key in [key for key in composed.model if key not in {item.name for item in fields(model_config)}]:
        del composed.model[key]
    for section in ("model", "decode"):
        for key in [key for key in composed[section] if OmegaConf.is_missing(composed[section], key)]:
            del composed[section][key]
    return resolve_config(composed, model_config)


def format_setting(value: Any) -> str:
    """Return a value as it is typed on the command line; of a folder only the last name."""
    if isinstance(value, list):
        return f"[{','.join(map(format_setting, value))}]"
    if isinstance(value, str) and "/" in value and Path(value).expanduser().is_dir():
        return Path(value).name
    return format_plain_value(value)


def format_override(override: str) -> str:
    """Return an override without Hydra's plus signs."""
    return override.lstrip("+")


def offer_plugins(config_dir: str | None) -> None:
    """Offer all systems and corpora to Hydra, including plug-ins and names without a YAML file.

    This also clears the cache of YAML files.
    """
    _composed_once.cache_clear()
    _usual_settings.cache_clear()
    files = [path for folder in _folders(config_dir) for path in folder.glob("*/*.yaml") if path.is_file()]
    names = (tuple(registry.systems.targets()), tuple(registry.corpora.targets()))
    _offer(config_dir, *names, tuple((path, path.stat().st_mtime_ns) for path in files))


@lru_cache(maxsize=1)
def _offer(
    config_dir: str | None, models: tuple[str, ...], datasets: tuple[str, ...], files: tuple[tuple[Path, int], ...]
) -> None:
    scale_models.cache_clear()
    nodes: dict[str, dict[str, Any]] = {group: {"default": {group: {}}} for group in ("train", "decode", "score")}
    for group, names in (("model", models), ("dataset", datasets)):
        nodes[group] = {name: {group: {"name": name}} for name in names}
    for name in datasets:
        nodes["dataset"][name]["dataset"]["reader"] = name
    nodes["scale/model"] = _sizes(config_dir)
    store = ConfigStore.instance()
    for group, named in nodes.items():
        store.repo.pop(group.partition("/")[0], None)  # names of an earlier folder
        for name, node in named.items():
            if not any((folder / group / f"{name}.yaml").is_file() for folder in _folders(config_dir)):
                store.store(group=group, name=name, node=node, package="_global_")


def _sizes(config_dir: str | None) -> dict[str, Any]:
    """Return "scale-system" → settings.

    A built-in system gets the common settings (`all`) that it has. Other systems get only their own settings. Of these,
    `decode` has settings of the search.
    """
    found = {}
    for scale, blocks in scale_models(config_dir).items():
        for name in {*registry.systems.built_in, *blocks} - {_ALL}:
            settings = {}
            with suppress(Exception):  # import errors appear when the system is chosen
                known = fields(registry.config_of(name)) if name in registry.systems.built_in else ()
                settings = {item.name: blocks[_ALL][item.name] for item in known if item.name in blocks.get(_ALL, {})}
            own = dict(blocks.get(name, {}))
            search = {"decode": own.pop("decode")} if "decode" in own else {}
            found[f"{scale}-{name}"] = {"model": {**settings, **own}, **search}
    return found


@lru_cache(maxsize=1)
def scale_models(config_dir: str | None) -> dict[str, dict[str, dict[str, Any]]]:
    """Return scale → system → settings, from `models` in the files of the scales."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for path in (path for folder in _folders(config_dir) for path in (folder / "scale").glob("*.yaml")):
        with suppress(YAMLError, OmegaConfBaseException, OSError, ValueError):  # Hydra reports it
            content = OmegaConf.to_container(OmegaConf.load(path))
            blocks = content.get(_MODELS) if isinstance(content, dict) else None
            if isinstance(blocks, dict) and all(isinstance(block, dict) for block in blocks.values()):
                found.setdefault(path.stem, blocks)
    return found


def _folders(config_dir: str | None) -> list[Path]:
    """Return the folders of YAML files in Hydra's search order."""
    return [CONF, *_added_folders(config_dir)]


def _added_folders(config_dir: str | None) -> list[Path]:
    """Return the folders of YAML files that are not the suite's: the user's folder, then `config_dir`."""
    own = user_config_folder()
    return [*([own] if own.is_dir() else []), *([Path(config_dir)] if config_dir else [])]


def translate_hydra_error(error: Exception) -> SuiteError:
    """Turn an error of Hydra into an error of one line."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = str(error.missing_cfg_file).partition("/")
        inner, slash, rest = name.partition("/")
        if slash and (CONF / group / inner).is_dir():  # a nested group: model/recipe
            group, name = f"{group}/{inner}", rest
        return unknown_choice(group, name, error.options or [])
    if isinstance(error, OverrideParseException):
        word = format_override(error.override)
        return UsageError(f"cannot read '{word}': quote its value twice, \"{word.partition('=')[0]}='…'\"")
    first = first_error_line(error)
    if first.startswith("Error merging override") and error.__cause__ is not None:
        first += f": {first_error_line(error.__cause__)}"  # the reason
    return UsageError(f"{first} (see longsumbench run --help)")


def first_error_line(error: BaseException) -> str:
    """Return the first non-empty line of an error; its type if there is none."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def show_config(points: Sequence[Planned]) -> str:
    """Return the resolved configurations as YAML; equal runs appear once."""
    shown: dict[str, str] = {}
    for planned in points:
        text = OmegaConf.to_yaml(OmegaConf.create(asdict(planned.config)))
        shown.setdefault(planned.identity, f"# {planned.name}\n{text}" if planned.name else text)
    return "---\n".join(shown.values()).rstrip()
