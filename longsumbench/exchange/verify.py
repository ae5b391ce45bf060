"""`longsumbench verify`: does the record of a finished run follow from its settings, outputs and texts?

settings, texts --_find_unlike_settings--> lines about labels, training, times
outputs, texts ---_find_problems---------> lines about scores, computed again
outputs, losses --_find_copies-----------> lines about other runs that have the same
"""

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

import longsumbench
from longsumbench.cache.artifacts import cache_folder, user_cache
from longsumbench.core import (
    SECTIONS,
    FitReport,
    RunConfig,
    Split,
    Summary,
    System,
    TrainConfig,
    build_settings,
    deciding_parts,
    registry,
    sees_reference,
)
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.errors import DataError, SuiteError, suite_errors
from longsumbench.files import BadFile, read_json, write_atomically
from longsumbench.formatting import format_count
from longsumbench.leaderboards.seed_groups import have_equal_outputs
from longsumbench.metrics.aggregate import GROUP, aggregate_measures, read_scores
from longsumbench.metrics.evaluate import Evaluation
from longsumbench.metrics.rouge import Rouge
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.outputs.files import first_ids
from longsumbench.outputs.import_outputs import ImportedConfig, only_summarized
from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.runs.compose import hydra_session
from longsumbench.runs.overrides import add_config_file, as_hydra, read_config_file
from longsumbench.runs.pipeline import build_run_key
from longsumbench.runs.predictions import digest_texts, num_summarized, read_summaries
from longsumbench.runs.record import (
    VERIFIED_FILE,
    ImportedOutputs,
    RecordedSystem,
    RecordedTexts,
    RunCosts,
    RunRecord,
    output_files,
    recorded_metadata,
    split_variant,
)
from longsumbench.runs.results import Results, find_stage, hash_scored_files
from longsumbench.runs.run_names import describe_run
from longsumbench.runs.scoring import copies_sources, score_run, scored_examples, total_ledger
from longsumbench.runs.variant import name_variant
from longsumbench.sentences import split_for_rouge

_log = logging.getLogger(__name__)

_NEW_FIELDS = ("evaluation.groups", "evaluation.outputs.marked", "evaluation.outputs.unchanged")
_NEED_MODELS = {"bertscore", "support", "judge", "answers"}  # metrics that are not computed again
_ROUNDING = 1e-6  # of a score: another machine may add in another order
_CLOCK_ERROR = timedelta(days=1)  # of another machine
_LARGEST_LOSS = 100.0  # nats per target token, at the start of a training
_SCORED_BY_LIBRARY = 100  # summaries, evenly spaced; it is slow
_EARLY_ENDS = ("max_tokens", "max_minutes", "patience")  # budgets and rules of a recipe
# Words of a command; a variant does not name the settings in their files
_OTHER_FILES = ("--config-dir", "experiment=", "model/recipe=")


def verify_runs(
    folders: Sequence[Path], dataset_path: str | None = None
) -> Iterator[tuple[Path, list[str]]]:
    """Check the records of runs, and score their outputs again; yield each folder with what does not agree.

    A line says what does not agree. If all agree, `verified.json` in the run's folder says so. The copy of a packed run
    is not marked. `dataset_path` replaces the `dataset.path` of the runs.
    """
    neighbours = _read_neighbours(folders)
    for folder in folders:
        try:
            with suite_errors():
                yield folder, _verify_run(folder, neighbours, dataset_path)
        except SuiteError as error:
            yield folder, [f"not verified: {error}"]


def _verify_run(
    folder: Path, neighbours: Mapping[Path, RunRecord], dataset_path: str | None
) -> list[str]:
    """Return what does not agree, a line each; mark the run if all agrees.

    Raises:
        DataError: a file of the run is missing or damaged; its texts cannot be read here, or are others.
        UsageError: a setting of the run is unknown here.
    """
    hashes, record = hash_scored_files(folder), RunRecord.read(folder)
    files = chain.from_iterable(output_files(len(record.evaluation.checkpoints)))
    record.check_written(folder, [*files, "scores.csv", "config.yaml"])
    config = _build_verified_config(record, dataset_path)
    if others := record.evaluation.measured_by.keys() - set(config.score.metrics):
        names = [name for name in record.evaluation.measured_by if name in others]
        problem = "not computed again, which needs a model or a plug-in"
        _log.warning(f"{record.label}: {problem}: {', '.join(names)}")
    texts = _load_same_texts(config, record)
    texts.check_split(config.dataset.split)
    problems = [*_find_problems(folder, record, config, texts), *_find_copies(folder, neighbours)]
    if folder.resolve().is_relative_to(cache_folder().resolve()):
        _log.info(f"{record.label}: packed, so it is not marked")
    elif problems:
        (folder / VERIFIED_FILE).unlink(missing_ok=True)
    else:
        mark = {
            "longsumbench": longsumbench.__version__,
            "signature": record.evaluation.signature,
            "files": hashes,
        }
        try:
            write_atomically(folder / VERIFIED_FILE, json.dumps(mark, indent=1) + "\n")
        except OSError as error:
            _log.warning(f"{record.label}: agrees, but cannot be marked here ({error.strerror})")
    return problems


