"""`longsumbench inspect`: shows one summary of a finished run with its evidence, or with its source.

command line → the run's record and files → Inspection: the summary, its evidence, scores and texts
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from longsumbench.core import Evidence, Example, Summary
from longsumbench.errors import DataError, UsageError, did_you_mean
from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.metrics.aggregate import PERCENT, read_scores
from longsumbench.runs.evidence import kept_places, num_wanted, read_evidence, read_kept_inputs
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord, output_files, run_label
from longsumbench.runs.results import Results, split_read_by


@dataclass(frozen=True)
class Inspection:
    """An example of a finished run.

    Attributes:
        record: the run's record.
        number: index of the example among those that were summarized, from 0.
        summary: the system's summary.
        evidence: what the system looked at; None if the run has no evidence of this example.
        scores: heading of a type of ROUGE → F1, 0–100; empty if the example was not scored.
        example: the texts; None if they are not on this machine.
        no_evidence: why there is no evidence.
        input_text: the input as the system read it; None if the run kept none of this example.
        pages: numbers of the examples whose pages are in the same folder, sorted.
    """

    record: RunRecord
    number: int
    summary: Summary
    evidence: Evidence | None
    scores: Mapping[str, float]
    example: Example | None
    no_evidence: str = ""
    input_text: str | None = None
    pages: Sequence[int] = ()

    @property
    def title(self) -> str:
        """Heading: dataset, example and run."""
        return f"{self.record.dataset}, example {self.summary.id}: {run_label(self.record)}"


def inspect_example(run: str | Path | RunRecord, example: str, results: Results) -> Inspection:
    """Read an example of a finished run.

    Args:
        run: the run's folder, its id, a unique prefix of the id, or its record.
        example: the example's id, or its index in the split.
        results: where ids of runs are looked up.

    Raises:
        UsageError: the run is unknown or ambiguous, or the example is unknown.
        DataError: a file of the run is missing or damaged.
    """
    folder = results.find(run)
    record = RunRecord.read(folder)
    record.check_written(folder, ["predictions.jsonl"])
    summaries = read_summaries(path := folder / "predictions.jsonl")
    if len(summaries) != (total := record.num_outputs):
        raise DataError(f"{len(summaries):,} of {total:,} summaries; run it again with overwrite=true", path)
    number = _find_example(example, [summary.id for summary in summaries], record)
    summary, split = summaries[number], split_read_by(folder, record)
    _, scores_file = output_files(len(record.checkpoints))[0]
    places, scores = kept_places(folder / "evidence"), _scores_of(folder / scores_file, summary.id)
    evidence = _evidence_of(folder, number, summary.id) if number in places else None
    reason = "" if evidence else _why_none(number, places, record)
    ids = split.ids if split else []
    texts = split[ids.index(summary.id)] if split and summary.id in ids else None
    input_text = read_kept_inputs(folder / "inputs.jsonl").get(summary.id)
    return Inspection(record, number, summary, evidence, scores, texts, reason, input_text)


def _find_example(name: str, ids: Sequence[str], record: RunRecord) -> int:
    """Return the index of the example with the id or, if there is none, with the index `name`."""
    if name in ids:
        return ids.index(name)
    if name.isdecimal() and int(name) < len(ids):
        return int(name)
    suggestion = "" if name.isdecimal() else did_you_mean(name, ids)
    places = f"its examples have the indices 0 to {len(ids) - 1}" if ids else "it summarized none"
    raise UsageError(f"{run_label(record)} summarized no example '{name}'{suggestion}; {places}")


def _evidence_of(folder: Path, number: int, name: str) -> Evidence:
    """Return the evidence of the example at index `number`, with the id `name`."""
    whose, evidence = read_evidence(folder / "evidence", number)
    if whose != name:
        message = f"the evidence is of '{whose}' instead of '{name}'; run it again with overwrite=true"
        raise DataError(message, folder / "evidence" / f"{number}.json")
    return evidence


def _why_none(number: int, places: set[int], record: RunRecord) -> str:
    """Return the message for an example without evidence."""
    if record.imported:
        return f"{run_label(record)} has no evidence: its outputs were written outside the suite"
    words = [word for word in record.command if not word.startswith("decode.evidence=")]
    more = f"decode.evidence=all keeps it for all examples: {shlex.join([*words, 'decode.evidence=all'])}"
    if places:
        extent = f"{format_count(len(places), 'example')}, {min(places)} to {max(places)}"
        return f"no evidence of example {number} was kept; {run_label(record)} has that of {extent}; {more}"
    if not num_wanted(value := record.settings.decode.evidence, examples=1):
        return f"{run_label(record)} kept no evidence (decode.evidence={value}); if the system supports it, {more}"
    return f"{run_label(record)} has no evidence: {record.model} keeps none, at least with these settings"


def _scores_of(path: Path, name: str) -> dict[str, float]:
    """Return the ROUGE F1 of an example, 0–100; empty if it was not scored."""
    scores = read_scores(path) if path.is_file() else None
    if scores is None or name not in scores.index:
        return {}
    try:
        (row,) = PERCENT * scores.loc[[name], [f"{kind}_f" for kind in ROUGE_HEADINGS]].to_numpy()
        return dict(zip(ROUGE_HEADINGS.values(), row.tolist(), strict=True))
    except (KeyError, ValueError) as error:  # a column is missing, or the id occurs twice
        raise DataError(f"not a table of ROUGE scores ({error!r}); run it again with overwrite=true", path) from error


def inspection_folder(results: Results, record: RunRecord) -> Path:
    """Return the default folder of an inspection."""
    return results.root / "inspections" / record.run_id
