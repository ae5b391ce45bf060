"""Imports outputs that were written outside the suite: they become a run, and tables are rebuilt.

    names and settings --plan_import--> PlannedRun --run_import--> its record, those of its baselines, tables
    file or folder --match_outputs--> a Summary for each example --> ImportedSystem, which knows nothing else

The run is made as any other.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from longsumbench import core
from longsumbench.arguments import public_function
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core.terminal_text import remove_control_codes
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.errors import DataError, UsageError
from longsumbench.files import digest, hash_regular
from longsumbench.formatting import format_count, redact
from longsumbench.metrics.evaluate import RawText
from longsumbench.outputs.files import first_ids, given_outputs, read_outputs
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.pipeline import run_point, score_baselines
from longsumbench.runs.plan import PlannedRun, plan
from longsumbench.runs.predictions import digest_texts
from longsumbench.runs.record import ImportedOutputs, RunRecord
from longsumbench.sweeps.run import updating_tables
from longsumbench.sweeps.sweep import Launch

_log = logging.getLogger(__name__)
_TOP_KEYS = ("results_dir", "overwrite", "baselines", "device")  # besides dataset.* and score.*


@dataclass(frozen=True)
class OutputsToImport:
    """What is said about outputs when they are imported.

    Attributes:
        path: their file or folder; with `texts` only a name.
        model: the name of the system that wrote them.
        variant: its settings, in any words ("beam 5").
        seed: None if it has none, or if it is unknown.
        origin: where the outputs come from: a URL or a paper.
        intersect: leave out examples without an output, and outputs with unknown ids.
        texts: id → output, if they are in no file.
    """

    path: Path
    model: str
    variant: core.Text = ""
    seed: int | None = None
    origin: core.Text = ""
    intersect: bool = False
    texts: Mapping[str, RawText] | None = None


@dataclass
class ImportedConfig(core.SystemConfig):
    """The configuration of an imported system, in records and in config.yaml."""

    name: str
    imported: bool = True
    # labels of the outputs, which are no settings
    variant: InitVar[str] = ""
    seed: InitVar[int | None] = None

    def __post_init__(self, variant: str, seed: int | None) -> None:
        self.labels = {"variant": variant}
        self.has_seed = seed is not None

    @property
    def decided_by(self) -> frozenset[str]:
        """The seed, if the outputs have one."""
        return frozenset({"seed"} if self.has_seed else ())

    def identity(self) -> dict[str, Any]:
        """Return the labels that were given; a run's key also has a hash of the outputs."""
        return {"imported": self.name, **self.labels}


class ImportedSystem(core.System):
    """A system of which only the outputs for some examples are known."""

    Config = ImportedConfig

    def __init__(
        self, config: core.SystemConfig, outputs: OutputsToImport, summaries: Sequence[core.Summary]
    ) -> None:
        super().__init__(config)
        self.outputs = outputs
        self.summaries = {summary.id: summary for summary in summaries}

    def summarize(
        self, examples: Sequence[core.Example], decoding: core.Decoding
    ) -> Iterator[core.Summary]:
        """Yield the known outputs."""
        return (self.summaries[example.id] for example in examples)

    def origin(self) -> ImportedOutputs:
        """Return where the outputs come from."""
        path, texts = self.outputs.path, [summary.text for summary in self.summaries.values()]
        checksum = digest(texts) if self.outputs.texts or path.is_dir() else hash_regular(path)
        return ImportedOutputs(path.name or str(path), checksum, self.outputs.origin)


def match_outputs(
    outputs: OutputsToImport, texts: Texts, settings: core.DatasetSettings
) -> list[core.Summary]:
    """Read outputs, and return them as summaries in the order of the chosen split.

    Raises:
        DataError: outputs are missing, doubled or unknown; or the split is missing or has no references.
    """
    texts.check_split(settings.split)
    split, split_name = texts.splits[settings.split], f"the {settings.split} split of {texts.name}"
    texts.check_references(settings.split, len(split))
    by_id = read_outputs(outputs.path, split.ids) if outputs.texts is None else outputs.texts
    by_id = dict(zip(by_id, remove_control_codes(by_id.items()), strict=True))
    # Both kinds of unknown ids are named in one line
    ids, problems = set(split.ids), []
    known = [name for name in split.ids if name in by_id]
    unknown = [name for name in by_id if name not in ids]
    missing = [name for name in split.ids if name not in by_id]
    if unknown:
        count = format_count(len(unknown), "output")
        problems.append(f"{count} with an unknown id (ids {first_ids(unknown)})")
    if missing:
        count = f"{len(missing):,} of {format_count(len(split.ids), 'example')}"
        problems.append(f"no output for {count} (ids {first_ids(missing)})")
    problem = " and ".join(problems)
    if problem and not (outputs.intersect and known):
        others = f", or import the {len(known):,} others by --intersect" if known else ""
        advice = _other_split(unknown, texts, settings.split) or f"correct the ids{others}"
        raise DataError(f"{problem} in {split_name}; {advice}", outputs.path)
    if problem:
        own_block = "; other examples, so it is in a separate block" if missing else ""
        _log.warning(f"left out: {problem} in {split_name}{own_block}")
    summaries = []
    for name in known:
        text = by_id[name]
        summaries.append(core.Summary(name, text if isinstance(text, str) else "\n".join(text)))
    if empty := sum(not summary.text.strip() for summary in summaries):
        _log.warning(f"empty outputs, which score 0: {empty:,} of {len(summaries):,}")
    return summaries


