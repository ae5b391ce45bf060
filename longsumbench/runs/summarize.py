"""Summarize the user's texts with a trained system: `load_system` and `longsumbench summarize`.

command line → checkpoint, inputs, decoding settings → summaries
"""

import json
import logging
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from tqdm import tqdm
from yaml import YAMLError  # type: ignore[import-untyped] # not annotated

from longsumbench.api import (
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

_log = logging.getLogger(__name__)

_SHARED = [item.name for item in fields(RunConfig) if hasattr(Decoding, item.name)]  # seed, device


def summarize_files(
    named: str, words: Sequence[str], results: Results, together: bool, as_json: bool, query: str | None = None
) -> None:
    """Print a summary of each file, or of all together; report on stderr what was not read.

    All inputs are checked before the system is loaded. Each summary is printed as soon as it is written.

    Args:
        named: a checkpoint or run.
        words: files and settings.
        results: the folder with the runs.
        together: True to take all files as one text of several documents.
        as_json: True to print JSON lines with evidence.
        query: a question for every text; None keeps the questions in the files.

    Raises:
        SuiteError: an error that the user can fix.
    """
    checkpoint = _find_checkpoint(named, results)
    settings = [word for word in words if "=" in word and not Path(word).exists()]
    files = [word for word in words if word not in settings]
    decoding = settle_decoding(settings, {**checkpoint.decode, "evidence": "all" if as_json else "none"})
    if decoding.evidence != "none" and not as_json:
        raise UsageError(f"decode.evidence={decoding.evidence}: evidence is shown with --json only")
    if decoding.keep_inputs != "none" and not as_json:
        raise UsageError(f"decode.keep_inputs={decoding.keep_inputs}: inputs are shown with --json only")
    inputs = read_inputs(files)
    if query is not None:
        inputs = [_with_query(item, query) for item in inputs]
    if together:
        inputs = [merge_inputs(inputs)]
    inputs = inputs[: decoding.limit]
    for item, summary in _fitted(checkpoint, decoding).write(inputs):
        text = f"==> {item.name} <==\n{summary.text}\n" if len(inputs) > 1 else summary.text
        printed = for_stdout(_to_json(summary) if as_json else text)
        tqdm.write(printed, file=sys.stdout)  # above the progress bar
        sys.stdout.flush()
        _log.info(describe_losses(item, summary))


@dataclass(frozen=True)
class FittedSystem:
    """A system that was trained, ready to summarize texts."""

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
        inputs = inputs if query is None else [_with_query(item, query) for item in inputs]
        return [summary for _, summary in self.write(inputs[: self.decoding.limit])]

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
    """Load a trained system.

        system = load_system("85f3139c", decode={"num_beams": 4}, device="cpu")
        print(system.summarize([text])[0].text)

    Args:
        run: a checkpoint's folder, a run's folder, its id, the beginning of its id, or its record.
        results_dir: where ids are looked for.
        settings: `decode.*`, `device` and `seed`, in the form that `run` takes. Without them a run's own settings are
            used. `decode={"evidence": "all"}` keeps what the system looked at.

    Raises:
        UsageError: there is no such checkpoint, or a setting is unknown or invalid.
        DataError: the checkpoint is damaged.
    """
    checkpoint = _find_checkpoint(run, Results(Path(results_dir).expanduser()))
    return _fitted(checkpoint, settle_decoding(format_overrides(settings), {**checkpoint.decode, "evidence": "none"}))


def _fitted(checkpoint: "Checkpoint", decoding: Decoding) -> FittedSystem:
    """Load the system of a checkpoint and check that it can write."""
    system = open_system(checkpoint.folder)
    if checkpoint.model:
        system.config = build_settings(type(system).Config, checkpoint.model, "model.")
    system.try_out(decoding.device, f"the checkpoint {checkpoint.folder}")
    return FittedSystem(system, decoding)


def unlike_what_was_learned(system: System, inputs: Sequence[Input]) -> str:
    """Return a warning if only the inputs or only the training texts have queries; otherwise an empty text."""
    queried = "queried" in system.state
    if "train" not in system.decided_by or all(bool(item.example.query) == queried for item in inputs):
        return ""
    if queried:
        return f"{system.config.name} was trained on texts with queries: add one with --query"
    return f"{system.config.name} was trained on texts without queries: it has not learned to answer them"


def _with_query(item: Input, query: str) -> Input:
    if not query.strip():
        raise UsageError("--query is empty: type a question, or leave it out")
    if item.example.query:
        raise UsageError(f"{item.name} already has a query: leave out --query")
    return replace(item, example=replace(item.example, query=query))


@dataclass(frozen=True)
class Checkpoint:
    """A trained system on disk.

    Attributes:
        folder: the files of `System.save`.
        decode: the decode settings of the run; empty if the user named the checkpoint's folder.
        model: the model settings of the run; they may differ from those of the run that trained the checkpoint.
    """

    folder: Path
    decode: Mapping[str, Any]
    model: Mapping[str, Any]


def _find_checkpoint(run: str | Path | RunRecord, results: Results) -> Checkpoint:
    """Find a checkpoint by its folder, or by a run's folder, id, or beginning of an id."""
    folder = Path(run.run_id if isinstance(run, RunRecord) else run).expanduser()
    if (folder / "system.json").is_file():
        return Checkpoint(folder, {}, {})
    if folder.is_dir() and not (folder / "record.json").is_file():
        inner = folder / "work" / "checkpoint"
        unfinished = f"; that run is not finished, its checkpoint is {inner}" if inner.is_dir() else ""
        raise UsageError(f"{folder} is neither a checkpoint (system.json) nor a run (record.json){unfinished}")
    try:
        run = results.find(str(folder))
    except UsageError as problem:
        raise UsageError(f"no folder {folder}, and {problem}") from None
    record, found = RunRecord.read(run), run / "work" / "checkpoint"
    if record.imported:
        raise UsageError(
            f"{run} has imported outputs of {record.model}, and no system: name a run that was trained here"
        )
    if not (found / "system.json").is_file():
        gone = f"the checkpoint of {run} is no longer in the cache: run it again with overwrite=true"
        away = f"{run} came without its checkpoint: run it again here"
        never = f"{run} has model={record.model}, which has no checkpoint"
        raise UsageError(gone if found.is_symlink() else never if (run / "work").is_dir() else away)
    try:
        seconds = read_json(found / "fit.json", FitReport).seconds
    except FileNotFoundError:  # without training
        seconds = record.fit.seconds
    except BadFile as error:
        torn = f"not a training report ({error}); run it again with overwrite=true"
        raise DataError(torn, found / "fit.json") from error
    if seconds != record.fit.seconds:
        raise UsageError(
            f"{run} was written by other weights, which were trained again since; to use the new ones, name {found}"
        )
    known = {item.name for item in fields(Decoding)} - names_deciding(Decoding, *SAME_SYSTEM)
    decode = {key: value for key, value in record.config["decode"].items() if key in known}
    return Checkpoint(found, decode, record.config["model"])


def open_system(folder: Path) -> System:
    """Load a system from its checkpoint.

    Raises:
        UsageError: the system is not installed, or needs a reference.
        DataError: the checkpoint is damaged.
    """
    name = read_saved(folder)["system"]
    try:
        system_class: type[System] = registry.systems.load(name)
    except UnknownName as problem:
        reason = "which is not installed here: install its package"
        known = ", ".join(problem.known)
        raise UsageError(f"{folder} is a checkpoint of model '{name}', {reason} (known: {known})") from None
    system = system_class.load(folder)
    if system.oracle:
        raise UsageError(f"model={name} needs a reference, and these texts have none")
    return system


def settle_decoding(settings: Sequence[str], usual: Mapping[str, Any]) -> Decoding:
    """Check typed settings (`decode.*`, `device`, `seed`) and merge them into the usual values.

    Raises:
        UsageError: an unknown setting, a wrong type or an invalid value.
    """
    try:
        given: Any = OmegaConf.to_container(OmegaConf.from_dotlist(list(settings)))
    except (OmegaConfBaseException, YAMLError) as error:
        raise UsageError(f"cannot read '{' '.join(settings)}'") from error
    decode = given.pop("decode", {})
    if not isinstance(decode, dict):
        raise UsageError(f"decode={decode!r} is not a group of settings; set decode.<setting>=<value>")
    for key in given:
        if key not in _SHARED:
            known = f"decode.<setting>, {', '.join(_SHARED)}"
            of_runs = key in {item.name for item in fields(RunConfig)}
            near = "" if of_runs else did_you_mean(key, ["decode", *_SHARED])
            raise UsageError(f"'{key}'{near}: a trained system has these settings: {known}")
    build_settings(RunConfig, given, "", dict.fromkeys(["model", *SECTIONS]))
    decoding: Decoding = build_settings(Decoding, {**usual, **given, **decode}, "decode.")
    return decoding


def summarize_inputs(system: System, inputs: Sequence[Input], decoding: Decoding) -> Iterator[Summary]:
    """Yield a summary of each input, in order.

    The first `decoding.evidence` summaries have evidence, and the first `decoding.keep_inputs` what was read.
    """
    check_lengths(system.config, decoding)
    check_search(system, decoding)
    if sees_reference(system, decoding) and not system.oracle:
        setting = f"decode.extract_length={decoding.extract_length}"
        raise UsageError(f"{setting}: these texts have no reference: choose decode.extract_length=train or <words>")
    examples = [item.example for item in inputs]
    system.check_examples(examples)
    shown = num_wanted(decoding.evidence, len(examples) if system.keeps_evidence else 0)
    kept = num_wanted(decoding.keep_inputs, len(examples))
    for start in range(0, len(examples), decoding.batch_size):
        asked = decoding if start in shown else replace(decoding, evidence="none")
        asked = asked if start in kept else replace(asked, keep_inputs="none")
        batch = system.summarize(examples[start : start + decoding.batch_size], asked)
        for number, summary in enumerate(batch, start):
            evidence = summary.evidence if number in shown else None
            yield replace(summary, evidence=evidence, read=summary.read if number in kept else None)


def describe_losses(item: Input, summary: Summary) -> str:
    """Return a line about omitted input and cut output."""
    notes = {
        describe_reading(summary.truncation): True,
        f"{format_count(item.words_left_out, 'word')} of code, HTML or front matter left out": item.words_left_out,
        "the summary stops at its length limit": not summary.complete,
        "the summary is empty": not summary.text,
    }
    return f"{item.name}: {'; '.join(note for note, applies in notes.items() if applies)}"


def _to_json(summary: Summary) -> str:
    """Return a summary as a line of JSON; evidence as nested lists, the first axis outermost, -inf and nan as null."""
    evidence = summary.evidence
    values = {
        "id": summary.id,
        "summary": summary.text,
        "complete": summary.complete,
        "tokens": summary.tokens,
        "truncation": asdict(summary.truncation) if summary.truncation else None,
        "evidence": {
            "arrays": {
                name: {"axes": list(evidence.axes[name]), "values": _plain(array.tolist())}
                for name, array in evidence.arrays.items()
            },
            "texts": {axis: list(texts) for axis, texts in evidence.texts.items()},
        }
        if evidence
        else None,
        "input": summary.read,
    }
    return json.dumps(values, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
