"""Summarize the user's texts: `load_system` and `longsumbench summarize`; `summarize_many` has `--output`.

command line → system, inputs, decoding settings → summaries
"""

import json
import logging
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from longsumbench import core
from longsumbench.arguments import as_list, public_function
from longsumbench.corpora import own_files
from longsumbench.errors import UsageError, suite_errors
from longsumbench.formatting import for_stdout, format_count
from longsumbench.progress import Progress
from longsumbench.runs.checkpoints import (
    SystemRef,
    fitted_system,
    needs_training,
    resolve_checkpoint,
)
from longsumbench.runs.compose import hydra_session
from longsumbench.runs.evidence import num_wanted
from longsumbench.runs.overrides import as_hydra, format_overrides, parse_overrides
from longsumbench.runs.plan import plan
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

_log = logging.getLogger(__name__)

# Words that a system of a run, and one by its name, can be given
_OF_RUNS = ("decode.", "device=", "seed=")
_OF_NAMES = ("model.", *_OF_RUNS)
_DEFAULT_LENGTH = 100  # words of a summary, where no training texts say how long one is


def summarize_files(
    system: str,
    words: Sequence[str],
    results: Results,
    together: bool,
    as_json: bool,
    query: str | None = None,
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
    loader, files = resolve_system(system, words, results, "all" if as_json else "none")
    inputs = [with_query(item, query) for item in own_files.read_inputs(files)]
    if together:
        inputs = [own_files.merge_inputs(inputs)]
    decoding = loader.decoding
    for name in ("evidence", "keep_inputs"):
        if vars(decoding)[name] != "none" and not as_json:
            raise UsageError(f"decode.{name}={vars(decoding)[name]} is shown with --json only")
    inputs = inputs[: decoding.limit]
    # The system is loaded last: it takes seconds, and all inputs are checked by now.
    for item, summary in load_fitted(loader).write(inputs):
        if as_json:
            text = json.dumps(summary_values(summary), ensure_ascii=False)
        elif len(inputs) > 1:
            text = f"==> {item.name} <==\n{summary.text}\n"
        else:
            text = summary.text
        tqdm.write(for_stdout(text), file=sys.stdout)  # above the progress bar
        sys.stdout.flush()
        _log.info(describe_losses(item, summary))


@dataclass(frozen=True)
class Summarizer:
    """A system that was trained, or needs no training, ready to summarize texts."""

    system: core.System
    decoding: core.Decoding

    @suite_errors()
    def summarize(
        self, texts: Sequence[str | core.Example], query: str | None = None
    ) -> list[core.Summary]:
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
        inputs = []
        for number, text in enumerate(as_list(texts, "texts"), start=1):
            if isinstance(text, str):
                inputs.append(own_files.plain_input(text, f"text {number}"))
            else:
                inputs.append(own_files.check_input(own_files.Input(text.id, text)))
        inputs = [with_query(item, query) for item in inputs[: self.decoding.limit]]
        return [summary for _, summary in self.write(inputs)]

    def write(
        self, inputs: Sequence[own_files.Input]
    ) -> Iterator[tuple[own_files.Input, core.Summary]]:
        """Yield each input with its summary, showing the progress."""
        if warning := unlike_what_was_learned(self.system, inputs):
            _log.warning(warning)
        with Progress("summarizing", len(inputs), "texts") as progress:
            summaries = summarize_inputs(self.system, inputs, self.decoding)
            for pair in zip(inputs, summaries, strict=True):
                yield pair
                progress.advance()


@public_function
def load_system(
    run: str | Path | RunRecord, results_dir: str | Path = "results", **settings: Any
) -> Summarizer:
    """Load a trained system, or one that needs no training.

        system = load_system("85f3139c", decode={"num_beams": 4}, device="cpu")
        print(system.summarize([text])[0].text)
        load_system("lexrank", model={"length": 60})

    Args:
        run: a checkpoint's folder, a run's folder, its id, the beginning of its id, or its record; or a system on the
            hub ("owner/name"); or the name of one that needs no training ("lead", "lexrank", "seq2seq", "prompt").
        results_dir: where ids are looked for.
        settings: `decode.*`, `device` and `seed`, in the form that `run` takes. Without them a run's own settings are
            used. `decode={"evidence": "all"}` keeps what the system looked at. With a system's name also `model.*`.

    Raises:
        UsageError: there is no such checkpoint, or a setting is unknown or invalid.
        DataError: the checkpoint is damaged.
    """
    loader, _ = resolve_system(run, format_overrides(settings), Results.at(results_dir), "none")
    return load_fitted(loader)


def load_fitted(loader: SystemRef) -> Summarizer:
    """Load a system; errors are those of `load_system`."""
    system = loader.load()
    if system.config.capabilities.oracle:
        raise UsageError(
            f"model={system.config.name} needs references or highlights, and these texts have none"
        )
    return Summarizer(system, loader.decoding)


def resolve_system(
    run: str | Path | RunRecord, words: Sequence[str], results: Results, evidence: str
) -> tuple[SystemRef, list[str]]:
    """Return the system that `load_system` finds, and the files among `words`; the others are its settings.

    `evidence` is the default of `decode.evidence`. Errors are those of `load_system`.
    """
    settings = [word for word in words if "=" in word and not Path(word).exists()]
    files = [word for word in words if word not in settings]
    is_name = isinstance(run, str) and run in core.registry.systems.targets()
    if is_name and not any(Path(str(run)).glob("*.json")):  # no checkpoint, no run
        return _find_by_name(str(run), settings, evidence, results), files
    loader = resolve_checkpoint(run, results)
    recorded = replace(loader.decoding, evidence=evidence)
    return replace(loader, decoding=settle_decoding(settings, recorded)), files


def _find_by_name(name: str, words: Sequence[str], evidence: str, results: Results) -> SystemRef:
    """Return a system that is used as it is.

    Raises:
        UsageError: the system has to be trained, or a setting is unknown or invalid.
    """
    _check_settings(words, f"model={name} has these settings here", _OF_NAMES)
    defaults = ["dataset=jsonl", "train.max_steps=0", f"decode.evidence={evidence}"]
    defaults += format_overrides({"results_dir": f"{results.root}"})
    (point,) = plan([f"model={name}", *defaults, *words])
    config = point.config
    if needs_training(config):
        advice = "name a run (longsumbench list runs) or the folder of a checkpoint"
        raise UsageError(f"model={name} has to be trained first: {advice}")
    asks_length = "model.length" not in core.settings_without_effect(config)
    if config.model.length == "train" and asks_length:
        config.model.length = str(_DEFAULT_LENGTH)
        _log.info(
            f"model.length={_DEFAULT_LENGTH} words, as no training texts say how long a summary is; type another"
        )
    return SystemRef(name, config.decode, partial(fitted_system, config, {}))


def _check_settings(words: Sequence[str], subject: str, prefixes: tuple[str, ...]) -> None:
    for word in words:
        if not word.startswith(prefixes):
            raise UsageError(f"'{word}': {subject}: {', '.join(prefixes)}")


def settle_decoding(words: Sequence[str], recorded: core.Decoding) -> core.Decoding:
    """Check typed settings (`decode.*`, `device`, `seed`) and merge them into those of a run.

    Raises:
        UsageError: an unknown setting, a wrong type or an invalid value.
    """
    _check_settings(words, "a trained system has these settings", _OF_RUNS)
    with hydra_session():
        overrides = parse_overrides(list(map(as_hydra, words)))
    typed = {each.key_or_group.removeprefix("decode."): each.value() for each in overrides}
    decoding: core.Decoding = core.build_settings(
        core.Decoding, {**vars(recorded), **typed}, "decode."
    )
    return decoding


def unlike_what_was_learned(system: core.System, inputs: Sequence[own_files.Input]) -> str:
    """Return a warning if only the inputs or only the training texts have queries; otherwise an empty text."""
    model, queried = system.config, bool(system.state.queried)
    untrained = model.capabilities.runs_untrained and system.state.target_words is None
    if untrained or "train" not in model.decided_by:
        return ""
    if all(bool(item.example.query) == queried for item in inputs):
        return ""
    if queried:
        return f"{model.name} was trained on texts with queries: add one with --query"
    return f"{model.name} was trained on texts without queries: it has not learned to answer them"


def with_query(item: own_files.Input, query: str | None) -> own_files.Input:
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


def summarize_inputs(
    system: core.System, inputs: Sequence[own_files.Input], decoding: core.Decoding
) -> Iterator[core.Summary]:
    """Yield a summary of each input, in order.

    The first `decoding.evidence` summaries have evidence, and the first `decoding.keep_inputs` what was read.
    """
    model = system.config
    core.check_search(model, decoding)
    system.check_trained(decoding)
    if core.sees_reference(model, decoding) and not model.capabilities.oracle:
        setting = f"decode.extract_length={decoding.extract_length}"
        raise UsageError(
            f"{setting}: these texts have no reference: choose decode.extract_length=train or <words>"
        )
    examples = [item.example for item in inputs]
    system.check_examples(examples)
    evidence = decoding.evidence if model.capabilities.keeps_evidence else "none"
    with_evidence = num_wanted(evidence, len(examples))
    with_inputs = num_wanted(decoding.keep_inputs, len(examples))
    # A batch keeps evidence if its first summary does; what exceeds the number is dropped.
    for start in range(0, len(examples), decoding.batch_size):
        batch_decoding = decoding
        if start not in with_evidence:
            batch_decoding = replace(batch_decoding, evidence="none")
        if start not in with_inputs:
            batch_decoding = replace(batch_decoding, keep_inputs="none")
        batch = system.summarize(examples[start : start + decoding.batch_size], batch_decoding)
        for number, summary in enumerate(batch, start):
            if number not in with_evidence:
                summary = replace(summary, evidence=None)
            if number not in with_inputs:
                summary = replace(summary, read=None)
            yield summary


def describe_losses(item: own_files.Input, summary: core.Summary) -> str:
    """Return a line about omitted input and cut output."""
    notes = [core.describe_reading(summary.truncation)]
    if summary.counts.get("failed"):
        notes = ["not read: there is no answer"]
    if item.words_left_out:
        left_out = format_count(item.words_left_out, "word")
        notes.append(f"{left_out} of code, HTML or front matter left out")
    if not summary.complete:
        notes.append("the summary stops at its length limit")
    if not summary.text:
        notes.append("the summary is empty")
    return f"{item.name}: {'; '.join(notes)}"


def summary_values(summary: core.Summary) -> dict[str, Any]:
    """Return a summary as JSON values; evidence as nested lists, the first axis outermost, -inf and nan as null."""
    values = {
        "id": summary.id,
        "summary": summary.text,
        "complete": summary.complete,
        "tokens": summary.tokens,
        "truncation": asdict(summary.truncation) if summary.truncation else None,
        "evidence": None,
        "input": summary.read,
    }
    evidence = summary.evidence
    if evidence:
        arrays = {}
        for name, array in evidence.arrays.items():
            axes = list(evidence.axes[name])
            arrays[name] = {"axes": axes, "values": _json_value(array.tolist())}
        texts = {axis: list(units) for axis, units in evidence.texts.items()}
        values["evidence"] = {"arrays": arrays, "texts": texts}
    return values


def _json_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
