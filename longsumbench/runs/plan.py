"""Turn a command line into points: Hydra composes the settings, `longsumbench.core.config` checks them.

The variant of a point is its settings that differ from the recipe.

All points of a sweep are checked before the first one runs, so that a misspelt setting costs no time.
"""

import logging
import math
import shlex
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from functools import partial

from omegaconf import DictConfig, OmegaConf

from longsumbench import core
from longsumbench.cache.artifacts import ArtifactCache, cache_folder
from longsumbench.corpora.loading.hub import check_copy_or_network
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.files import digest
from longsumbench.progress import track
from longsumbench.runs.checkpoints import find_used_run
from longsumbench.runs.compose import OWN_SWEEP, compose, compose_files, hydra_session, with_recipe
from longsumbench.runs.overrides import (
    as_hydra,
    expand,
    format_override,
    override_key,
    parse_overrides,
)
from longsumbench.runs.record import ImportedOutputs
from longsumbench.runs.results import Results
from longsumbench.runs.variant import name_variant

_log = logging.getLogger(__name__)

_BUDGETS = {"scale", "train.max_steps", "train.max_tokens", "train.max_minutes"}
_EXAMPLES_OF_DAYS = 100_000  # a large model reads an example in seconds on a CPU


@dataclass
class PlannedRun:
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
    def settings_hash(self) -> str:
        """Runs with the same hash are the same run, with the same measures, in one results folder."""
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
    words: Sequence[str],
    sweep: bool = False,
    config_dir: str | None = None,
    check_access: bool = False,
) -> list[PlannedRun]:
    """Compose and check the runs of a command line.

    With `check_access`, check that the texts, and the requirements of the metrics, are available. `config_dir` has more
    YAML files.

    Raises:
        UsageError: an override is invalid.
        EnvironmentProblem: the texts are not cached and the hub is unreachable; or a metric lacks a package or model.
    """
    return plan_lines([words], sweep, config_dir, check_access)[0]


@dataclass
class _RunDraft:
    """A run before its settings are checked: its command line's number, its name, its overrides in Hydra's form."""

    line: int
    name: str
    overrides: list[str]
    composed: DictConfig = field(default_factory=OmegaConf.create)

    @property
    def typed_keys(self) -> set[str]:
        return set(map(override_key, self.overrides))


def plan_lines(
    lines: Sequence[Sequence[str]],
    sweep: bool = True,
    config_dir: str | None = None,
    check_access: bool = False,
) -> list[list[PlannedRun]]:
    """Compose and check the runs of several command lines, those of a sweep together; arguments as of `plan`.

    Raises:
        UsageError: an override is invalid.
        EnvironmentProblem: as `plan`.
    """
    drafts: list[_RunDraft] = []
    planned_lines: list[list[PlannedRun]] = [[] for _ in lines]
    with hydra_session(config_dir):
        for line, words in enumerate(lines):
            for name, combination in expand(list(map(as_hydra, words)), sweep):
                for run_name, overrides in _expand_experiment(name, combination, sweep, config_dir):
                    drafts.append(_RunDraft(line, run_name, with_recipe(overrides, config_dir)))
        for draft in track(drafts, "planning", len(drafts), "runs") if sweep else drafts:
            draft.composed = compose(draft.overrides, config_dir)
        if check_access:
            _check_datasets(drafts)
        if sweep:
            _drop_foreign_settings(drafts)
        points: list[PlannedRun] = []
        warnings: dict[str, None] = {}
        for draft in drafts:
            point = _settle_point(draft, config_dir, check_access)
            points.append(point)
            planned_lines[draft.line].append(point)
            warnings[core.describe_generation_defaults(point.config, draft.composed.decode)] = None
        _check_steps(points)
        _check_metrics(points, check_access)
    for warning in filter(None, warnings):
        _log.warning(warning)
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
    with hydra_session(config_dir):
        parsed = parse_overrides(list(map(as_hydra, words)))
    single, several = [], []
    for word, override in zip(words, parsed, strict=True):
        if override.is_sweep_override():
            several.append(word)
        else:
            single.append(word)
    return single, several


def _expand_experiment(
    name: str, overrides: Sequence[str], sweep: bool, config_dir: str | None
) -> Iterator[tuple[str, list[str]]]:
    """Yield the runs of an experiment's sweep, or the run itself. Typed overrides win over the file."""
    typed_words = {override_key(word): format_override(word) for word in overrides}
    experiment = typed_words.get("experiment")
    lines = compose_files(overrides, config_dir).get(OWN_SWEEP) if experiment else None
    if lines is None:
        yield name, list(overrides)
        return
    try:
        typed_lines = list(map(shlex.split, lines)) if OmegaConf.is_list(lines) else []
    except (AttributeError, TypeError, ValueError):  # a number, or an open quotation mark
        typed_lines = []
    if not typed_lines or not all(typed_lines):
        form = "a list of lines with overrides as typed after -m"
        raise UsageError(f"{experiment}: '{OWN_SWEEP}' in its file is not {form}")
    if not sweep:
        raise UsageError(f"{experiment} has several runs: start it with -m, without a sweeper")
    points: list[list[str]] = []
    for line in typed_lines:
        points += [point for _, point in expand(list(map(as_hydra, line)), sweep)]
    for point in points:
        names = name.split()
        for word in point:
            text = typed_words.get(override_key(word), format_override(word))
            if text not in names and not all(word in words for words in points):
                names.append(text)
        yield " ".join(names), [*point, *overrides]


