"""`load_system` and `longsumbench summarize`: the user's own texts through a system that was fitted before.

words of the command line → checkpoint, inputs, decoding → summaries, one after the other
"""

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from tqdm import tqdm
from yaml import YAMLError  # type: ignore[import-untyped] # it ships no annotations

from longsumbench.api import registry
from longsumbench.api.config import SECTIONS, Decoding, RunConfig, build_settings, check_lengths
from longsumbench.api.documents import Example, describe_reading
from longsumbench.api.system import Evidence, Summary, System, check_search, read_saved
from longsumbench.corpora.own_files import Input, check_input, merge_inputs, plain_input, read_inputs
from longsumbench.errors import DataError, UnknownName, UsageError, did_you_mean, suite_errors
from longsumbench.files import BadFile, read_json
from longsumbench.formatting import for_stdout, format_count
from longsumbench.progress import Progress, print_line
from longsumbench.runs.evidence import num_wanted
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.record import Results, RunRecord, run_name

_SHARED = ("seed", "device")  # of the top level: decoding follows them
# of its decode settings: they are about its split and its machine
_NOT_OF_THE_RUN = ("limit", "evidence", "reference_evidence", "device")


def summarize_files(
    named: str, words: Sequence[str], results: Results, together: bool, as_json: bool, query: str | None = None
) -> None:
    """Print a summary of each file, or of all together, and on stderr what of it was not read.

    Everything that can be wrong is checked before the system is loaded; a summary is printed when it is written.

    Args:
        named: the checkpoint.
        words: files and settings.
        results: where runs are looked for.
        together: whether all files are one text of several documents.
        as_json: whether to print JSON lines, with evidence.
        query: what is asked of every text; None: what their rows ask, if anything.

    Raises:
        SuiteError: something the user can act on.
    """
    checkpoint = _find_checkpoint(named, results)
    files, settings = split_words(words)
    decoding = settle_decoding(settings, {**checkpoint.decode, "evidence": "all" if as_json else "none"})
    if decoding.evidence != "none" and not as_json:
        raise UsageError(f"decode.evidence={decoding.evidence}: evidence is shown with --json only")
    inputs = read_inputs(files)
    if query is not None:
        inputs = [_asked(one, query) for one in inputs]
    if together:
        inputs = [merge_inputs(inputs)]
    inputs = inputs[: decoding.limit]
    for one, summary in _fitted(checkpoint, decoding).write(inputs):
        text = f"==> {one.name} <==\n{summary.text}\n" if len(inputs) > 1 else summary.text
        printed = for_stdout(_to_json(summary) if as_json else text)
        tqdm.write(printed, file=sys.stdout)  # above the bar, where there is one
        sys.stdout.flush()
        print_line(describe_losses(one, summary))


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
        inputs = inputs if query is None else [_asked(one, query) for one in inputs]
        return [summary for _, summary in self.write(inputs[: self.decoding.limit])]

    def write(self, inputs: Sequence[Input]) -> Iterator[tuple[Input, Summary]]:
        """Yield each input with its summary, showing the progress."""
        if told := unlike_what_was_learned(self.system, inputs):
            print_line(told)
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
    checkpoint = _find_checkpoint(run_name(run), Results(Path(results_dir).expanduser()))
    return _fitted(checkpoint, settle_decoding(format_overrides(settings), {**checkpoint.decode, "evidence": "none"}))


def _fitted(checkpoint: "Checkpoint", decoding: Decoding) -> FittedSystem:
    """Load the system of a checkpoint and check that it can write."""
    system = open_system(checkpoint.folder)
    if checkpoint.model:
        system.config = build_settings(type(system).Config, checkpoint.model, "model.")
    system.try_out(decoding.device, f"the checkpoint {checkpoint.folder}")
    return FittedSystem(system, decoding)


def unlike_what_was_learned(system: System, inputs: Sequence[Input]) -> str:
    """Say where questions are asked of a system that learned without them, or none of one that learned with them."""
    queried = "queried" in system.state
    if "train" not in system.decided_by or all(bool(one.example.query) == queried for one in inputs):
        return ""
    if queried:
        return f"{system.config.name} was fitted on texts with queries: ask something with --query"
    return f"{system.config.name} was fitted on texts without queries: it has not learned to answer any"


def _asked(one: Input, query: str) -> Input:
    """Return an input with a question.

    Raises:
        UsageError: the question has no words, or the input comes with one of its own.
    """
    if not query.strip():
        raise UsageError("--query is empty: say what is asked, or leave it out")
    if one.example.query:
        raise UsageError(f"{one.name} has a query of its own: leave out --query")
    return replace(one, example=replace(one.example, query=query))


@dataclass(frozen=True)
class Checkpoint:
    """A fitted system on disk.

    Attributes:
        folder: what `System.save` wrote.
        decode: the settings of the run it was named by; empty for a checkpoint named by its own folder.
        model: likewise; they may say more of what is read than those of the run that was trained first.
    """

    folder: Path
    decode: Mapping[str, Any]
    model: Mapping[str, Any]


def _find_checkpoint(named: str, results: Results) -> Checkpoint:
    """Return the checkpoint that is meant by a folder of its own, or a run's folder, id, or beginning of an id.

    Raises:
        UsageError: there is none, or it cannot be told which.
    """
    folder = Path(named).expanduser()
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
    if not (found / "system.json").is_file():
        gone = f"the checkpoint of {run} is no longer in the cache: run it again with overwrite=true"
        away = f"{run} came without its checkpoint: run it again here"
        never = f"{run} is of model={record.model}, which keeps nothing on disk: it has no checkpoint"
        raise UsageError(gone if found.is_symlink() else never if (run / "work").is_dir() else away)
    if (seconds := _seconds_of_training(found)) is not None and seconds != record.fit["seconds"]:
        raise UsageError(f"{run} was written by other weights, since trained anew; to use the new ones, name {found}")
    known = {item.name for item in fields(Decoding)} - set(_NOT_OF_THE_RUN)
    decode = {key: value for key, value in record.config["decode"].items() if key in known}
    return Checkpoint(found, decode, record.config["model"])


