"""Turn a command line into points: Hydra composes the settings, `longsumbench.core.config` checks them.

The variant of a point is its settings that differ from the recipe.

All points of a sweep are checked before the first one runs, so that a misspelt setting costs no time.
"""

import logging
import math
import shlex
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from functools import cache, partial

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from longsumbench import core
from longsumbench.cache.artifacts import ArtifactCache, cache_folder
from longsumbench.corpora.reading.hub import check_copy_or_network
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.files import digest
from longsumbench.progress import track
from longsumbench.runs.checkpoints import find_used_run
from longsumbench.runs.compose import (
    OWN_SWEEP,
    compose,
    compose_overrides,
    hydra_session,
    with_recipe,
)
from longsumbench.runs.overrides import as_hydra, expand, format_override, override_key
from longsumbench.runs.record import ImportedOutputs
from longsumbench.runs.results import Results
from longsumbench.runs.variant import UsualConfig, name_variant, usual_config

_log = logging.getLogger(__name__)

_BUDGETS = {"scale", "train.max_steps", "train.max_tokens", "train.max_minutes"}
_EXAMPLES_OF_DAYS = 100_000  # a large model reads an example in seconds on a CPU


@dataclass
class Point:
    """A checked run: planned, then in progress.

    Attributes:
        config: the resolved configuration.
        variant: the model and decode overrides that differ from the recipe ("input_length=64,norm=post").
        command: the command line as typed.
        name: the overrides that differ from other points of the sweep; empty for a single point.
        key: what decides its outcome; that of the model is its settings if its checkpoint is not on this machine.
        typed_keys: the settings and groups that the user typed.
        quiet: True to print no line about a run that is already finished.
        since: seconds since 1970; `overwrite=true` repeats only what began before then. So the points of a sweep
            rebuild a shared stage once, and a restarted point continues.
        imported: where the outputs come from, if they were written outside the suite.
        outputs: a hash of imported outputs.
        timings: step → seconds so far.
        carried_out: False if the run was already finished, or has not run.
    """

    config: core.RunConfig
    variant: str = ""
    command: tuple[str, ...] = ()
    name: str = ""
    key: core.RunKey | None = None
    typed_keys: Set[str] = frozenset()
    quiet: bool = False
    since: float = math.inf
    imported: ImportedOutputs | None = None
    outputs: str = ""
    timings: dict[str, float] = field(default_factory=dict, init=False)
    carried_out: bool = field(default=False, init=False)

    @property
    def identity(self) -> str:
        """A hash; points with the same identity are the same run, with the same measures, in one results folder."""
        config = self.config
        measures = core.settings_deciding(config.score, "measures")
        key = asdict(self.key or core.RunKey.of(config))
        return digest([key, config.results_dir, config.dataset.path, measures])

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the elapsed time to a step."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.timings[step] = round(self.timings.get(step, 0.0) + time.monotonic() - started, 3)


def plan(
    words: Sequence[str], sweep: bool = False, config_dir: str | None = None, probe: bool = False
) -> list[Point]:
    """Compose and check the points of a command line.

    With `probe`, check that the texts, and the requirements of the metrics, are available. `config_dir` has more YAML
    files.

    Raises:
        UsageError: an override is invalid.
        EnvironmentProblem: the texts are not cached and the hub is unreachable; or a metric lacks a package or model.
    """
    return plan_lines([words], sweep, config_dir, probe)[0]


def plan_lines(
    lines: Sequence[Sequence[str]],
    sweep: bool = True,
    config_dir: str | None = None,
    probe: bool = False,
) -> list[list[Point]]:
    """Compose and check the points of several command lines, those of a sweep together; arguments as of `plan`.

    Raises:
        UsageError: an override is invalid.
        EnvironmentProblem: as `plan`.
    """
    with hydra_session(config_dir):
        point_overrides = [
            (number, point, with_recipe(overrides, config_dir))
            for number, words in enumerate(lines)
            for name, combination in expand([as_hydra(word) for word in words], sweep)
            for point, overrides in _of_experiment(name, combination, sweep, config_dir)
        ]
        tracked = (
            track(point_overrides, "planning", len(point_overrides), "runs")
            if sweep
            else point_overrides
        )
        composed = [compose(overrides, config_dir) for _, _, overrides in tracked]
        if probe:
            _check_datasets(composed)
        typed_keys = {
            override_key(word) for _, _, overrides in point_overrides for word in overrides
        }
        if sweep:
            _drop_foreign_settings(composed, typed_keys)
        pairs = zip(point_overrides, composed, strict=True)
        # Many points differ in the same settings.
        usual_of = cache(partial(usual_config, config_dir=config_dir))
        points = [
            _settle_point(name, overrides, node, usual_of, probe)
            for (_, name, overrides), node in pairs
        ]
        _check_steps(points, typed_keys)
        _check_metrics(points, probe)
        warnings = [
            core.describe_card(point.config, node.decode)
            for point, node in zip(points, composed, strict=True)
        ]
        for warning in dict.fromkeys(filter(None, warnings)):
            _log.warning(warning)
        planned_lines: list[list[Point]] = [[] for _ in lines]
        for (number, _, _), point in zip(point_overrides, points, strict=True):
            planned_lines[number].append(point)
        return planned_lines


