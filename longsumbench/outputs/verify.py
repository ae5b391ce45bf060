"""`longsumbench verify`: the scores of a finished run, computed again from its outputs and the texts."""

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

import longsumbench
from longsumbench.cache.artifacts import cache_folder, user_cache
from longsumbench.core import SECTIONS, RunConfig, Summary, build_settings, registry
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import DataError, SuiteError, suite_errors
from longsumbench.files import write_atomically
from longsumbench.formatting import format_count
from longsumbench.metrics.aggregate import read_scores
from longsumbench.outputs.files import first_ids
from longsumbench.outputs.import_outputs import ImportedConfig, ImportedSystem, OutputsToImport, only_summarized
from longsumbench.outputs.verify_record import expected_fields, find_copies, find_impossible, read_neighbours
from longsumbench.runs.known_systems import make_system
from longsumbench.runs.overrides import flatten_config, read_config_file
from longsumbench.runs.predictions import digest_texts, num_summarized, read_summaries
from longsumbench.runs.record import RunRecord, output_files
from longsumbench.runs.results import VERIFIED_FILE, hash_scored_files
from longsumbench.runs.run_id import check_split
from longsumbench.runs.scoring import score_run

_log = logging.getLogger(__name__)

_OUTCOME = (  # fields of a record that outputs and texts decide
    *("n", "examples", "empty_references", "empty_predictions", "scores", "measures"),
    *("units", "ranked_by", "floor", "outputs", "signature", "measured_by"),
)
_NEED_MODELS = ("bertscore", "support", "judge")  # metrics that are not computed again
_ROUNDING = 1e-6  # of a score: another machine may add in another order


def verify_runs(folders: Sequence[Path], dataset_path: str | None = None) -> Iterator[tuple[Path, list[str]]]:
    """Check the records of runs, and score their outputs again; yield each folder with what does not agree.

    A line says what does not agree. If all agree, `verified.json` in the run's folder says so. The copy of a packed run
    is not marked. `dataset_path` replaces the `dataset.path` of the runs.
    """
    neighbours = read_neighbours(folders)
    for folder in folders:
        try:
            with suite_errors():
                yield folder, _verify_run(folder, neighbours, dataset_path)
        except SuiteError as error:
            yield folder, [f"not verified: {error}"]


def _verify_run(folder: Path, neighbours: Mapping[Path, RunRecord], dataset_path: str | None) -> list[str]:
    """Return what does not agree, a line each; mark the run if all agrees.

    Raises:
        DataError: a file of the run is missing or damaged; its texts cannot be read here, or are others.
        UsageError: a setting of the run is unknown here.
    """
    hashes, record = hash_scored_files(folder), RunRecord.read(folder)
    files = [*chain.from_iterable(output_files(len(record.checkpoints))), "scores.csv", "config.yaml"]
    record.check_written(folder, files)
    name = record.config["model"]["name"]
    schemas = {**SECTIONS, **({"model": registry.config_of(name)} if name in registry.systems.targets() else {})}
    sections = {key: build_settings(schema, record.config[key], f"{key}.") for key, schema in schemas.items()}
    top_level = {key: record.config[key] for key in ("seed", "scale")}
    config = RunConfig(**{"model": ImportedConfig(name), **sections, **top_level})
    config.dataset.path = dataset_path or config.dataset.path
    names = [name for name in record.measured_by if name in registry.metrics.built_in and name not in _NEED_MODELS]
    config.score = replace(config.score, metrics=names)
    if others := [name for name in record.measured_by if name not in names]:
        _log.warning(f"{record.label}: not computed again, which needs a model or a plug-in: {', '.join(others)}")
    try:
        texts = load_texts(config.dataset, user_cache())
    except SuiteError as error:
        needed = f"needs the texts of {record.dataset} (fingerprint {record.fingerprint[:12]})"
        raise DataError(f"{needed}; say by --dataset-path where they are here: {error}") from error
    _check_same_texts(texts, record)
    check_split(config.dataset, texts)
    problems = [*_find_problems(folder, record, config, texts), *find_copies(folder, neighbours)]
    if folder.resolve().is_relative_to(cache_folder().resolve()):
        _log.info(f"{record.label}: packed, so it is not marked")
    elif problems:
        (folder / VERIFIED_FILE).unlink(missing_ok=True)
    else:
        mark = {"longsumbench": longsumbench.__version__, "signature": record.signature, "files": hashes}
        write_atomically(folder / VERIFIED_FILE, json.dumps(mark, indent=1) + "\n")
    return problems