def only_summarized(texts: Texts, split: str, ids: Collection[str]) -> Texts:
    """Return a dataset in which a split has only the examples with these ids."""
    if len(ids) == len(texts.splits[split]):
        return texts
    return replace(texts, splits={**texts.splits, split: texts.splits[split].select(ids)})


def _other_split(unknown: Sequence[str], texts: Texts, split: str) -> str:
    for name, examples in texts.splits.items():
        if unknown and name != split and set(unknown) <= set(examples.ids):
            return f"these are ids of the {name} split: add --split {name}"
    return ""


@public_function
def import_outputs(
    outputs: str | Path | Mapping[str, str | Sequence[str]],
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
        outputs: a file of rows with `id` and `prediction`, lines of text in the order of the split, or a folder; or
            a dictionary or a labelled Series, id → output.
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
    texts, path = None, Path("dictionary")
    if isinstance(outputs, str | Path):
        path = Path(outputs)
    else:
        texts = given_outputs(outputs)
    request = OutputsToImport(path.expanduser(), model, variant, seed, origin, intersect, texts)
    words = format_overrides({"dataset": dataset, **settings})
    names = [word for word in words if word.startswith("dataset=")]
    if not names:
        raise UsageError("dataset= has no name: dataset={'name': 'jsonl', 'path': 'my_texts'}")
    words.remove(names[0])
    name = names[0].removeprefix("dataset=")
    command = ["longsumbench", "import", str(path)]
    flags: dict[str, Any] = {"--model": model, "--dataset": name, "--split": split}
    flags |= {"--variant": variant, "--seed": seed, "--from": origin}
    for flag, value in flags.items():
        if value not in (None, ""):
            command += [flag, f"{value}"]
    if intersect:
        command.append("--intersect")
    return run_import(request, plan_import(request, name, split, words), (*command, *words))


def plan_import(
    outputs: OutputsToImport, dataset: str, split: str | None, words: Sequence[str]
) -> PlannedRun:
    """Check the names and settings of an import.

    Raises:
        UsageError: a name or a setting is invalid.
        DataError: there are no outputs at the path.
        EnvironmentProblem: the texts, or what a metric needs, are not on this machine.
    """
    core.check_folder_name("--model", outputs.model)
    if outputs.model in core.registry.systems.targets():
        raise UsageError(
            f"--model {outputs.model} is a system of the suite: choose another, {outputs.model}-released"
        )
    bounds = core.collect_bounds(OutputsToImport)
    core.check_value("--variant", outputs.variant, bounds["variant"])
    origin = unquote(outputs.origin)
    if redact(origin) != origin:
        raise UsageError("--from has an address with a password or a key: leave that out")
    core.check_value("--from", outputs.origin, bounds["origin"])
    for word in words:
        key = word.lstrip("+").partition("=")[0]
        if key == "dataset":
            raise UsageError(f"'{word}': write --dataset {word.partition('=')[2]}")
        if not key.startswith(("dataset.", "score.")) and key not in _TOP_KEYS:
            raise UsageError(
                f"'{word}': import takes dataset.*, score.* and {', '.join(_TOP_KEYS)}; nothing is run"
            )
    if outputs.texts is None and not outputs.path.exists():
        raise DataError("no such file or folder", outputs.path)
    overrides = [f"dataset.split={split}"] if split else []
    overrides += [] if outputs.seed is None else [f"seed={outputs.seed}"]
    # Planned as a run of Lead, which needs nothing; its system is replaced
    (point,) = plan(["model=lead", f"dataset={dataset}", *overrides, *words], check_access=True)
    model = ImportedConfig(outputs.model, variant=outputs.variant, seed=outputs.seed)
    return replace(point, config=replace(point.config, model=model))


def run_import(
    outputs: OutputsToImport,
    point: PlannedRun,
    command: tuple[str, ...],
    show: Callable[..., None] = lambda *_: None,
) -> RunRecord:
    """Import outputs, rebuild the tables of the dataset, and show them by `show`, as after a run; return the record.

    The baselines are scored on the same examples, unless some examples were left out.

    Raises:
        DataError: the outputs do not fit the examples, or cannot be read.
    """
    point = replace(point, variant=outputs.variant, command=command)
    launch = Launch([point], command)
    left_out = False

    def prepare(config: core.RunConfig, cache: ArtifactCache) -> tuple[ImportedSystem, Texts]:
        nonlocal left_out
        texts = load_texts(config.dataset, cache)
        summaries = match_outputs(outputs, texts, config.dataset)
        system = ImportedSystem(config.model, outputs, summaries)
        point.imported, point.outputs = system.origin(), digest_texts(summaries)
        subset = only_summarized(texts, config.dataset.split, system.summaries)
        left_out = subset is not texts
        return system, subset

    with updating_tables(launch, show):
        launch.finished.append(run_point(point, prepare))
        # Baselines on other examples would be in another block of the table
        if not left_out:
            launch.finished += score_baselines(point, set())
    return launch.finished[0]
