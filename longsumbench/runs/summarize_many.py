"""Summarize many files into one file or folder: `longsumbench summarize --output`.

files and rows → those that are not finished → summaries, each written as soon as it is there
"""

import json
import logging
import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from longsumbench import core
from longsumbench.corpora import own_files
from longsumbench.corpora.loading.row_files import holds_rows
from longsumbench.corpora.loading.rows import can_be_sent, map_in_processes, num_cores
from longsumbench.errors import DataError, UsageError, naming_path
from longsumbench.files import BadFile, digest, parse_json, write_atomically
from longsumbench.formatting import format_count
from longsumbench.progress import Progress
from longsumbench.runs.results import Results
from longsumbench.runs.summarize import (
    Summarizer,
    load_fitted,
    resolve_system,
    summarize_inputs,
    summary_values,
    with_query,
)

_log = logging.getLogger(__name__)

# Batches before other processes are started, which takes seconds
_SERIAL_BATCHES = 16


def summarize_into(
    output: Path,
    system: str,
    words: Sequence[str],
    results: Results,
    with_evidence: bool,
    query: str | None = None,
) -> None:
    """Summarize files and rows. Finished texts are skipped; a text that cannot be read does not stop the others.

    Args:
        output: a file of JSON lines if its name ends in .jsonl; else a folder, which gets a file for each text.
        system: a checkpoint, a run, or the name of a system that needs no training.
        words: files, folders and settings.
        results: the folder with the runs.
        with_evidence: True to write what the system looked at into the JSON lines.
        query: a question for every text; None keeps the questions in the files.

    Raises:
        DataError: a text could not be read; raised at the end.
        SuiteError: another error that the user can fix.
    """
    loader, paths = resolve_system(system, words, results, "all" if with_evidence else "none")
    files, in_lines = own_files.list_files(paths), output.suffix == ".jsonl"
    has_rows = any(map(holds_rows, files))
    if any(output.absolute().is_relative_to(Path(path).absolute()) for path in paths):
        raise UsageError(
            f"--output {output} is one of the inputs or inside them: choose another place"
        )
    if has_rows and not in_lines:
        raise UsageError(
            f"--output {output}: files of rows have several summaries: name a file that ends in .jsonl"
        )
    if {loader.decoding.evidence, loader.decoding.keep_inputs} - {"all", "none"}:
        raise UsageError("with --output, decode.evidence and decode.keep_inputs are all or none")
    # Loaded last: all that may be refused is refused by now.
    fitted = load_fitted(loader)
    _check_folder_settings(output, _settings_digest(loader.name, fitted, query))
    target = _Lines(output) if in_lines else _Folder(output, paths)
    finished_names = target.finished(files)
    jobs = islice(own_files.input_jobs(files), fitted.decoding.limit)
    unfinished = (job for job in jobs if job.name not in finished_names)
    ledgers: list[core.Truncation] = []  # one, with all that was cut
    problems, num_written = [], 0
    with Progress("summarizing", None if has_rows else len(files), "texts") as progress:
        progress.start_at(len(finished_names))
        for name, summary in _summarize_jobs(fitted, query, unfinished):
            progress.advance()
            if isinstance(summary, DataError):
                _log.warning(f"not summarized: {summary}")
                problems.append(summary)
                continue
            target.write(name, summary)
            num_written += 1
            if summary.truncation is not None:
                ledgers = [core.total_truncation([*ledgers, summary.truncation])]
    reading = f"; {core.describe_reading(ledgers[0])}" if ledgers else ""
    _log.info(
        f"{output}: {format_count(num_written, 'text')} summarized, {len(finished_names):,} before{reading}"
    )
    if problems:
        advice = "correct or remove what is named, then run the same command again"
        raise DataError(
            f"{format_count(len(problems), 'text')} not summarized, the first: {problems[0]}; {advice}"
        )