def _find_problems(folder: Path, record: RunRecord, config: RunConfig, texts: Texts) -> Iterator[str]:
    files, split = dict(output_files(len(record.checkpoints))), texts.splits[config.dataset.split]
    tables = {name: read_scores(folder / name) for name in {*files.values(), "scores.csv"}}
    ids = split.ids[: num_summarized(split, config.decode)]
    if record.imported:  # examples may have been left out
        ids = [name for name in ids if name in tables["scores.csv"].index or name in record.empty_references]
    outputs = {name: read_summaries(folder / name) for name in files}
    yield from _find_unlike_settings(folder, record, config, texts, outputs["predictions.jsonl"])
    unlike_outputs = [_unlike_ids(name, (each.id for each in outputs[name]), ids) for name in files]
    if problems := [*chain.from_iterable(unlike_outputs)]:  # all means are over other examples
        yield from problems
        return
    with TemporaryDirectory() as root:
        subset = only_summarized(texts, config.dataset.split, set(ids))
        fields = score_run(config, subset, record.fit, [*outputs.values()], Path(root))
        new_tables = {name: read_scores(Path(root) / name) for name in tables}
    versions = [{"rouge": each["signature"], **each["measured_by"]} for each in (vars(record), fields)]
    if unlike := unlike_values(*versions):
        yield from (f"scored by another version, so not compared: {old}; here {new}" for old, new in unlike.values())
        return
    outcome = outcome_of(fields)
    if record.outputs_digest:
        outcome["outputs_digest"] = digest_texts(outputs["predictions.jsonl"])
    pairs = {"record.json": ({**outcome_of(vars(record)), "outputs_digest": record.outputs_digest}, outcome)}
    for name, table in sorted(tables.items()):
        yield from _unlike_ids(name, table.index, new_tables[name].index)
        pairs[name] = (_cells(table), _cells(new_tables[name]))
    differing = {name: unlike for name, pair in pairs.items() if (unlike := unlike_values(*pair))}
    if {"record.json", "scores.csv"} <= {*differing}:
        yield "predictions.jsonl: changed, or the scores in all other files are"
    for name, unlike in differing.items():
        yield _describe_unlike(name, unlike, "the outputs give")


def _find_unlike_settings(
    folder: Path, record: RunRecord, config: RunConfig, texts: Texts, summaries: Sequence[Summary]
) -> Iterator[str]:
    """Yield a line for what the settings, the training and the times of a record contradict."""
    place = Path("runs", record.dataset, record.model, record.run_id)
    if folder.absolute().parts[-4:] != place.parts:
        yield f"its folder is not {place.as_posix()}, where its record belongs"
    settings = flatten_config(record.config)
    del settings["name"], settings["dataset.path"]  # a later command may rename the run, or another machine move texts
    if unlike := unlike_values(settings, read_config_file(folder / "config.yaml")):
        yield _describe_unlike("record.json", unlike, "config.yaml has")
    yield from find_impossible(record)
    is_import = isinstance(config.model, ImportedConfig)
    if is_import and not record.imported:
        _log.warning(f"{record.label}: settings not checked, because this system is not installed")
        return
    outputs = OutputsToImport(Path(), record.model, record.variant, record.seed)
    system = ImportedSystem(outputs, summaries) if is_import else make_system(config.model)
    expected = expected_fields(folder, record, config, system, texts)
    if not is_import:
        expected["imported"] = None
    values = {**vars(record), **{f"fit.{name}": value for name, value in vars(record.fit).items()}}
    if unlike := unlike_values(values, expected):
        yield _describe_unlike("record.json", unlike, "its settings give")


def _describe_unlike(name: str, unlike: Mapping[str, tuple[Any, Any]], source: str) -> str:
    (field, (old, new)), count = next(iter(unlike.items())), format_count(len(unlike), "value")
    return f"{name}: {field} is {old}, {source} {new} ({count} in all)"


def _unlike_ids(file: str, ids: Iterable[str], expected: Iterable[str]) -> Iterator[str]:
    ids, expected = {*ids}, {*expected}
    for kind, names in (("missing", expected - ids), ("extra", ids - expected)):
        if names:
            yield f"{file}: {format_count(len(names), f'{kind} example')} ({first_ids(sorted(names))})"


def _cells(table: pd.DataFrame) -> dict[str, float]:
    return {f"{column} of '{name}'": value for column in table for name, value in table[column].items()}


def outcome_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known fields of a record that outputs and texts decide, as path ("scores.rouge1.f") → number, text."""
    values = json.loads(json.dumps({name: fields[name] for name in _OUTCOME}, default=asdict))
    row: dict[str, Any] = dict(pd.json_normalize(values).iloc[0])
    return {name: value for name, value in row.items() if value is not None}


def unlike_values(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return name → both values, of those that both have and that differ by more than rounding."""
    pairs = {name: (value, second[name]) for name, value in first.items() if name in second}
    return {name: pair for name, pair in pairs.items() if f"{pair[0]}" != f"{pair[1]}" and not _are_close(*pair)}


def _are_close(*pair: Any) -> bool:
    are_floats = all(isinstance(value, float) for value in pair)
    return are_floats and math.isclose(*pair, rel_tol=_ROUNDING, abs_tol=_ROUNDING)


def _check_same_texts(texts: Texts, record: RunRecord) -> None:
    """Raise DataError if a dataset has other texts here than in a run."""
    if texts.fingerprint != record.fingerprint:
        fingerprints = f"{texts.fingerprint[:12]}, those of the run {record.fingerprint[:12]}"
        raise DataError(f"dataset '{texts.name}' has other texts here: their fingerprint is {fingerprints}")
