"""Summaries on disk: written batch by batch as they come, found again by a resumed run."""

import contextlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from longsumbench.configuration import Decoding
from longsumbench.documents import Cut, Truncation
from longsumbench.evidence import kept, wanted, write_evidence
from longsumbench.progress import Progress
from longsumbench.records import write_atomically
from longsumbench.system import Split, Summary, System


def summarize_split(
    system: System,
    split: Split,
    decoding: Decoding,
    path: Path,
    log: Path | None = None,
    evidence: Path | None = None,
    shown_as: str = "summarizing",
) -> list[Summary]:
    """Summarize the first `decoding.limit` examples of a split, in batches of similar length.

    The batches depend on the data alone. One that an earlier process wrote whole is kept and a torn one is done again,
    so a resumed run writes the same summaries as an undisturbed one. A batch's evidence is written before its lines: a
    killed run that has the line has the evidence. A batch that lacks nothing but evidence is decoded again for it, and
    its summaries stay as they are; where one comes out differently (on another device), its evidence is not kept.

    Args:
        system: a fitted one.
        split: what to summarize.
        decoding: how; its `batch_size` is the size of a batch.
        path: JSON lines; appended to as summaries come, in the data's order at the end.
        log: JSON lines; the seconds of each batch of new summaries, appended when given.
        evidence: a folder for that of the first examples, as many as `decoding.evidence` says; None: none is kept.
        shown_as: what its progress is called.

    Returns:
        The summaries in the data's order, without their evidence.
    """
    examples, ids = num_summarized(split, decoding), split.ids
    asked_for = asked_evidence(system, decoding, examples) if evidence is not None else set()
    lacking = asked_for - kept(evidence, decoding.reference_evidence) if evidence is not None else set()
    done = {summary.id: summary for summary in read_summaries(path)}
    write_summaries(path, done.values())
    with Progress(shown_as, examples) as progress, path.open("a", encoding="utf-8") as file:
        for bucket in length_buckets(split.source_words[:examples], decoding.batch_size):
            unwritten = any(ids[index] not in done for index in bucket)
            if unwritten or lacking.intersection(bucket):
                started = time.monotonic()
                how = decoding if asked_for.intersection(bucket) else replace(decoding, evidence="none")
                batch = list(system.summarize([split[index] for index in bucket], how))
                fresh = [replace(summary, evidence=None) for summary in batch]
                due = asked_for if unwritten else lacking  # what is kept may say more than is asked for now
                for index, summary, bare in zip(bucket, batch, fresh, strict=True):
                    if evidence is not None and index in due and (unwritten or bare == done[bare.id]):
                        write_evidence(evidence, index, summary)
            if unwritten:
                done |= {summary.id: summary for summary in fresh}
                file.write("".join(map(to_line, fresh)))
                file.flush()
                if log is not None:
                    note_batch(log, len(fresh), time.monotonic() - started)
            progress.advance(len(bucket))
    ordered = [done[ids[index]] for index in range(examples)]
    write_summaries(path, ordered)
    return ordered


def num_summarized(split: Split, decoding: Decoding) -> int:
    """Return how many examples of a split are summarized: the first ones, up to `decoding.limit`."""
    return min(len(split), decoding.limit or len(split))


def asked_evidence(system: System, decoding: Decoding, examples: int) -> set[int]:
    """Return the places of the examples whose evidence is asked for, of a system that keeps any."""
    return set(wanted(decoding.evidence, examples)) if system.keeps_evidence else set()


def note_batch(log: Path, examples: int, seconds: float) -> None:
    """Append what a batch took."""
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"examples": examples, "seconds": round(seconds, 4)}) + "\n")


def seconds_of_decoding(log: Path) -> float:
    """Return the seconds of all batches, those of earlier processes included."""
    batches = []
    for line in log.read_text(encoding="utf-8").splitlines() if log.is_file() else ():
        with contextlib.suppress(ValueError):  # a torn line
            batches.append(json.loads(line)["seconds"])
    return float(sum(batches))


def length_buckets(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Deal indices into batches of similar length, the longest first.

    The longest first, so that too little memory shows at once and the time left is never underestimated. Equal lengths
    keep the data's order, so the buckets depend on the lengths alone.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def to_line(summary: Summary) -> str:
    """Return a summary as a JSON line: `id` and `prediction` first, for every reader, then what the record needs."""
    ledger = asdict(summary.truncation) if summary.truncation else None
    values = {"id": summary.id, "prediction": summary.text, "complete": summary.complete, "tokens": summary.tokens}
    return json.dumps({**values, "truncation": ledger}, ensure_ascii=False) + "\n"


def from_dict(values: dict[str, Any]) -> Summary:
    """Rebuild what `to_line` wrote."""
    ledger = values["truncation"]
    truncation = None
    if ledger is not None:
        truncation = Truncation(
            ledger["tokens"],
            ledger["words"],
            tuple(Cut(**cut) for cut in ledger["cuts"]),
            ledger.get("documents_merged", 0),
        )
    return Summary(values["id"], values["prediction"], truncation, values["complete"], values["tokens"])


def read_summaries(path: Path) -> list[Summary]:
    """Read the summaries written so far; a line that a killed process left torn is no summary."""
    if not path.is_file():
        return []
    whole = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):  # texts hold other line breaks
        try:
            whole.append(from_dict(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            continue
    return whole


def write_summaries(path: Path, summaries: Iterable[Summary]) -> None:
    """Write summaries as JSON lines, whole or not at all."""
    write_atomically(path, "".join(map(to_line, summaries)))