def plan_dataset(words: Sequence[str]) -> core.DatasetSettings:
    """Compose and check the settings of a dataset from `dataset=NAME` and `dataset.*`, as `plan` does.

    Raises:
        UsageError: an override is invalid.
    """
    (point,) = plan(["model=lead", *words])
    return point.config.dataset


def split_sweep_overrides(
    words: Sequence[str], config_dir: str | None = None
) -> tuple[list[str], list[str]]:
    """Return the overrides with one value, and the overrides with several values or a range.

    Raises:
        UsageError: an override is invalid.
    """
    overrides = [as_hydra(word) for word in words]
    with hydra_session(config_dir):
        parsed = OverridesParser.create(GlobalHydra.instance().config_loader()).parse_overrides(
            overrides
        )
    swept = [override.is_sweep_override() for override in parsed]
    pairs = list(zip(words, swept, strict=True))
    return [word for word, several in pairs if not several], [
        word for word, several in pairs if several
    ]


def _of_experiment(
    name: str, overrides: Sequence[str], sweep: bool, config_dir: str | None
) -> Iterator[tuple[str, list[str]]]:
    """Yield the points of an experiment's sweep, or the point itself. Typed overrides win over the file."""
    typed_words = {word.partition("=")[0]: format_override(word) for word in overrides}
    experiments = [
        word.partition("=")[2] for word in typed_words.values() if word.startswith("experiment=")
    ]
    lines = compose_overrides(overrides, config_dir).get(OWN_SWEEP) if experiments else None
    if lines is None:
        yield name, list(overrides)
        return
    if (
        not OmegaConf.is_list(lines)
        or not lines
        or not all(isinstance(line, str) and line.strip() for line in lines)
    ):
        form = "a list of lines with overrides as typed after -m"
        raise UsageError(f"experiment={experiments[-1]}: '{OWN_SWEEP}' in its file is not {form}")
    if not sweep:
        raise UsageError(
            f"experiment={experiments[-1]} has several runs: start it with -m, without a sweeper"
        )
    try:
        typed_lines = [shlex.split(line) for line in lines]
    except ValueError as error:  # an open quotation mark
        raise UsageError(
            f"experiment={experiments[-1]}: '{OWN_SWEEP}' in its file cannot be read ({error})"
        ) from error
    points = [
        point
        for line in typed_lines
        for _, point in expand([as_hydra(word) for word in line], sweep)
    ]
    for point in points:
        differing = [word for word in point if not all(word in words for words in points)]
        texts = (
            typed_words.get(word.partition("=")[0], format_override(word)) for word in differing
        )
        added = [word for word in texts if word not in name.split()]
        yield " ".join(filter(None, [name, *added])), [*point, *overrides]


def _check_datasets(points: Sequence[DictConfig]) -> None:
    """Check that the texts of at least one point are available, before slow imports."""
    stages, problems = ArtifactCache(cache_folder()), []
    keys = ("filler", "name", "path", "reader")
    choices = ([OmegaConf.select(point.dataset, key) for key in keys] for point in points)
    sources = dict.fromkeys(
        (filler or core.DatasetSettings(str(name), path, reader).reader, path)
        for filler, name, path, reader in choices
    )
    for reader, path in sources:
        corpus = core.registry.corpora.load(str(reader))
        if path is None and corpus.hub is not None and corpus.built_in is None:
            try:
                check_copy_or_network(corpus, stages)
            except EnvironmentProblem as problem:
                problems.append(problem)
    if len(problems) == len(sources):
        raise problems[0]


def _check_metrics(points: Sequence[Point], probe: bool) -> None:
    checked = []
    for config in (planned.config for planned in points):
        corpus = core.registry.corpora.load(str(config.dataset.reader))
        names = dict.fromkeys([*corpus.metrics_for(config.dataset), *config.score.metrics])
        if probe:
            names["rouge"] = None  # perl mode with stems needs WordNet's lists
        for name in names:
            metric = core.registry.metrics.load(name)(config.score)
            if probe and (name, config.score) not in checked:
                checked.append((name, config.score))
                metric.check()


