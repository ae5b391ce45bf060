"""Summarize the user's texts: `load_system` and `longsumbench summarize`.

command line → system, inputs, decoding settings → summaries
"""

import json
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from tqdm import tqdm
from yaml import YAMLError  # type: ignore[import-untyped] # not annotated

from longsumbench.core import (
    SAME_SYSTEM,
    SECTIONS,
    Decoding,
    Example,
    FitReport,
    RunConfig,
    Summary,
    System,
    build_settings,
    check_lengths,
    check_search,
    describe_reading,
    names_deciding,
    read_saved,
    registry,
    sees_reference,
)
from longsumbench.corpora.own_files import Input, check_input, merge_inputs, plain_input, read_inputs
from longsumbench.errors import DataError, UnknownName, UsageError, did_you_mean, suite_errors
from longsumbench.files import BadFile, read_json
from longsumbench.formatting import for_stdout, format_count
from longsumbench.progress import Progress
from longsumbench.runs.evidence import num_wanted
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.untrained import plan_by_name, system_by_name, system_of_run, was_trained

_log = logging.getLogger(__name__)

_SHARED = [item.name for item in fields(RunConfig) if hasattr(Decoding, item.name)]  # seed, device


def summarize_files(
    system: str, words: Sequence[str], results: Results, together: bool, as_json: bool, query: str | None = None
) -> None:
    """Print a summary of each file, or of all together; report on stderr what was not read.

    All inputs are checked before the system is loaded. Each summary is printed as soon as it is written.

    Args:
        system: a checkpoint, a run, or the name of a system that needs no training.
        words: files, folders and settings.
        results: the folder with the runs.
        together: True to take all files as one text of several documents.
        as_json: True to print JSON lines with evidence.
        query: a question for every text; None keeps the questions in the files.

    Raises:
        SuiteError: an error that the user can fix.
    """
    loader, files = find_system(system, words, results, "all" if as_json else "none")
    if loader.decoding.evidence != "none" and not as_json:
        raise UsageError(f"decode.evidence={loader.decoding.evidence}: evidence is shown with --json only")
    if loader.decoding.keep_inputs != "none" and not as_json:
        raise UsageError(f"decode.keep_inputs={loader.decoding.keep_inputs}: inputs are shown with --json only")
    inputs = [with_query(item, query) for item in read_inputs(files)]
    if together:
        inputs = [merge_inputs(inputs)]
    inputs = inputs[: loader.decoding.limit]
    for item, summary in loader.fitted().write(inputs):
        text = f"==> {item.name} <==\n{summary.text}\n" if len(inputs) > 1 else summary.text
        printed = for_stdout(json.dumps(summary_values(summary), ensure_ascii=False) if as_json else text)
        tqdm.write(printed, file=sys.stdout)  # above the progress bar
        sys.stdout.flush()
        _log.info(describe_losses(item, summary))


@dataclass(frozen=True)
class FittedSystem:
    """A system that was trained, or needs no training, ready to summarize texts."""

    system: System
    decoding: Decoding

    @suite_errors()
    def summarize(self, texts: Sequence[str | Example], query: str | None = None) -> list[Summary]:
        """Summarize texts; progress is shown on stderr.

        Args:
            texts: plain texts, whose paragraphs are separated by blank lines, or `Example`s.
            query: the question that all summaries answer; None: what the examples ask, if anything.

        Returns:
            A summary for each text: `text`, `truncation` (what was not read), `evidence` (what the system looked at).

        Raises:
            UsageError: the system cannot summarize these texts.
            DataError: a text is empty.
        """
        if isinstance(texts, str):
            raise UsageError("texts is a list: put a single text into a list")
        inputs = [
            plain_input(text, f"text {number}") if isinstance(text, str) else check_input(Input(text.id, text))
            for number, text in enumerate(texts, start=1)
        ]
        inputs = [with_query(item, query) for item in inputs[: self.decoding.limit]]
        return [summary for _, summary in self.write(inputs)]

    def write(self, inputs: Sequence[Input]) -> Iterator[tuple[Input, Summary]]:
        """Yield each input with its summary, showing the progress."""
        if warning := unlike_what_was_learned(self.system, inputs):
            _log.warning(warning)
        with Progress("summarizing", len(inputs), "texts") as progress:
            for pair in zip(inputs, summarize_inputs(self.system, inputs, self.decoding), strict=True):
                yield pair
                progress.advance()