def _build_verified_config(record: RunRecord, dataset_path: str | None) -> RunConfig:
    """Return the typed settings of a run, with the metrics that can be computed again."""
    values = asdict(record.config)
    name, schemas = values["model"].get("name", ""), dict(SECTIONS)
    settings = {**values, "model": ImportedConfig(name)}
    if name in registry.systems.targets():
        schemas["model"] = registry.load_config_class(name)
    for section, schema in schemas.items():
        settings[section] = build_settings(schema, values[section], f"{section}.")
    config = RunConfig(**settings)
    config.dataset.path = dataset_path or config.dataset.path
    # Metrics of plug-ins may not be installed here
    computable = registry.metrics.built_in.keys() - _NEED_MODELS
    metrics = [metric for metric in record.evaluation.measured_by if metric in computable]
    config.score = replace(config.score, metrics=metrics)
    return config


def _load_same_texts(config: RunConfig, record: RunRecord) -> Texts:
    """Read the texts of a run; raise DataError if they cannot be read here, or are others."""
    key = record.key
    try:
        texts = load_texts(config.dataset, user_cache())
    except SuiteError as error:
        needed = f"needs the texts of {key.dataset} (fingerprint {key.fingerprint[:12]})"
        raise DataError(f"{needed}; say by --dataset-path where they are here: {error}") from error
    if texts.fingerprint != key.fingerprint:
        fingerprints = f"{texts.fingerprint[:12]}, those of the run {key.fingerprint[:12]}"
        raise DataError(
            f"dataset '{texts.name}' has other texts here: their fingerprint is {fingerprints}"
        )
    return texts


def _find_problems(
    folder: Path, record: RunRecord, config: RunConfig, texts: Texts
) -> Iterator[str]:
    files = dict(output_files(len(record.evaluation.checkpoints)))
    split_name = config.dataset.split
    split = texts.splits[split_name]
    tables = {name: read_scores(folder / name) for name in {*files.values(), "scores.csv"}}
    ids = set(split.ids[: num_summarized(split, config.decode)])
    if record.imported:  # examples may have been left out
        ids &= {*tables["scores.csv"].index, *record.evaluation.empty_references}
    outputs = {name: read_summaries(folder / name) for name in files}
    fields = read_json(folder / "record.json", dict[str, Any])
    yield from _find_unlike_settings(folder, record, fields.pop("config"))
    yield from _find_impossible(record, config)
    problems = list[str]()
    for name, summaries in outputs.items():
        problems += _unlike_ids(name, [summary.id for summary in summaries], ids)
    if problems:  # all means are over other examples
        yield from problems
        return
    expected = _expected_record(folder, record, config, texts, outputs["predictions.jsonl"])
    # Score the outputs again, as a run does
    subset = only_summarized(texts, split_name, ids)
    with TemporaryDirectory() as root:
        evaluation = score_run(config, subset, record.fit, [*outputs.values()], Path(root))
        new_tables = {name: read_scores(Path(root) / name) for name in tables}
    other_version = _describe_other_version(record.evaluation, evaluation)
    if other_version:
        yield f"scored by another version, so not compared: {other_version}"
        tables.clear()
    else:
        evaluation = _add_other_metrics(evaluation, record, tables, new_tables)
        expected = replace(expected, evaluation=evaluation)
    values = asdict(expected)
    for name in ("config", "verified"):
        del values[name]
    source = "settings, texts and outputs give"
    unlike_fields = _describe_unlike_fields(flatten_values(fields), flatten_values(values), source)
    unlike_scores = list[str]()
    for name, table in sorted(tables.items()):
        unlike_scores += _unlike_ids(name, table.index, new_tables[name].index)
        new_cells = _cells(new_tables[name].reindex(table.index))
        unlike_scores += _describe_unlike(name, _cells(table), new_cells, "the outputs give")
    if unlike_fields and unlike_scores:
        yield "predictions.jsonl: changed, or the scores in all other files are"
    yield from (*unlike_fields, *unlike_scores)
    if tables and not unlike_scores:
        scores = _score_by_library(config, subset.splits[split_name], outputs["predictions.jsonl"])
        cells = _cells(tables[files["predictions.jsonl"]])
        recorded = {name: cells[name] for name in scores}
        yield from _describe_unlike("scores.csv", recorded, scores, "rouge_score gives")