def _drop_foreign_settings(points: Sequence[DictConfig], typed_keys: Set[str]) -> None:
    """In a sweep over models, drop the settings that a model does not have; report the typed ones once."""
    model_settings = {
        name: {item.name for item in fields(core.registry.config_of(name))}
        for name in dict.fromkeys(str(composed.model.name) for composed in points)
    }
    all_settings, left_out = (
        set().union(*model_settings.values()),
        defaultdict[str, dict[str, None]](dict),
    )
    for composed in points:
        for key in [
            str(key)
            for key in composed.model
            if key in all_settings - model_settings[composed.model.name]
        ]:
            left_out[key][composed.model.name] = None
            del composed.model[key]
    for key, models in left_out.items():
        if (
            f"model.{key}" not in typed_keys
        ):  # an experiment's file may set what only some of its models have
            continue
        have = "have" if len(models) > 1 else "has"
        _log.info(f"left out for {', '.join(models)}, which {have} no such setting: model.{key}")


def _settle_point(
    name: str, overrides: Sequence[str], composed: DictConfig, usual_of: UsualConfig, probe: bool
) -> Point:
    """Check a composed point; without `probe`, a checkpoint on the hub may be unavailable."""
    config = core.resolve_config(composed, core.registry.config_of(composed.model.name))
    _check_evidence(config.model, config.decode)
    core.check_search(config.model, config.decode)
    core.check_trained_part(config.model, config.train, config.decode)
    results = Results.at(config.results_dir)
    config.model.name_used_runs(partial(find_used_run, results=results))
    try:
        key = core.RunKey.of(config)
    except EnvironmentProblem:
        if probe:
            raise
        key = core.RunKey.of(config, content=asdict(config.model))
    variant = name_variant(overrides, config, usual_of)
    return Point(config, variant, name=name, key=key, typed_keys=set(map(override_key, overrides)))


def _check_steps(points: Sequence[Point], typed_keys: Set[str]) -> None:
    """Raise UsageError if `train.max_steps` is typed, no point trains, and one is prompted."""
    if "train.max_steps" not in typed_keys:
        return
    configs = [planned.config for planned in points if planned.config.train.max_steps]
    prompted = [config for config in configs if config.model.capabilities.prompts]
    if prompted and not any("train" in config.model.decided_by for config in configs):
        steps, model = prompted[0].train.max_steps, prompted[0].model.name
        raise UsageError(
            f"train.max_steps={steps}: model={model} is not trained: leave it out, add model.lora_rank=16 or"
            " model.tune_all=true, or choose a model that trains"
        )


def check_scale(points: Sequence[Point]) -> None:
    """Check that no point would train for days without a GPU, unless the user typed its scale or budget.

    Raises:
        UsageError: one would.
    """
    for planned in points:
        config, recipe = planned.config, planned.config.train
        examples = recipe.max_steps * recipe.accumulation * recipe.batch_size
        steps = f"{recipe.max_steps:,} steps of {recipe.accumulation} batches of {recipe.batch_size} examples"
        if planned.typed_keys & _BUDGETS:
            if (
                recipe.accumulation > 1
                and examples
                and not planned.typed_keys & {"scale", "train.accumulation"}
            ):
                plan_words = (
                    f"model={config.model.name} trains for up to {steps}: {examples:,} examples"
                )
                _log.info(f"{plan_words}; train.accumulation=1 makes a step of one batch")
            continue
        if config.scale != "paper" or examples < _EXAMPLES_OF_DAYS:
            continue
        from longsumbench.modeling.nn.device import choose_device  # imports torch

        if "train" in config.model.decided_by and choose_device(config.train.device).type == "cpu":
            problem = f"model={config.model.name} dataset={config.dataset.name} trains at scale=paper ({steps})"
            advice = (
                "choose scale=small or scale=tiny, a budget such as train.max_minutes=60,"
                " or type scale=paper to do it nevertheless"
            )
            raise UsageError(f"{problem}, which takes days without a GPU: {advice}")


def _check_evidence(model: core.SystemConfig, decode: core.Decoding) -> None:
    able = model.capabilities
    if decode.reference_evidence and not (able.keeps_evidence and able.keeps_reference_evidence):
        reason = (
            f"model={model.name}, at least with these settings, keeps no evidence of the reference"
        )
        raise UsageError(f"decode.reference_evidence=true: {reason}")


def show_config(points: Sequence[Point]) -> str:
    """Return the resolved configurations as YAML; equal runs appear once."""
    texts: dict[str, str] = {}
    for planned in points:
        text = OmegaConf.to_yaml(OmegaConf.create(asdict(planned.config)))
        texts.setdefault(planned.identity, f"# {planned.name}\n{text}" if planned.name else text)
    return "---\n".join(texts.values()).rstrip()