class _Lines:
    """A file of JSON lines, to which summaries are added."""

    def __init__(self, output: Path) -> None:
        self.output = output

    def finished(self, files: Sequence[str]) -> set[str]:
        """Return the names of its texts, and drop its last line if that is incomplete."""
        names: set[str] = set()
        with self.output.open("a+b") as file:
            end = file.seek(0)
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    try:
                        names.add(parse_json(line, dict[str, object]).get("file", ""))  # type: ignore[arg-type]
                    except BadFile as error:
                        raise DataError(
                            f"not a summary ({error}); remove the line", self.output, number
                        ) from error
                    end += len(line)
            file.truncate(end)
        return names

    def write(self, name: str, summary: core.Summary) -> None:
        """Add the summary of a text."""
        line = json.dumps({"file": name, **summary_values(summary)}, ensure_ascii=False)
        with naming_path(self.output), self.output.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


class _Folder:
    """A folder that gets a file for each input, at the same place below it."""

    def __init__(self, output: Path, paths: Sequence[str]) -> None:
        folders = [path if Path(path).is_dir() else Path(path).parent for path in paths]
        self.output = output
        self.base = os.path.commonpath([os.path.abspath(folder) for folder in folders])

    def file(self, name: str) -> Path:
        """Return the file for the summary of an input."""
        inside = os.path.relpath(name, self.base)
        return self.output / (inside if inside.endswith(".txt") else f"{inside}.txt")

    def finished(self, files: Sequence[str]) -> set[str]:
        """Return the inputs that have a summary."""
        return {name for name in files if self.file(name).exists()}

    def write(self, name: str, summary: core.Summary) -> None:
        """Write the summary of an input."""
        write_atomically(self.file(name), f"{summary.text}\n")


def _settings_digest(system_name: str, fitted: Summarizer, query: str | None) -> str:
    system = fitted.system
    neutral_keys = core.names_deciding(core.Decoding, *core.SAME_SYSTEM)
    decoding = {
        key: value for key, value in vars(fitted.decoding).items() if key not in neutral_keys
    }
    return digest([system_name, system.config.identity(), system.state.learned(), decoding, query])


def _check_folder_settings(output: Path, settings: str) -> None:
    """Note the settings in a hidden file next to the output; raise UsageError if others, or none, are noted."""
    note = output.with_name(f".{output.name}.settings")
    is_empty = not output.exists() or (output.is_dir() and not any(output.iterdir()))
    if not is_empty and not (note.is_file() and note.read_text(encoding="utf-8") == settings):
        advice = "name another --output, or remove it"
        raise UsageError(
            f"{output} exists, and another system, setting or command wrote it: {advice}"
        )
    write_atomically(note, settings)


def _summarize_jobs(
    fitted: Summarizer, query: str | None, jobs: Iterator[own_files.InputJob]
) -> Iterator[tuple[str, core.Summary | DataError]]:
    """Yield the names of texts with their summaries. A baseline that draws nothing runs in a process for each core."""
    summarize = partial(_summarize_batch, fitted.system, fitted.decoding, query)
    batches = iter(lambda: list(islice(jobs, fitted.decoding.batch_size)), [])
    several = not fitted.system.config.decided_by and num_cores() > 1 and can_be_sent(fitted.system)
    for batch in islice(batches, _SERIAL_BATCHES if several else None):
        yield from summarize(batch)
    if several:
        advice = "run the same command again"
        for _, summaries in map_in_processes(summarize, batches, num_cores(), advice):
            yield from summaries


def _summarize_batch(
    system: core.System,
    decoding: core.Decoding,
    query: str | None,
    jobs: Sequence[own_files.InputJob],
) -> list[tuple[str, core.Summary | DataError]]:
    """Return the names of texts with their summaries; those that cannot be read come first, with the problem."""
    inputs, outcomes = {}, list[tuple[str, core.Summary | DataError]]()
    for job in jobs:
        try:
            inputs[job.name] = with_query(job.load(), query)
        except DataError as problem:
            outcomes.append((job.name, problem))
    summaries = summarize_inputs(system, list(inputs.values()), decoding)
    return [*outcomes, *zip(inputs, summaries, strict=True)]
