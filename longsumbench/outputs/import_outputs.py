"""Imports outputs that were written outside the suite: they become a run, and tables are rebuilt.

names and settings --plan_import--> Planned --run_import--> its record, those of its baselines, tables

The run is made as any other, by a system that knows nothing but the outputs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import RunConfig, bounds_of, check_folder_name, check_value, registry
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import DataError, UsageError, suite_errors
from longsumbench.outputs.imported import (
    ImportedConfig,
    ImportedSystem,
    OutputsToImport,
    match_outputs,
    only_summarized,
)
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.pipeline import Point, run_point, score_baselines
from longsumbench.runs.plan import Planned, plan
from longsumbench.runs.record import RunRecord
from longsumbench.sweeps.run import updating_tables
from longsumbench.sweeps.sweep import Launch

_TOP_KEYS = ("results_dir", "overwrite", "baselines", "device")  # besides dataset.* and score.*


@suite_errors()
def import_outputs(
    outputs: str | Path,
    *,
    model: str,
    dataset: str | Mapping[str, Any],
    split: str | None = None,
    variant: str = "",
    seed: int | None = None,
    origin: str = "",
    intersect: bool = False,
    **settings: Any,
) -> RunRecord:
    """Make a run of outputs that were written outside the suite, as `longsumbench import` does.

        import_outputs("out.jsonl", model="theirs", dataset={"name": "jsonl", "path": "my_texts"}, origin="their paper")

    Args:
        outputs: JSON lines with `id` and `prediction`, lines of text in the order of the split, or a folder.
        model: a name for the system that wrote them.
        dataset: a dataset's name, or its settings with `name`.
        split: "train", "validation" or "test", the default.
        variant: the system's settings in any words, if there are several versions of it.
        seed: the outputs' seed, if there are several.
        origin: where the outputs come from.
        intersect: leave out examples without an output, and outputs with unknown ids.
        settings: `dataset.*`, `score.*`, `results_dir`, `overwrite`, `baselines`, as on the command line.

    Returns:
        The record of the run. The records of its baselines are in the results folder.

    Raises:
        UsageError: the model is a system of the suite, or a setting is unknown or invalid.
        DataError: the outputs do not fit the examples, or cannot be read.
    """
    request = OutputsToImport(Path(outputs).expanduser(), model, variant, seed, origin, intersect)
    overrides = format_overrides({"dataset": dataset, **settings})
    words = [word for word in overrides if not word.startswith("dataset=")]
    names = [word.partition("=")[2] for word in overrides if word not in words]
    if not names:
        raise UsageError("dataset= has no name: dataset={'name': 'jsonl', 'path': 'my_texts'}")
    flags: dict[str, Any] = {"--model": model, "--dataset": names[0], "--split": split}
    flags |= {"--variant": variant, "--seed": seed, "--from": origin}
    flag_words = [word for flag, value in flags.items() if value not in (None, "") for word in (flag, f"{value}")]
    command = ("longsumbench", "import", str(outputs), *flag_words, *(["--intersect"] if intersect else []), *words)
    return run_import(request, plan_import(request, names[0], split, words), command)


def plan_import(outputs: OutputsToImport, dataset: str, split: str | None, words: Sequence[str]) -> Planned:
    """Check the names and settings of an import.

    Args:
        outputs: what is imported.
        dataset: its name.
        split: None for the dataset's default.
        words: further settings ("dataset.path=my_texts").

    Raises:
        UsageError: a name or a setting is invalid.
        DataError: there are no outputs at the path.
        EnvironmentProblem: the texts, or what a metric needs, are not on this machine.
    """
    check_folder_name("--model", outputs.model)
    if outputs.model in registry.systems.targets():
        raise UsageError(
            f"--model {outputs.model} is a system of the suite: choose another name, {outputs.model}-released"
        )
    bounds = bounds_of(OutputsToImport)
    check_value("--variant", outputs.variant, bounds["variant"])
    check_value("--from", outputs.origin, bounds["origin"])
    for word in words:
        key = word.lstrip("+").partition("=")[0]
        if key == "dataset":
            raise UsageError(f"'{word}': write --dataset {word.partition('=')[2]}")
        if not key.startswith(("dataset.", "score.")) and key not in _TOP_KEYS:
            raise UsageError(f"'{word}': import takes dataset.*, score.* and {', '.join(_TOP_KEYS)}; nothing is run")
    if not outputs.path.exists():
        raise DataError("no such file or folder", outputs.path)
    overrides = [f"dataset.split={split}"] if split else []
    overrides += [] if outputs.seed is None else [f"seed={outputs.seed}"]
    (planned,) = plan(["model=lead", f"dataset={dataset}", *overrides, *words], probe=True)
    return replace(planned, config=replace(planned.config, model=ImportedConfig(outputs.model)))


def run_import(
    outputs: OutputsToImport, planned: Planned, command: tuple[str, ...], show: Callable[..., None] = lambda *_: None
) -> RunRecord:
    """Import outputs, rebuild the tables of the dataset, and show them by `show`, as after a run; return the record.

    The baselines are scored on the same examples, unless some examples were left out.

    Raises:
        DataError: the outputs do not fit the examples, or cannot be read.
    """
    launch, point = Launch([planned], command), Point(planned.config, outputs.variant, command)
    left_out = False

    def prepare(config: RunConfig, stages: ArtifactCache) -> tuple[ImportedSystem, Texts]:
        nonlocal left_out
        texts = load_texts(config.dataset, stages)
        system = ImportedSystem(outputs, match_outputs(outputs, texts, config.dataset))
        point.facts = system.facts()
        subset = only_summarized(texts, config.dataset.split, system.summaries)
        left_out = subset is not texts
        return system, subset

    with updating_tables(launch, show):
        launch.finished.append(run_point(point, prepare))
        if not left_out:
            launch.finished += score_baselines(point, set())
    return launch.finished[0]