@suite_errors()
def load_system(run: str | Path | RunRecord, results_dir: str | Path = "results", **settings: Any) -> FittedSystem:
    """Load a trained system, or one that needs no training.

        system = load_system("85f3139c", decode={"num_beams": 4}, device="cpu")
        print(system.summarize([text])[0].text)
        load_system("lexrank", model={"length": 60})

    Args:
        run: a checkpoint's folder, a run's folder, its id, the beginning of its id, or its record; or the name of a
            system that needs no training ("lead", "lexrank", "ranker", "seq2seq", "prompt").
        results_dir: where ids are looked for.
        settings: `decode.*`, `device` and `seed`, in the form that `run` takes. Without them a run's own settings are
            used. `decode={"evidence": "all"}` keeps what the system looked at. With a system's name also `model.*`.

    Raises:
        UsageError: there is no such checkpoint, or a setting is unknown or invalid.
        DataError: the checkpoint is damaged.
    """
    return find_system(run, format_overrides(settings), Results(Path(results_dir).expanduser()), "none")[0].fitted()


@dataclass(frozen=True)
class FoundSystem:
    """A system that `load` loads; `name` is its own, or that of its folder."""

    name: str
    decoding: Decoding
    load: Callable[[], System]

    def fitted(self) -> FittedSystem:
        """Load the system; errors are those of `load_system`."""
        system = self.load()
        if system.capabilities.oracle:
            raise UsageError(f"model={system.config.name} needs a reference, and these texts have none")
        return FittedSystem(system, self.decoding)


def find_system(
    run: str | Path | RunRecord, words: Sequence[str], results: Results, evidence: str
) -> tuple[FoundSystem, list[str]]:
    """Return the system that `load_system` finds, and the files among `words`; the others are its settings.

    `evidence` is the default of `decode.evidence`. Errors are those of `load_system`.
    """
    settings = [word for word in words if "=" in word and not Path(word).exists()]
    files = [word for word in words if word not in settings]
    names = registry.systems.targets()
    if isinstance(run, str) and run in names and not any(Path(run).glob("*.json")):  # no checkpoint, no run
        config = plan_by_name(run, settings, evidence)
        return FoundSystem(run, config.decode, partial(system_by_name, config)), files
    folder, usual, load = _find_checkpoint(run, results)
    return FoundSystem(f"{folder}", settle_decoding(settings, {**usual, "evidence": evidence}), load), files


def unlike_what_was_learned(system: System, inputs: Sequence[Input]) -> str:
    """Return a warning if only the inputs or only the training texts have queries; otherwise an empty text."""
    queried, untrained = (
        "queried" in system.state,
        system.capabilities.runs_untrained and "target_words" not in system.state,
    )
    if untrained or "train" not in system.decided_by or all(bool(item.example.query) == queried for item in inputs):
        return ""
    if queried:
        return f"{system.config.name} was trained on texts with queries: add one with --query"
    return f"{system.config.name} was trained on texts without queries: it has not learned to answer them"


def with_query(item: Input, query: str | None) -> Input:
    """Return an input with a question; None keeps its own.

    Raises:
        UsageError: the question is empty, or the input has one.
    """
    if query is None:
        return item
    if not query.strip():
        raise UsageError("--query is empty: type a question, or leave it out")
    if item.example.query:
        raise UsageError(f"{item.name} already has a query: leave out --query")
    return replace(item, example=replace(item.example, query=query))


def _find_checkpoint(
    run: str | Path | RunRecord, results: Results
) -> tuple[Path, Mapping[str, Any], Callable[[], System]]:
    """Find a checkpoint by its folder, or by a run's folder, id, or beginning of an id.

    Returns:
        Its folder, or that of a run that trained nothing; the decode settings of the run; what loads the system.
    """
    folder = Path(run.run_id if isinstance(run, RunRecord) else run).expanduser()
    if (folder / "system.json").is_file():
        return folder, {}, partial(open_system, folder)
    if folder.is_dir() and not (folder / "record.json").is_file():
        inner = folder / "work" / "checkpoint"
        unfinished = f"; that run is not finished, its checkpoint is {inner}" if inner.is_dir() else ""
        raise UsageError(f"{folder} is neither a checkpoint (system.json) nor a run (record.json){unfinished}")
    try:
        run = results.find(str(folder))
    except UsageError as problem:
        suggestion = did_you_mean(str(run), registry.systems.targets())
        raise UsageError(f"no folder {folder}{suggestion}, and {problem}") from None
    record, weights = RunRecord.read(run), run / "work" / "checkpoint"
    if record.imported:
        raise UsageError(
            f"{run} has imported outputs of {record.model}, and no system: name a run that was trained here"
        )
    decode_keys = {item.name for item in fields(Decoding)} - names_deciding(Decoding, *SAME_SYSTEM)
    decode = {key: value for key, value in record.config["decode"].items() if key in decode_keys}
    if not (weights / "system.json").is_file():
        if not was_trained(run):
            return run, decode, partial(system_of_run, run)
        gone = f"the checkpoint of {run} is no longer in the cache: run it again with overwrite=true"
        away = f"{run} came without its checkpoint: run it again here"
        raise UsageError(gone if weights.is_symlink() else away)
    try:
        seconds = read_json(weights / "fit.json", FitReport).seconds
    except FileNotFoundError:  # without training
        seconds = record.fit.seconds
    except BadFile as error:
        torn = f"not a training report ({error}); run it again with overwrite=true"
        raise DataError(torn, weights / "fit.json") from error
    if seconds != record.fit.seconds:
        raise UsageError(
            f"{run} was written by other weights, which were trained again since; to use the new ones, name {weights}"
        )
    return weights, decode, partial(open_system, weights, record.config["model"])


