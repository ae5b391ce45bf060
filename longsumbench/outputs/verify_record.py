"""What the record of a run says about settings, training and times: checked without scoring."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any

from longsumbench.core import FitReport, Recipe, RunConfig, System, deciding_parts
from longsumbench.corpora.reading.load import Texts
from longsumbench.errors import SuiteError
from longsumbench.files import BadFile, read_json
from longsumbench.leaderboards.seed_groups import have_equal_outputs
from longsumbench.runs.compose import hydra_session
from longsumbench.runs.overrides import add_config_file, as_hydra
from longsumbench.runs.plan import Variants
from longsumbench.runs.predictions import digest_texts, read_summaries
from longsumbench.runs.record import RunRecord, run_label, split_variant
from longsumbench.runs.results import Results, stage_of_run
from longsumbench.runs.run_id import fields_of_settings, id_of_run

_log = logging.getLogger(__name__)

_CLOCK_ERROR = timedelta(days=1)  # of another machine
_LARGEST_LOSS = 100.0  # nats per target token, at the start of a training
_EARLY_ENDS = ("max_tokens", "max_minutes", "patience")  # budgets and rules of a recipe
_OTHER_FILES = ("--config-dir", "experiment=", "model/recipe=")  # of a command; a variant does not name their settings


def expected_fields(folder: Path, record: RunRecord, config: RunConfig, system: System, texts: Texts) -> dict[str, Any]:
    """Return the fields of a record that its settings decide; those of the training as "fit.steps"."""
    expected = fields_of_settings(config, system)
    if record.imported:  # its run id contains its variant and seed
        expected["seed"] = record.seed
    try:
        expected["run_id"] = id_of_run(config, system, texts, record.versions)
        if not record.imported:
            expected["variant"] = _expected_variant(folder, record, config, system)
    except SuiteError as error:
        _log.warning(f"{record.label}: not computed again, run id and variant: {error}")
    parts = deciding_parts(system, config.train, config.decode)
    if "train" not in parts or not config.train.max_steps:
        fit = FitReport(record.fit.parameters, ended_by=record.fit.ended_by)
    elif "fit" in system.step_versions:  # trained by the suite's loop
        fit = _expected_training(record.fit, config.train, bool(texts.splits.get("validation")))
        with suppress(FileNotFoundError, BadFile):
            trained = read_json(stage_of_run(folder, "checkpoint") / "fit.json", FitReport)
            fit = replace(trained, seconds=fit.seconds)  # another training of the same may have taken longer
    else:
        fit = record.fit
    return expected | {f"fit.{name}": value for name, value in vars(fit).items()}


def _expected_variant(folder: Path, record: RunRecord, config: RunConfig, system: System) -> str:
    with hydra_session():
        overrides = list(map(as_hydra, add_config_file(folder / "config.yaml", [])))
        variant = Variants(None).name(overrides, config, system.decided_by)
    has_files = any(word.startswith(_OTHER_FILES) for word in record.command)
    is_part = {*split_variant(record.variant)} <= {*split_variant(variant)}
    return record.variant if has_files and is_part else variant


def _expected_training(fit: FitReport, recipe: Recipe, validates: bool) -> FitReport:
    """Return a report with what its recipe and its losses decide."""
    ends_early = fit.ended_by in _EARLY_ENDS and getattr(recipe, fit.ended_by)
    steps = min(max(fit.steps, 1), recipe.max_steps) if ends_early else recipe.max_steps
    grid = [step for step in range(1, steps + 1) if step % recipe.eval_steps == 0 or step == steps]
    losses = [loss for _, loss in fit.validation_losses]
    best = sorted(fit.validation_losses, key=lambda pair: (pair[1], pair[0]))
    best_step, validation_loss = best[0] if best else (steps, None)
    return replace(
        fit,
        steps=steps,
        ended_by=fit.ended_by if ends_early else "max_steps",
        validation_losses=tuple(zip_longest(grid if validates else [], losses)),
        best_step=best_step,
        validation_loss=validation_loss,
        kept=tuple(best[: recipe.keep_best]) if recipe.keep_best > 1 else (),
        averaged=tuple(best[: recipe.average_weights]) if recipe.average_weights > 1 else (),
    )


def find_impossible(record: RunRecord) -> Iterator[str]:
    """Yield a line for the losses, and for each time of a record, that cannot be."""
    fit, times = record.fit, record.timings
    losses = [loss for loss in (fit.first_loss, fit.last_loss) if loss is not None]
    losses += dict(fit.validation_losses).values()
    if "fit" in record.versions and record.trained and len(losses) < 2:
        yield "record.json: a training without losses"
    if losses and (min(losses) < 0 or losses[0] > _LARGEST_LOSS):
        yield f"record.json: no training has such losses: the first is {losses[0]:g}, the lowest {min(losses):g}"
    steps = (times.read, times.fit, times.summarize, times.score)
    if min(steps) < 0 or sum(steps) > times.total + 1:
        yield f"record.json: its steps took {sum(steps):.1f} seconds, and all of it {times.total:.1f}"
    try:
        finished = datetime.fromisoformat(record.finished).astimezone(UTC)
    except ValueError:
        yield f"record.json: finished is no time: {record.finished}"
        return
    if finished > datetime.now(UTC) + _CLOCK_ERROR:
        yield f"record.json: finished in the future: {record.finished}"


def read_neighbours(folders: Iterable[Path]) -> dict[Path, RunRecord]:
    """Return folder → record of these runs and all others on their datasets, with the hash of their outputs."""
    places = {(root, folder.parent.parent.name) for folder in folders for root in folder.absolute().parents[3:4]}
    neighbours = {}
    for root, dataset in sorted(places):
        for folder in Results(root).run_folders(dataset):
            with suppress(SuiteError, OSError):
                record = RunRecord.read(folder)
                summaries = read_summaries(folder / "predictions.jsonl")
                hashed = digest_texts(summaries) if summaries else record.outputs_digest
                neighbours[folder] = replace(record, outputs_digest=hashed)
    return neighbours


def find_copies(folder: Path, neighbours: Mapping[Path, RunRecord]) -> Iterator[str]:
    """Yield a line for each run of another seed or system whose outputs or losses a trained run has."""
    record = neighbours.get(folder.absolute())
    for other in neighbours.values() if record else ():
        is_same = (record.model, record.settings.train.seed) == (other.model, other.settings.train.seed)
        if is_same or (other.imported and not record.imported):
            continue
        if have_equal_outputs(record, other):
            yield f"predictions.jsonl: {run_label(record)} has the outputs of {run_label(other)}: one is a copy"
        elif record.fit.first_loss is not None and _losses_of(record) == _losses_of(other):
            yield f"record.json: {run_label(record)} has the losses of {run_label(other)}: one is a copy"


def _losses_of(record: RunRecord) -> tuple[Any, ...]:
    return record.fit.first_loss, record.fit.last_loss, record.fit.validation_losses
