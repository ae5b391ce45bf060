"""`longsumbench inspect`: what a finished run looked at while it wrote one summary.

words of the command line → the run's record and files → Inspection: the summary, its evidence, scores and texts
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from longsumbench.api.documents import Example
from longsumbench.api.system import Evidence, Summary
from longsumbench.errors import DataError, UsageError, did_you_mean
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.metrics.aggregate import PERCENT, read_scores
from longsumbench.runs.evidence import kept_places, num_wanted, read_evidence
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import Results, RunRecord, check_written, output_files, run_label, split_read_by


@dataclass(frozen=True)
class Inspection:
    """An example of a finished run.

    Attributes:
        record: what the run was.
        number: the example's place in its split, from 0.
        summary: what was written for it.
        evidence: what was looked at meanwhile.
        scores: what tables call a type of ROUGE → F1, 0–100; empty where the example was not scored.
        example: its texts; None where they are not on this machine.
    """

    record: RunRecord
    number: int
    summary: Summary
    evidence: Evidence
    scores: Mapping[str, float]
    example: Example | None

    @property
    def title(self) -> str:
        """What is inspected, and who wrote it; first what fits into any heading."""
        return f"{self.record.dataset}, example {self.summary.id}: {run_label(self.record)}"


def inspect_example(run: str, example: str, results: Results) -> Inspection:
    """Gather what there is of an example of a finished run.

    Args:
        run: its folder, its id or a unique prefix of that.
        example: its id, or its place in its split.
        results: where ids of runs are looked for.

    Raises:
        UsageError: no run, or several, are meant; no such example, or one of which no evidence was kept.
        DataError: a file of the run is missing or damaged.
    """
    folder = results.find(run)
    record = RunRecord.read(folder)
    check_written(folder, record, ["predictions.jsonl"])
    summaries = read_summaries(path := folder / "predictions.jsonl")
    if len(summaries) != (whole := record.n + len(record.empty_references)):
        raise DataError(f"{len(summaries):,} of {whole:,} summaries; run it again with overwrite=true", path)
    number = find_example(example, [summary.id for summary in summaries], record)
    summary = summaries[number]
    evidence = _evidence_of(folder, number, summary.id, record)
    split = split_read_by(folder, record)
    texts = None if split is None else split[number]
    _, of_summaries = output_files(len(record.checkpoints))[0]
    scores = _scores_of(folder / of_summaries, summary.id)
    return Inspection(record, number, summary, evidence, scores, texts)


def find_example(named: str, ids: Sequence[str], record: RunRecord) -> int:
    """Return the place of an example that is named by its id or, where no id is that text, by its place.

    Raises:
        UsageError: there is no such example.
    """
    if named in ids:
        return ids.index(named)
    if not named.isdecimal():
        near = did_you_mean(named, ids)
        raise UsageError(f"no example that {run_label(record)} summarized has the id '{named}'{near}; {_places(ids)}")
    if int(named) >= len(ids):
        raise UsageError(f"{run_label(record)} summarized no example {named}; {_places(ids)}")
    return int(named)


def _places(ids: Sequence[str]) -> str:
    return f"by their places, its examples are 0 to {len(ids) - 1}" if ids else "it summarized none"


def _evidence_of(folder: Path, number: int, name: str, record: RunRecord) -> Evidence:
    """Return the evidence of an example.

    Args:
        folder: the run's.
        number: the example's place in its split.
        name: its id.
        record: the run's.

    Raises:
        UsageError: none was kept.
        DataError: its files are damaged, or are another example's.
    """
    found = kept_places(folder / "evidence")
    if number not in found:
        raise UsageError(_why_none(number, found, record))
    whose, evidence = read_evidence(folder / "evidence", number)
    if whose != name:
        told = f"the evidence of '{whose}', where the run has '{name}'; run it again with overwrite=true"
        raise DataError(told, folder / "evidence" / f"{number}.json")
    return evidence


def _why_none(number: int, found: set[int], record: RunRecord) -> str:
    """Say why there is no evidence of an example, and what to do."""
    words = [word for word in record.command if not word.startswith("decode.evidence=")]
    more = f"the same command with decode.evidence=all keeps it of all: {shlex.join([*words, 'decode.evidence=all'])}"
    if found:
        has = (
            f"{len(found)} examples, {min(found)} to {max(found)}" if len(found) > 1 else f"example {min(found)} alone"
        )
        return f"no evidence of example {number} was kept; {run_label(record)} has that of {has}; {more}"
    if not num_wanted(asked := record.config.get("decode", {}).get("evidence", "none"), examples=1):
        return (
            f"{run_label(record)} was not asked for evidence (decode.evidence={asked}); if the system keeps any, {more}"
        )
    return (
        f"{run_label(record)} has no evidence of any example: {record.model}, at least with these settings, keeps none"
    )


def _scores_of(path: Path, name: str) -> dict[str, float]:
    """Return the ROUGE of an example of a run; nothing where it was not scored.

    Args:
        path: the table of the scores of the summaries that are looked at.
        name: the example's id.

    Raises:
        DataError: the table is damaged.
    """
    scores = read_scores(path) if path.is_file() else None
    if scores is None or name not in scores.index:
        return {}
    try:
        (row,) = PERCENT * scores.loc[[name], [f"{kind}_f" for kind in ROUGE_HEADINGS]].to_numpy()
        return dict(zip(ROUGE_HEADINGS.values(), row.tolist(), strict=True))
    except (KeyError, ValueError) as error:  # a column is missing, or the id is there twice
        raise DataError(f"not a table of ROUGE scores ({error!r}); run it again with overwrite=true", path) from error


def inspection_folder(results: Results, record: RunRecord) -> Path:
    """Return where an inspection is written when no folder is named."""
    return results.root / "inspections" / record.run_id