def _check_datasets(drafts: Sequence[_RunDraft]) -> None:
    """Check that the texts of at least one run are available, before slow imports."""
    cache, problems = ArtifactCache(cache_folder()), []
    sources: dict[tuple[str, str | None], None] = {}
    for draft in drafts:
        keys = ("filler", "name", "path", "reader")
        filler, name, path, reader = (OmegaConf.select(draft.composed.dataset, key) for key in keys)
        reader = filler or core.DatasetSettings(str(name), path, reader).reader
        sources[(str(reader), path)] = None
    for reader, path in sources:
        corpus = core.registry.corpora.load(reader)
        if path is None and corpus.hub is not None and corpus.built_in is None:
            try:
                check_copy_or_network(corpus, cache)
            except EnvironmentProblem as problem:
                problems.append(problem)
    if len(problems) == len(sources):
        raise problems[0]


def _check_metrics(points: Sequence[PlannedRun], check_access: bool) -> None:
    checked = []
    for config in (planned.config for planned in points):
        corpus = core.registry.corpora.load(str(config.dataset.reader))
        names = [*corpus.metrics_for(config.dataset), *config.score.metrics]
        if check_access:
            names.append("rouge")  # perl mode with stems needs WordNet's lists
        for name in names:
            metric = core.registry.metrics.load(name)(config.score)
            if check_access and (name, config.score) not in checked:
                checked.append((name, config.score))
                metric.check()


def _drop_foreign_settings(drafts: Sequence[_RunDraft]) -> None:
    """In a sweep over models, drop the settings that a model does not have; report the typed ones once."""
    own_settings: dict[str, set[str]] = {}
    for draft in drafts:
        model = str(draft.composed.model.name)
        own_settings[model] = {item.name for item in fields(core.registry.load_config_class(model))}
    all_settings = set().union(*own_settings.values())
    dropped: dict[str, list[str]] = {}
    for draft in drafts:
        model = str(draft.composed.model.name)
        foreign_settings = all_settings - own_settings[model]
        for key in foreign_settings.intersection(draft.composed.model):
            del draft.composed.model[key]
            # An experiment's file may set what only some of its models have
            if f"model.{key}" in draft.typed_keys:
                dropped.setdefault(key, []).append(model)
    for key in sorted(dropped):
        models = list(dict.fromkeys(dropped[key]))
        have = "have" if len(models) > 1 else "has"
        _log.info(f"left out for {', '.join(models)}, which {have} no such setting: model.{key}")


def _settle_point(draft: _RunDraft, config_dir: str | None, check_access: bool) -> PlannedRun:
    """Check a composed run; without `check_access`, a checkpoint on the hub may be unavailable."""
    model = str(draft.composed.model.name)
    config = core.resolve_config(draft.composed, core.registry.load_config_class(model))
    core.check_search(config.model, config.decode)
    core.check_trained_part(config.model, config.train, config.decode)
    results = Results.at(config.results_dir)
    config.model.name_used_runs(partial(find_used_run, results=results))
    try:
        key = core.RunKey.of(config)
    except EnvironmentProblem:
        if check_access:
            raise
        key = core.RunKey.of(config, content=asdict(config.model))

    variant = name_variant(draft.overrides, config, config_dir)
    return PlannedRun(config, variant, name=draft.name, key=key, typed_keys=draft.typed_keys)


def _check_steps(points: Sequence[PlannedRun]) -> None:
    """Raise UsageError if `train.max_steps` is typed, no run trains, and one is prompted."""
    typed = [planned.config for planned in points if "train.max_steps" in planned.typed_keys]
    configs = [config for config in typed if config.train.max_steps]
    prompted = [config for config in configs if config.model.capabilities.prompts]
    if prompted and not any("train" in config.model.decided_by for config in configs):
        steps, model = prompted[0].train.max_steps, prompted[0].model.name
        raise UsageError(
            f"train.max_steps={steps}: model={model} is not trained: leave it out, add model.lora_rank=16 or"
            " model.tune_all=true, or choose a model that trains"
        )


def check_scale(points: Sequence[PlannedRun]) -> None:
    """Check that no point would train for days without a GPU, unless the user typed its scale or budget.

    Raises:
        UsageError: one would.
    """
    for planned in points:
        config, recipe = planned.config, planned.config.train
        examples = recipe.max_steps * recipe.accumulation * recipe.batch_size
        steps = f"{recipe.max_steps:,} steps of {recipe.accumulation} batches of {recipe.batch_size} examples"
        typed_budget = planned.typed_keys & _BUDGETS
        if typed_budget or config.scale != "paper" or examples < _EXAMPLES_OF_DAYS:
            continue
        from longsumbench.modeling.nn.device import choose_device  # imports torch

        if "train" in config.model.decided_by and choose_device(config.train.device).type == "cpu":
            problem = f"model={config.model.name} dataset={config.dataset.name} trains at scale=paper ({steps})"
            advice = (
                "choose scale=small or scale=tiny, a budget such as train.max_minutes=60,"
                " or type scale=paper to do it nevertheless"
            )
            raise UsageError(f"{problem}, which takes days without a GPU: {advice}")


def show_config(points: Sequence[PlannedRun]) -> str:
    """Return the resolved configurations as YAML; equal runs appear once."""
    texts: dict[str, str] = {}
    for planned in points:
        text = OmegaConf.to_yaml(OmegaConf.create(asdict(planned.config)))
        texts.setdefault(
            planned.settings_hash, f"# {planned.name}\n{text}" if planned.name else text
        )
    return "---\n".join(texts.values()).rstrip()
