"""One run: read → fit → summarize → score → record.

Every step writes its result to disk. An interrupted run continues from there. A finished run is given what was
requested later: evidence, inputs, metrics. The first run on some texts also scores the baselines.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longsumbench import core
from longsumbench.cache.artifacts import ArtifactCache, is_older, locked_artifact, user_cache
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.errors import DataError, SuiteError, UsageError
from longsumbench.formatting import format_count
from longsumbench.metrics.aggregate import column_means, read_scores
from longsumbench.metrics.evaluate import Evaluation, ScoredOutputs, evaluate, mean_scores
from longsumbench.modeling.processes import process_index, share_run, started_processes
from longsumbench.runs import results, scoring
from longsumbench.runs.bug_report import as_reported_error
from longsumbench.runs.checkpoints import fit_context
from longsumbench.runs.environment import (
    environment,
    peak_memory_gb,
    reset_peak_memory,
    write_environment,
)
from longsumbench.runs.plan import PlannedRun
from longsumbench.runs.predictions import (
    Writer,
    digest_texts,
    num_summarized,
    read_summaries,
    sum_decoding_seconds,
    summarize_split,
)
from longsumbench.runs.record import (
    RecordedConfig,
    RecordedSystem,
    RecordedTexts,
    RunCosts,
    RunRecord,
    StepSeconds,
    output_files,
    recorded_metadata,
)
from longsumbench.runs.verdicts import write_verdicts

_log = logging.getLogger(__name__)


def run_point(
    point: PlannedRun,
    prepare: Callable[[core.RunConfig, ArtifactCache], tuple[core.System, Texts]] | None = None,
) -> RunRecord:
    """Do a run, or the missing steps of it. A finished run is only read.

    An import makes its system and its texts by `prepare`.

    Raises:
        SuiteError: an error that the user can fix; finished steps are kept.
    """
    config, quiet, started = point.config, point.quiet, time.monotonic()
    root = results.Results.writable(config.results_dir)
    cache = _open_cache(point)
    with point.timed("read"):
        if prepare is None:
            system, texts = None, load_texts(config.dataset, cache)
        else:
            system, texts = prepare(config, cache)
    key = build_run_key(config, texts, point.outputs)
    # A packed run stays as it is
    find_folder = root.unpacked_folder if config.overwrite else root.folder
    folder = find_folder(key.dataset, key.model, key.run_id)
    if config.overwrite or not results.is_finished(folder) or is_incomplete(config, texts, folder):
        root.check_not_packed(folder)
        (folder / "work").mkdir(parents=True, exist_ok=True)
        with locked_artifact(folder / "work" / ".lock", f"the same run, {folder}"):
            if config.overwrite and is_older(folder / "config.yaml", point.since):
                results.delete_run_files(folder)
            if not results.is_finished(folder):  # another process may have finished it
                results.report_torn_record(folder)
                system = system or core.new_system(config.model)
                return _carry_out(point, key, system, texts, cache, folder, started)
            if is_incomplete(config, texts, folder):
                add_missing(config, texts, cache, folder)
                quiet = True
    record = RunRecord.read(folder)
    if config.name not in (None, record.config.name):
        root.check_not_packed(folder)
        record = replace(record, config=replace(record.config, name=config.name))
        record.write(folder)
    if not quiet:
        _log.info(f"already finished: {config.model.name} on {config.dataset.name}, {folder}")
    return record


def build_run_key(config: core.RunConfig, texts: Texts, outputs: str = "") -> core.RunKey:
    """Return the key of a run on texts that were read; `outputs` is the hash of imported outputs.

    Raises:
        DataError: the dataset lacks the split to summarize.
        EnvironmentProblem: the model's checkpoint is not on this machine.
    """
    texts.check_split(config.dataset.split)
    return replace(
        core.RunKey.of(config),
        fingerprint=texts.fingerprint,
        outputs=outputs,
        layout=texts.layout if config.model.capabilities.reads_layout else "",
    )


def needs_no_work(config: core.RunConfig) -> bool:
    """Return True if a run is finished and has all that its configuration asks for. Reads its texts if runs exist."""
    root = results.Results.at(config.results_dir)
    with suppress(SuiteError, OSError):  # its process reports the problem
        runs = root.run_folders(config.dataset.name, f"{config.model.name}/*")
        if not config.overwrite and any((folder / "record.json").is_file() for folder in runs):
            texts = load_texts(config.dataset, user_cache())
            key = build_run_key(config, texts)
            folder = root.folder(key.dataset, key.model, key.run_id)
            return results.is_finished(folder) and not is_incomplete(config, texts, folder)
    return False


def _open_cache(point: PlannedRun) -> ArtifactCache:
    rebuild = frozenset({"checkpoint"} if point.config.overwrite and process_index() == 0 else ())
    return user_cache(rebuild=rebuild, cutoff=point.since)


def _carry_out(
    point: PlannedRun,
    key: core.RunKey,
    system: core.System,
    texts: Texts,
    cache: ArtifactCache,
    folder: Path,
    started: float,
) -> RunRecord:
    config, workdir = point.config, folder / "work"
    model = config.model
    point.carried_out = True
    reset_peak_memory()
    shares_work = model.capabilities.shares_work
    processes = started_processes() if shares_work else 1
    devices = (config.train.device, config.decode.device, config.score.device)
    started_in = replace(environment(devices), processes=processes)  # the commit may change later
    split = texts.splits[config.dataset.split]
    number = num_summarized(split, config.decode)
    if config.score.empty_references != "zero":
        texts.check_references(config.dataset.split, number)
    system.check_examples(split[index] for index in range(number))
    scoring.warn_about_dropped_letters(config.score, split)
    results.write_run_config(config, folder)
    write_environment(workdir)
    with share_run(folder, config.train.device) if shares_work else nullcontext():
        with point.timed("fit"), texts.naming_files(), _forgetting_refused(folder):
            report = system.fit(fit_context(texts.splits, config, cache, workdir))
        results.link_stages(workdir, cache)
        results.delete_stale_outputs(report, folder)
        with point.timed("summarize"), _forgetting_refused(folder):
            outputs = _summarize_each(system, split, config.decode, folder, len(report.kept))
    with point.timed("score"):
        evaluation = scoring.score_run(config, texts, report, outputs, folder)
    point.timings["total"] = round(time.monotonic() - started, 3)
    system_metadata = system.metadata()
    copies = scoring.copies_sources(config, report, system_metadata.get("checkpoint"))
    record = RunRecord(
        run_id=folder.name,
        key=key,
        variant=point.variant,
        oracle=core.sees_reference(model, config.decode),
        evaluation=evaluation,
        outputs_digest=digest_texts(outputs[0]),
        fit=report,
        ledger=scoring.total_ledger(outputs[0], copies, config.decode),
        costs=RunCosts() if point.imported else _measure_costs(point, outputs[0], workdir),
        texts=recorded_metadata(texts.metadata, RecordedTexts),
        system=recorded_metadata(system_metadata, RecordedSystem),
        config=RecordedConfig.of(config),
        environment=started_in,
        command=point.command,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        imported=point.imported,
    )
    record.write(folder)
    return record


def _measure_costs(point: PlannedRun, summaries: Sequence[core.Summary], workdir: Path) -> RunCosts:
    num_tokens = 0
    for summary in summaries:
        if summary.tokens is None:
            num_tokens += core.count_words([summary.text])
        else:
            num_tokens += summary.tokens
    seconds = max(sum_decoding_seconds(workdir / "decoding.jsonl"), 1e-3)
    return RunCosts(StepSeconds(**point.timings), round(num_tokens / seconds, 1), peak_memory_gb())


@contextmanager
def _forgetting_refused(folder: Path) -> Iterator[None]:
    """Delete the configuration of a run whose settings or texts are refused: no command would continue it."""
    try:
        yield
    except (UsageError, DataError):
        if not any(folder.glob("predictions*.jsonl")):
            (folder / "config.yaml").unlink(missing_ok=True)
        raise


def take_part(folder: Path) -> None:
    """Fit and summarize in a process other than the first one, which shares the run in this folder."""
    config = results.read_run_config(folder)
    cache = _open_cache(PlannedRun(config))
    splits = load_texts(config.dataset, cache).splits
    system = core.new_system(config.model)
    report = system.fit(fit_context(splits, config, cache))
    _summarize_each(system, splits[config.dataset.split], config.decode, folder, len(report.kept))


def _summarize_each(
    system: core.System, split: core.Split, decoding: core.Decoding, folder: Path, checkpoints: int
) -> list[list[core.Summary]]:
    """Summarize a split with each kept checkpoint, the best first. The best one also has a log, evidence, inputs."""
    outputs = []
    for number in range(1, max(1, checkpoints) + 1):
        name = "summarizing"
        if checkpoints > 1:
            name += f", checkpoint {number} of {checkpoints}"
        if number > 1:
            neural_system: Any = system  # no other system keeps several checkpoints
            neural_system.load_checkpoint(number)
        outputs.append(summarize_split(system, split, decoding, folder, number, name))
    return outputs


def score_baselines(
    point: PlannedRun, baseline_ids: set[str], failed: dict[str, str] | None = None
) -> list[RunRecord]:
    """Score the baselines on the examples of a run, unless it has `baselines=false`; return their records.

    Baselines in `baseline_ids` (settings hashes) need not be scored; those that are scored here are added. One that needs a
    training split or a query that is missing is skipped with a line. One that fails is added to `failed` with its
    reason; without it, the error is raised.
    """
    records: list[RunRecord] = []
    for baseline in _plan_baselines(point) if point.config.baselines else ():
        if baseline.settings_hash in baseline_ids:
            continue
        baseline_ids.add(baseline.settings_hash)
        name = baseline.config.model.name
        try:
            records.append(run_point(baseline))
        except (DataError, UsageError) as error:
            _log.warning(f"{name} was not run with these settings: {error}")
        except Exception as error:
            if failed is None:
                raise
            failed[name] = f"{as_reported_error(error)}"
            _log.warning(f"failed: {name}: {failed[name]}")
    return records


def _plan_baselines(point: PlannedRun) -> Iterator[PlannedRun]:
    """Yield the baselines of a run: on the same examples, and as long as it is asked to write.

    The seed is the default, so that a sweep over seeds adds no rows.
    """
    config, seed = point.config, core.RunConfig.seed
    train, decode = replace(config.train, seed=seed), replace(config.decode, seed=seed)
    seeded = replace(config, train=train, decode=decode, seed=seed, overwrite=False, name=None)
    # The words that the run is asked for; empty for the default length
    words = config.model.length or config.decode.extract_length
    length = {} if words == "train" else {"length": words}
    choices: dict[str, dict[str, str]] = {"lead": length, "random": length, "oracle": {}}
    choices.pop(config.model.name, None)
    if load_texts(config.dataset, _open_cache(point)).splits[config.dataset.split].queried:
        choices["ranker"] = {**length, "rank": "bm25"}  # goes by the query, which the others ignore
    for name, settings in choices.items():
        model = core.registry.load_config_class(name)(**settings)
        variant = ",".join(f"{key}={value}" for key, value in settings.items())
        baseline = replace(seeded, model=model)
        yield PlannedRun(baseline, variant, command=point.command, quiet=True)


def is_incomplete(config: core.RunConfig, texts: Texts, folder: Path) -> bool:
    """Return True if the configuration asks for evidence, inputs or metrics that a finished run does not have."""
    return bool(_missing_parts(config, texts, folder) or _missing_metrics(config, texts, folder))


def add_missing(config: core.RunConfig, texts: Texts, cache: ArtifactCache, folder: Path) -> None:
    """Add the evidence, inputs and metrics that a finished run lacks."""
    if missing := _missing_parts(config, texts, folder):
        subject = f"{config.model.name} on {config.dataset.name}, {folder}"
        _log.info(f"already finished, except for the {missing}: {subject}")
        if problem := _add_parts(config, texts, cache, folder):
            missing = _missing_parts(config, texts, folder)
            _log.warning(f"no {missing} added: {problem}; overwrite=true repeats the run")
    if metrics := _missing_metrics(config, texts, folder):
        _add_measures(config, metrics, texts, folder)


def _missing_parts(config: core.RunConfig, texts: Texts, folder: Path) -> str:
    """Say of how many examples evidence and inputs are missing that the configuration asks for; empty if none are."""
    writer = Writer(config.model, texts.splits[config.dataset.split], config.decode, folder)
    missing = {"evidence": writer.lacking_evidence, "inputs": writer.lacking_inputs}
    parts = [
        f"{name} of {format_count(len(indices), 'example')}"
        for name, indices in missing.items()
        if indices
    ]
    return " and the ".join(parts)


def _add_parts(config: core.RunConfig, texts: Texts, cache: ArtifactCache, folder: Path) -> str:
    """Add missing evidence and inputs to a finished run by decoding their batches again.

    This needs the weights that wrote the summaries. Return why something is still missing; empty if nothing is.
    """
    for link in (folder / "work").iterdir():
        if link.is_symlink() and not link.exists():
            return f"the {link.name} of that run is not in the cache"
    system = core.new_system(config.model)
    report = system.fit(fit_context(texts.splits, config, cache))
    if not results.is_fitted_by(report, folder):
        return "the weights in the cache may differ from those that wrote the summaries"
    summarize_split(system, texts.splits[config.dataset.split], config.decode, folder)
    is_missing = _missing_parts(config, texts, folder)
    return "their summaries differ on this machine" if is_missing else ""


def _missing_metrics(config: core.RunConfig, texts: Texts, folder: Path) -> list[core.Metric]:
    evaluation = RunRecord.read(folder).evaluation
    missing = []
    for metric in scoring.requested_metrics(config, texts):
        if evaluation.measured_by.get(metric.name) != metric.signature(evaluation.n):
            missing.append(metric)
    return missing


def _add_measures(
    config: core.RunConfig, metrics: Sequence[core.Metric], texts: Texts, folder: Path
) -> None:
    """Score the summaries of a finished run with more metrics. Its rank does not change."""
    record, split = RunRecord.read(folder), texts.splits[config.dataset.split]
    names = ", ".join(metric.name for metric in metrics)
    subject = f"{config.model.name} on {config.dataset.name}, {folder}"
    _log.info(f"already finished, except for {names}: {subject}")
    tables, predictions = [], []
    for summaries_file, scores_file in output_files(len(record.evaluation.checkpoints)):
        table = read_scores(folder / scores_file)
        summaries = read_summaries(folder / summaries_file)
        scoring.check_summarized(summaries, split)
        tables.append(table)
        predictions.append([summary.text for summary in summaries if summary.id in table.index])
    examples = scoring.scored_examples(config, split.select(tables[0].index), predictions[0])
    added = evaluate(predictions, examples, (), config.score, metrics)
    for number, columns in enumerate(added.tables):
        others = tables[number].drop(columns=columns.columns, errors="ignore")
        tables[number] = others.join(columns)
    scoring.write_each_scores(folder, tables, mean_scores(tables))
    write_verdicts(folder, added.sentences)
    evaluation = _merge_evaluations(record.evaluation, added)
    replace(record, evaluation=evaluation).write(folder)


def _merge_evaluations(evaluation: Evaluation, added: ScoredOutputs) -> Evaluation:
    """Return the results of a run with those of further metrics."""
    new = added.evaluation
    replaced = added.per_example.columns
    measures = {name: mean for name, mean in evaluation.measures.items() if name not in replaced}
    checkpoints = []
    # None for a single checkpoint
    for checkpoint, scores in zip(evaluation.checkpoints, added.tables, strict=False):
        means = {**checkpoint.means, **column_means(scores, new.units)}
        checkpoints.append(replace(checkpoint, means=means))
    return replace(
        evaluation,
        measures={**measures, **new.measures},
        checkpoints=tuple(checkpoints),
        units={**evaluation.units, **new.units},
        measured_by={**evaluation.measured_by, **new.measured_by},
        groups=new.groups,
    )