def _find_unlike_settings(
    folder: Path, record: RunRecord, config: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a line if a run's folder, or its `config.yaml`, is not the one that its record names."""
    place = Path("runs", record.key.dataset, record.key.model, record.run_id)
    if folder.absolute().parts[-4:] != place.parts:
        yield f"its folder is not {place.as_posix()}, where its record belongs"
    recorded = flatten_values(config)
    config_file = flatten_values(read_config_file(folder / "config.yaml"))
    # A later command may rename the run, and another machine have other folders
    for name in ("name", "dataset.path"):
        if name in recorded:
            recorded[name] = config_file.get(name)
    yield from _describe_unlike("record.json", recorded, config_file, "config.yaml has")


def _expected_record(
    folder: Path,
    record: RunRecord,
    config: RunConfig,
    texts: Texts,
    summaries: Sequence[Summary],
) -> RunRecord:
    """Return a record with what its settings, texts and summaries decide; the other fields are its own."""
    copies = copies_sources(config, record.fit, record.system.checkpoint)
    recorded_texts = recorded_metadata(texts.metadata, RecordedTexts)
    model = config.model
    is_import = isinstance(model, ImportedConfig)
    changes: dict[str, Any] = {
        "outputs_digest": digest_texts(summaries),
        "ledger": total_ledger(summaries, copies, config.decode),
        "texts": replace(recorded_texts, more=record.texts.more),
    }
    if is_import and not record.config.model.get("imported"):
        _log.warning(f"{record.label}: settings not checked, because this system is not installed")
        return replace(record, **changes)
    changes["imported"] = None
    if is_import:
        key = record.key
        config.model = ImportedConfig(key.model, variant=record.variant, seed=key.seed)
        changes["imported"] = record.imported or ImportedOutputs("", "")
        changes["costs"] = RunCosts()
    has_checkpoint = (
        getattr(model, "checkpoint", None) or model.name not in registry.systems.shipped()
    )
    if is_import or not has_checkpoint:
        changes["system"] = RecordedSystem(more=record.system.more)
    changes["oracle"] = sees_reference(config.model, config.decode)
    changes["fit"] = _expected_fit(folder, record, config, texts)
    expected = replace(record, **changes)
    try:
        for name, value in config.model.identity().items():
            if record.system.more.get(name, value) != value:
                raise DataError(f"{name} are others on this machine")
        key = build_run_key(config, texts, expected.outputs_digest if record.imported else "")
        # Other code may have made it
        key = replace(key, versions=record.key.versions)
        variant = record.variant if is_import else _expected_variant(folder, record, config)
        return replace(expected, key=key, run_id=key.run_id, variant=variant)
    except SuiteError as error:
        _log.warning(f"{record.label}: not computed again, run id and variant: {error}")
        return expected


def _expected_fit(folder: Path, record: RunRecord, config: RunConfig, texts: Texts) -> FitReport:
    """Return a report with what the settings and the losses decide; that of the training itself if it is here."""
    fit, model = record.fit, config.model
    if isinstance(model, ImportedConfig) or registry.systems.load(model.name).fit is System.fit:
        return FitReport()
    if (
        "train" not in deciding_parts(model, config.train, config.decode)
        or not config.train.max_steps
    ):
        return FitReport(fit.parameters, ended_by=fit.ended_by, precision=fit.precision)
    if not isinstance(model, NeuralConfig):
        return fit
    with suppress(FileNotFoundError, BadFile):
        trained = read_json(find_stage(folder, "checkpoint") / "fit.json", FitReport)
        # Another training of the same may have taken longer
        return replace(trained, seconds=fit.seconds)
    return _expected_training(fit, config.train, bool(texts.splits.get("validation")))


def _describe_other_version(recorded: Evaluation, evaluation: Evaluation) -> str:
    """Return the versions of a metric if another one computed the recorded scores; empty for the same."""
    here = {**evaluation.measured_by, "rouge": evaluation.signature}
    for name, version in {**recorded.measured_by, "rouge": recorded.signature}.items():
        if here.get(name, version) != version:
            return f"{version}; here {here[name]}"
    return ""


def _describe_unlike_fields(
    recorded: Mapping[str, Any], expected: Mapping[str, Any], source: str
) -> list[str]:
    """Compare the fields of a record; an earlier one lacks `_NEW_FIELDS`, which may then be None or 0."""
    compared = dict(expected)
    for name in _NEW_FIELDS:
        if name not in recorded and not expected.get(name):
            compared.pop(name, None)
    return _describe_unlike("record.json", recorded, compared, source)


def _add_other_metrics(
    evaluation: Evaluation,
    record: RunRecord,
    tables: Mapping[str, pd.DataFrame],
    new_tables: dict[str, pd.DataFrame],
) -> Evaluation:
    """Return an evaluation with the recorded metrics that are not computed again; their means are computed again."""
    recorded = record.evaluation
    if not recorded.measured_by.keys() - evaluation.measured_by.keys():
        return evaluation
    scores = tables["scores.csv"]
    columns = scores.columns.difference(new_tables["scores.csv"].columns)
    for name, table in tables.items():
        new_tables[name] = table.assign(**new_tables[name])
    groups = [GROUP] if GROUP in scores and GROUP not in columns else []
    resamples = record.config.score.resamples
    means = aggregate_measures(scores[[*columns, *groups]], resamples, in_units=recorded.units)
    return replace(
        evaluation,
        measures={**recorded.measures, **means, **evaluation.measures},
        units={**recorded.units, **evaluation.units},
        measured_by={**recorded.measured_by, **evaluation.measured_by},
    )


def _expected_variant(folder: Path, record: RunRecord, config: RunConfig) -> str:
    with hydra_session():
        overrides = list(map(as_hydra, add_config_file(folder / "config.yaml", [])))
        variant = name_variant(overrides, config)
    has_files = any(word.startswith(_OTHER_FILES) for word in record.command)
    is_part = {*split_variant(record.variant)} <= {*split_variant(variant)}
    return record.variant if has_files and is_part else variant


def _expected_training(fit: FitReport, recipe: TrainConfig, validates: bool) -> FitReport:
    """Return a report with what its recipe and its losses decide."""
    steps, ended_by = recipe.max_steps, "max_steps"
    if fit.ended_by in _EARLY_ENDS and vars(recipe)[fit.ended_by]:
        steps, ended_by = min(max(fit.steps, 1), steps), fit.ended_by
    # A training that ended early has as many validations as it reached
    losses = [loss for _, loss in fit.validation_losses]
    grid = []
    if validates:
        validations = range(recipe.eval_steps, steps, recipe.eval_steps)
        grid = [*validations[: len(losses)], steps]
    best = min(fit.validation_losses, key=lambda pair: (pair[1], pair[0]), default=(steps, None))
    return replace(
        fit,
        steps=steps,
        ended_by=ended_by,
        validation_losses=tuple(zip_longest(grid, losses)),
        best_step=best[0],
        validation_loss=best[1],
    )


def _find_impossible(record: RunRecord, config: RunConfig) -> Iterator[str]:
    """Yield a line for the losses, and for each time of a record, that cannot be."""
    fit, times = record.fit, record.costs.timings
    losses = [loss for loss in (fit.first_loss, fit.last_loss) if loss is not None]
    losses += dict(fit.validation_losses).values()
    if isinstance(config.model, NeuralConfig) and record.trained and len(losses) < 2:
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


def _read_neighbours(folders: Iterable[Path]) -> dict[Path, RunRecord]:
    """Return folder → record of these runs and all others on their datasets, with the hash of their outputs."""
    neighbours = {}
    for place in {folder.absolute().parent.parent for folder in folders}:  # runs/<dataset>
        for folder in Results(place.parent.parent).run_folders(place.name):
            with suppress(SuiteError, OSError):
                record = RunRecord.read(folder)
                summaries = read_summaries(folder / "predictions.jsonl")
                hashed = digest_texts(summaries) if summaries else record.outputs_digest
                neighbours[folder] = replace(record, outputs_digest=hashed)
    return neighbours


def _find_copies(folder: Path, neighbours: Mapping[Path, RunRecord]) -> Iterator[str]:
    """Yield a line for each run of another seed or system whose outputs or losses a trained run has."""
    record = neighbours.get(folder.absolute())
    if record is None:
        return
    model, seed = record.key.model, record.config.train.seed
    for neighbour in neighbours.values():
        is_same = neighbour.key.model == model and neighbour.config.train.seed == seed
        if is_same or (neighbour.imported and not record.imported):
            continue
        # It may have been scored in another way
        evaluation = replace(neighbour.evaluation, scores=record.evaluation.scores)
        labels = f"of {describe_run(neighbour)}: one is a copy"
        if have_equal_outputs(record, replace(neighbour, evaluation=evaluation)):
            yield f"predictions.jsonl: {describe_run(record)} has the outputs {labels}"
        elif record.fit.first_loss is not None and _list_losses(record) == _list_losses(neighbour):
            yield f"record.json: {describe_run(record)} has the losses {labels}"


def _list_losses(record: RunRecord) -> tuple[Any, ...]:
    return record.fit.first_loss, record.fit.last_loss, record.fit.validation_losses


def _score_by_library(
    config: RunConfig, split: Split, summaries: Sequence[Summary]
) -> dict[str, float]:
    """Return the scores of some summaries by `rouge_score`, as `_cells`; none where it has no such rule."""
    scoring = config.score
    rules = scoring.mode, scoring.tokenizer, scoring.references, scoring.max_words
    if rules != ("google", "default", None, None):
        return {}
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(ROUGE_TYPES, use_stemmer=scoring.stem)
    metric = Rouge(scoring)
    examples = scored_examples(config, split, [summary.text for summary in summaries])
    cells = {}
    for index in range(0, len(summaries), -(-len(summaries) // _SCORED_BY_LIBRARY)):
        example, summary = examples[index], summaries[index]
        if not metric.can_score(example) or summary.counts.get("failed"):
            continue
        lines = []
        for text in (summary.text, *example.references):
            sentences = split_for_rouge(text, scoring.sentences)
            lines.append("\n".join(" ".join(sentence.split()) for sentence in sentences))
        scores = scorer.score_multi(lines[1:], lines[0])
        for kind, values in scores.items():
            for part, value in zip("prf", values, strict=True):
                cells[f"{kind}_{part} of '{example.id}'"] = float(value)
    return cells


def _describe_unlike(
    file: str, recorded: Mapping[str, Any], expected: Mapping[str, Any], source: str
) -> list[str]:
    """Return a line about the first value of a file that differs; none if all agree."""
    unlike = unlike_values(recorded, expected)
    for field, (old, new) in unlike.items():
        count = format_count(len(unlike), "value")
        return [f"{file}: {field} is {old}, {source} {new} ({count} in all)"]
    return []


def _unlike_ids(file: str, ids: Iterable[str], expected: Iterable[str]) -> Iterator[str]:
    ids, expected = {*ids}, {*expected}
    for kind, names in (("missing", expected - ids), ("extra", ids - expected)):
        if names:
            yield f"{file}: {format_count(len(names), f'{kind} example')} ({first_ids(sorted(names))})"


def _cells(table: pd.DataFrame) -> dict[str, float]:
    cells = {}
    for column in table:
        for name, value in table[column].items():
            cells[f"{column} of '{name}'"] = value
    return cells


def flatten_values(values: Any, name: str = "") -> dict[str, Any]:
    """Return path → value ("scores.rouge1.f", "kept.0.1") of nested mappings and lists, also of empty ones."""
    if isinstance(values, list | tuple):
        values = dict(enumerate(values))
    if not isinstance(values, Mapping) or not values:
        return {name: values}
    fields = dict[str, Any]()
    for key, value in values.items():
        fields |= flatten_values(value, f"{name}.{key}".lstrip("."))
    return fields


def unlike_values(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """Return name → both values, of those that are missing in one, or differ by more than rounding."""
    unlike = {}
    for name in {**first, **second}:
        pair = first.get(name, "missing"), second.get(name, "missing")
        if f"{pair[0]}" != f"{pair[1]}" and not _are_close(*pair):
            unlike[name] = pair
    return unlike


def _are_close(*pair: Any) -> bool:
    are_floats = all(isinstance(value, float) for value in pair)
    return are_floats and math.isclose(*pair, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