def _seconds_of_training(checkpoint: Path) -> float | None:
    """Return how long a run's checkpoint was trained; None for one that was not.

    Raises:
        DataError: its `fit.json` is damaged.
    """
    path = checkpoint / "fit.json"
    if not path.is_file():
        return None
    try:
        return float(read_json(path, {"seconds": float})["seconds"])
    except BadFile as error:
        raise DataError(f"not the report of a training ({error}); run it again with overwrite=true", path) from error


def open_system(folder: Path) -> System:
    """Load a system from its checkpoint.

    Raises:
        UsageError: it is not installed, or cannot write a summary of a text without a reference.
        DataError: the checkpoint is damaged.
    """
    name = read_saved(folder)["system"]
    try:
        system_class: type[System] = registry.systems.load(name)
    except UnknownName as problem:
        reason = "which is not installed here: install the package that brings it"
        known = ", ".join(problem.known)
        raise UsageError(f"{folder} is a checkpoint of model '{name}', {reason} (known: {known})") from None
    system = system_class.load(folder)
    if system.oracle:
        raise UsageError(f"model={name} looks at the reference, and a text that is to be summarized has none")
    return system


def split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the files and the settings among the words behind CHECKPOINT; a word with "=" that is no file is one."""
    settings = [word for word in words if "=" in word and not Path(word).exists()]
    return [word for word in words if word not in settings], settings


def settle_decoding(settings: Sequence[str], usual: Mapping[str, Any]) -> Decoding:
    """Check settings as `run` does, and lay them over the usual ones.

    Args:
        settings: `decode.*`, `device` and `seed`, as typed.
        usual: field of `Decoding` → value.

    Raises:
        UsageError: another setting, a wrong type or a value that is not allowed.
    """
    given: dict[str, dict[str, Any]] = {"": {}, "decode": {}}
    for word in settings:
        key, _, text = word.partition("=")
        head, _, rest = key.rpartition(".")
        if head not in given or (not head and rest not in _SHARED):
            known = ["decode.<setting>", *_SHARED]
            of_a_run = {item.name for item in fields(RunConfig)}
            near = "" if (head or key) in of_a_run else did_you_mean(head or key, ["decode", *_SHARED])
            raise UsageError(f"'{word}'{near}: of a fitted system these can be set: {', '.join(known)}")
        given[head][rest] = _value(word, text)
    build_settings(RunConfig, given[""], "", dict.fromkeys(["model", *SECTIONS]))
    decoding: Decoding = build_settings(Decoding, {**usual, **given[""], **given["decode"]}, "decode.")
    return decoding


def _value(word: str, text: str) -> Any:
    try:
        return OmegaConf.to_container(OmegaConf.from_dotlist([f"value={text}"]))["value"]  # type: ignore[index, call-overload]
    except (OmegaConfBaseException, YAMLError) as error:
        raise UsageError(f"cannot read '{word}'") from error


def summarize_inputs(system: System, inputs: Sequence[Input], decoding: Decoding) -> Iterator[Summary]:
    """Yield a summary of each input, in their order.

    Args:
        system: a fitted one.
        inputs: as `read_inputs` returns them.
        decoding: how; `batch_size` of them are decoded together, with `evidence` of the first.
    """
    check_lengths(system.config, decoding)
    check_search(system, decoding)
    examples = [one.example for one in inputs]
    system.check_examples(examples)
    shown = num_wanted(decoding.evidence, len(examples) if system.keeps_evidence else 0)
    for start in range(0, len(examples), decoding.batch_size):
        asked = decoding if start in shown else replace(decoding, evidence="none")
        batch = system.summarize(examples[start : start + decoding.batch_size], asked)
        for number, summary in enumerate(batch, start):
            yield summary if number in shown else replace(summary, evidence=None)


def describe_losses(one: Input, summary: Summary) -> str:
    """Return a line about what was not read, and not written, of an input."""
    told = {
        describe_reading(summary.truncation): True,
        f"{format_count(one.words_left_out, 'word')} of code, HTML or front matter left out": one.words_left_out,
        "the summary stops at its length limit": not summary.complete,
        "the summary is empty": not summary.text,
    }
    return f"{one.name}: {'; '.join(line for line, holds in told.items() if holds)}"


def _to_json(summary: Summary) -> str:
    """Return a summary as a JSON object on one line."""
    values = {
        "id": summary.id,
        "summary": summary.text,
        "complete": summary.complete,
        "tokens": summary.tokens,
        "truncation": asdict(summary.truncation) if summary.truncation else None,
        "evidence": plain_evidence(summary.evidence) if summary.evidence else None,
    }
    return json.dumps(values, ensure_ascii=False, allow_nan=False)


def plain_evidence(evidence: Evidence) -> dict[str, Any]:
    """Return evidence as nested lists, the first axis outermost; a number that is none (-inf, nan) is null."""
    arrays = {
        name: {"axes": list(evidence.axes[name]), "values": _plain(array.tolist())}
        for name, array in evidence.arrays.items()
    }
    return {"arrays": arrays, "texts": {axis: list(texts) for axis, texts in evidence.texts.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