def open_system(folder: Path, settings: Mapping[str, Any] | None = None) -> System:
    """Load a system from its checkpoint, with the model settings of another run if they are given.

    Raises:
        UsageError: the system is not installed.
        DataError: the checkpoint is damaged.
    """
    name = read_saved(folder)["system"]
    try:
        system_class: type[System] = registry.systems.load(name)
    except UnknownName as problem:
        reason = "which is not installed here: install its package"
        names = ", ".join(problem.known)
        raise UsageError(f"{folder} is a checkpoint of model '{name}', {reason} (known: {names})") from None
    system = system_class.load(folder)
    if settings is not None:
        system.config = build_settings(type(system).Config, settings, "model.")
    return system


def settle_decoding(settings: Sequence[str], usual: Mapping[str, Any]) -> Decoding:
    """Check typed settings (`decode.*`, `device`, `seed`) and merge them into the usual values.

    Raises:
        UsageError: an unknown setting, a wrong type or an invalid value.
    """
    try:
        values: Any = OmegaConf.to_container(OmegaConf.from_dotlist(list(settings)))
    except (OmegaConfBaseException, YAMLError) as error:
        raise UsageError(f"cannot read '{' '.join(settings)}'") from error
    decode = values.pop("decode", {})
    if not isinstance(decode, dict):
        raise UsageError(f"decode={decode!r} is not a group of settings; set decode.<setting>=<value>")
    for key in values:
        if key not in _SHARED:
            choices = f"decode.<setting>, {', '.join(_SHARED)}"
            of_runs = key in {item.name for item in fields(RunConfig)}
            suggestion = "" if of_runs else did_you_mean(key, ["decode", *_SHARED])
            raise UsageError(f"'{key}'{suggestion}: a trained system has these settings: {choices}")
    build_settings(RunConfig, values, "", dict.fromkeys(["model", *SECTIONS]))
    decoding: Decoding = build_settings(Decoding, {**usual, **values, **decode}, "decode.")
    return decoding


def summarize_inputs(system: System, inputs: Sequence[Input], decoding: Decoding) -> Iterator[Summary]:
    """Yield a summary of each input, in order.

    The first `decoding.evidence` summaries have evidence, and the first `decoding.keep_inputs` what was read.
    """
    check_lengths(system.config, decoding)
    check_search(system, decoding)
    if sees_reference(system, decoding) and not system.capabilities.oracle:
        setting = f"decode.extract_length={decoding.extract_length}"
        raise UsageError(f"{setting}: these texts have no reference: choose decode.extract_length=train or <words>")
    examples = [item.example for item in inputs]
    system.check_examples(examples)
    with_evidence = num_wanted(decoding.evidence, len(examples) if system.capabilities.keeps_evidence else 0)
    with_inputs = num_wanted(decoding.keep_inputs, len(examples))
    for start in range(0, len(examples), decoding.batch_size):
        batch_decoding = decoding if start in with_evidence else replace(decoding, evidence="none")
        batch_decoding = batch_decoding if start in with_inputs else replace(batch_decoding, keep_inputs="none")
        batch = system.summarize(examples[start : start + decoding.batch_size], batch_decoding)
        for number, summary in enumerate(batch, start):
            evidence = summary.evidence if number in with_evidence else None
            yield replace(summary, evidence=evidence, read=summary.read if number in with_inputs else None)


def describe_losses(item: Input, summary: Summary) -> str:
    """Return a line about omitted input and cut output."""
    notes = {
        describe_reading(summary.truncation): True,
        f"{format_count(item.words_left_out, 'word')} of code, HTML or front matter left out": item.words_left_out,
        "the summary stops at its length limit": not summary.complete,
        "the summary is empty": not summary.text,
    }
    return f"{item.name}: {'; '.join(note for note, applies in notes.items() if applies)}"


def summary_values(summary: Summary) -> dict[str, Any]:
    """Return a summary as JSON values; evidence as nested lists, the first axis outermost, -inf and nan as null."""
    evidence = summary.evidence
    return {
        "id": summary.id,
        "summary": summary.text,
        "complete": summary.complete,
        "tokens": summary.tokens,
        "truncation": asdict(summary.truncation) if summary.truncation else None,
        "evidence": {
            "arrays": {
                name: {"axes": list(evidence.axes[name]), "values": _json_value(array.tolist())}
                for name, array in evidence.arrays.items()
            },
            "texts": {axis: list(texts) for axis, texts in evidence.texts.items()},
        }
        if evidence
        else None,
        "input": summary.read,
    }


def _json_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
