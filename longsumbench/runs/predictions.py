"""Write summaries to disk batch by batch, and resume an interrupted run."""

import contextlib
import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypedDict

from longsumbench.core import Decoding, Split, Summary, System, SystemConfig, Truncation
from longsumbench.core.unfinished_work import UnfinishedWork
from longsumbench.errors import naming_path
from longsumbench.files import BadFile, digest, parse_json, write_atomically
from longsumbench.modeling.processes import (
    from_first_process,
    process_count,
    process_index,
    wait_for_everyone,
)
from longsumbench.progress import Progress
from longsumbench.runs.estimate import estimate_tokens
from longsumbench.runs.evidence import (
    EVIDENCE_FOLDER,
    input_line,
    num_wanted,
    read_stored_inputs,
    sort_inputs,
    stored_indices,
    write_evidence,
)
from longsumbench.runs.record import WORK_FOLDER, predictions_file

_log = logging.getLogger(__name__)


class _BatchLine(TypedDict):
    """A line of decoding.jsonl."""

    seconds: float


@dataclass(frozen=True)
class _PredictionLine:
    """A line of predictions.jsonl."""

    id: str
    prediction: str
    complete: bool
    tokens: int | None
    truncation: Truncation | None
    counts: Mapping[str, int | float] = field(default_factory=dict)


def summarize_split(
    system: System,
    split: Split,
    decoding: Decoding,
    folder: Path,
    checkpoint: int = 1,
    shown_as: str = "summarizing",
) -> list[Summary]:
    """Summarize the first `decoding.limit` examples of a split into the folder of a run, in batches of similar length.

    The batches depend on the data only. A resumed run keeps complete batches and repeats incomplete ones, so it writes
    the same summaries. The evidence and inputs of a batch are written before its lines. A batch without them is decoded
    again for them; its summaries stay. If a summary then differs (on another device), its evidence and input are
    dropped.
    Processes that share the run all call this: each writes its share of the batches into its own file, and the first
    one merges the files.

    Args:
        system: a fitted system.
        split: the examples.
        decoding: the decoding settings.
        folder: of the run, with a folder `work`. Summaries are appended, and sorted in the data's order at the end.
        checkpoint: the number of the checkpoint; only the first one has evidence, inputs and a log of its seconds.
        shown_as: the name of the progress bar.

    Returns:
        The summaries in the data's order, without evidence; none in the other processes.
    """
    examples, is_first = num_summarized(split, decoding), process_index() == 0
    writer = Writer(system.config, split, decoding, folder, checkpoint, system)
    summaries = writer.merge_parts() if is_first else {}
    incomplete = writer.lacking_evidence | writer.lacking_inputs
    buckets = length_buckets(split.source_words[:examples], decoding.batch_size)
    unwritten = from_first_process(
        [bucket for bucket in buckets if any(split.ids[i] not in summaries for i in bucket)]
    )
    with Progress(shown_as, examples) as progress:
        progress.start_at(examples - sum(map(len, unwritten)))
        share = unwritten[process_index() :: process_count()]
        progress.expect(estimate_tokens(system, split, chain.from_iterable(share)))
        for bucket in share:
            writer.write(bucket, progress)
        for bucket in buckets:
            if incomplete.intersection(bucket) and all(split.ids[i] in summaries for i in bucket):
                writer.add_lacking(bucket, summaries)
    wait_for_everyone()
    if not is_first:
        return []
    summaries = writer.merge_parts()
    ordered = [summaries[name] for name in split.ids[:examples]]
    if ordered and all(_is_json(summary.text) for summary in ordered):
        _log.warning(
            "every output is JSON, which is scored as it is: ask for a plain text (model.prompt)"
        )
    write_summaries(writer.predictions, ordered)
    return ordered


@dataclass
class Writer:
    """Writes summaries in batches, with their evidence and inputs. The attributes are those of `summarize_split`."""

    model: SystemConfig
    split: Split
    decoding: Decoding
    folder: Path
    checkpoint: int = 1
    system: System | None = None  # not needed to see what is lacking
    num_tokens: int = 0  # of the summaries that were written

    def __post_init__(self) -> None:
        self.predictions = self.folder / predictions_file(self.checkpoint)
        self.inputs = self.folder / "inputs.jsonl"
        self.log = self.folder / WORK_FOLDER / "decoding.jsonl"

    @cached_property
    def requested_evidence(self) -> set[int]:
        """The indices of the examples whose evidence is stored; empty if the system keeps none."""
        return self._select_first(self.decoding.evidence, self.model.capabilities.keeps_evidence)

    @cached_property
    def requested_inputs(self) -> set[int]:
        """The indices of the examples whose inputs are stored; empty for a baseline, which decodes nothing."""
        return self._select_first(self.decoding.keep_inputs, "decode" in self.model.decided_by)

    def _select_first(self, amount: str, is_possible: bool) -> set[int]:
        if self.checkpoint > 1 or not is_possible:
            return set()
        return set(num_wanted(amount, num_summarized(self.split, self.decoding)))

    @cached_property
    def lacking_evidence(self) -> set[int]:
        """Of the examples in `requested_evidence`, those without evidence when this is first read."""
        stored = stored_indices(self.folder / EVIDENCE_FOLDER, self.decoding.reference_evidence)
        return self.requested_evidence - stored

    @cached_property
    def lacking_inputs(self) -> set[int]:
        """Of the examples in `requested_inputs`, those without an input when this is first read."""
        stored = read_stored_inputs(self.inputs)
        return {index for index in self.requested_inputs if self.split.ids[index] not in stored}

    def write(self, bucket: Sequence[int], progress: Progress) -> None:
        """Append the summaries of a batch, after writing their evidence and inputs."""
        started = time.monotonic()
        path = self.folder / WORK_FOLDER / f"unfinished{self.checkpoint}.jsonl"
        unfinished = UnfinishedWork(part_file(path, process_index()))
        batch = []
        for summary in self._decode(bucket, unfinished):
            batch.append(summary)
            self.num_tokens += summary.tokens or 0
            progress.advance(
                process_count(), f"{self.num_tokens:,} tokens" if self.num_tokens else ""
            )
        self._store(
            list(zip(bucket, batch, strict=True)), self.requested_evidence, self.requested_inputs
        )
        _append(self.predictions, "".join(map(to_line, batch)))
        unfinished.clear()
        if self.checkpoint == 1:
            elapsed = time.monotonic() - started + unfinished.seconds
            seconds = round(elapsed / process_count(), 4)
            _append(self.log, json.dumps({"examples": len(batch), "seconds": seconds}) + "\n")

    def add_lacking(self, bucket: Sequence[int], old: Mapping[str, Summary]) -> None:
        """Write the missing evidence and inputs of a batch, for summaries that equal the written ones."""
        batch = zip(bucket, self._decode(bucket), strict=True)
        same = [(index, new) for index, new in batch if new == old[new.id]]
        self._store(same, self.lacking_evidence, self.lacking_inputs)

    def _store(
        self, batch: Sequence[tuple[int, Summary]], evidence: set[int], inputs: set[int]
    ) -> None:
        for index, summary in batch:
            if index in evidence:
                write_evidence(self.folder / EVIDENCE_FOLDER, index, summary)
            if index in inputs:
                _append(self.inputs, input_line(summary.id, summary.read))

    def _decode(
        self, bucket: Sequence[int], unfinished: UnfinishedWork | None = None
    ) -> Iterator[Summary]:
        """Summarize a batch; evidence and inputs are requested only if an example of the batch needs them."""
        evidence = (
            self.decoding.evidence if self.requested_evidence.intersection(bucket) else "none"
        )
        inputs = self.decoding.keep_inputs if self.requested_inputs.intersection(bucket) else "none"
        decoding = replace(self.decoding, evidence=evidence, keep_inputs=inputs)
        assert self.system is not None
        self.system.unfinished = unfinished
        return self.system.summarize([self.split[index] for index in bucket], decoding)

    def merge_parts(self) -> dict[str, Summary]:
        """Merge the files of all processes; return the summaries by id."""
        summaries: dict[str, Summary] = {}
        for file in (self.predictions, *_part_files(self.predictions)):
            summaries |= {summary.id: summary for summary in read_summaries(file)}
        write_summaries(self.predictions, summaries.values())
        paths = [self.predictions]
        if self.checkpoint == 1:
            paths += [self.log, self.inputs]
            for file in _part_files(self.log):
                _append(self.log, file.read_text(encoding="utf-8", errors="replace"))
            sort_inputs(self.inputs, _part_files(self.inputs), self.split.ids)
        for path in paths:
            for file in _part_files(path):
                file.unlink()
        return summaries


def part_file(path: Path, place: int) -> Path:
    """Return the file that a process writes; the first one, 0, writes the file itself."""
    return path.with_name(f"{path.stem}.part{place}{path.suffix}") if place else path


def _part_files(path: Path) -> list[Path]:
    return [*path.parent.glob(f"{path.stem}.part*{path.suffix}")]


def _append(path: Path, text: str) -> None:
    """Append to the file of this process."""
    own_file = part_file(path, process_index())
    with naming_path(own_file), own_file.open("a", encoding="utf-8") as file:
        file.write(text)


def _is_json(text: str) -> bool:
    try:
        return isinstance(parse_json(text, Any), dict | list)
    except BadFile:
        return False


def num_summarized(split: Split, decoding: Decoding) -> int:
    """Return the number of summarized examples: the first ones, up to `decoding.limit`."""
    return min(len(split), decoding.limit or len(split))


def sum_decoding_seconds(log: Path) -> float:
    """Return the seconds of all batches, including those of earlier processes."""
    batches = []
    for line in (
        log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else ()
    ):
        with contextlib.suppress(BadFile):  # an incomplete line
            batches.append(parse_json(line, _BatchLine)["seconds"])
    return float(sum(batches))


def length_buckets(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Sort indices into batches of similar length, the longest first.

    So a lack of memory shows at once, and the estimate of the time left is never too low. Equal lengths keep the data's
    order, so that the result depends on the lengths only.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def to_line(summary: Summary) -> str:
    """Return a summary as a JSON line: `id`, `prediction`, then the facts for the record; `counts` if there are any."""
    ledger = asdict(summary.truncation) if summary.truncation else None
    values = {
        "id": summary.id,
        "prediction": summary.text,
        "complete": summary.complete,
        "tokens": summary.tokens,
    }
    counts = {"counts": dict(summary.counts)} if summary.counts else {}
    return json.dumps({**values, "truncation": ledger, **counts}, ensure_ascii=False) + "\n"


def read_summaries(path: Path, limit: int | None = None) -> list[Summary]:
    """Read the summaries written so far, or those of the first lines; incomplete lines are skipped."""
    if not path.is_file():
        return []
    summaries = []
    with path.open(
        encoding="utf-8", errors="replace", newline="\n"
    ) as file:  # texts contain other line breaks
        for line in islice(file, limit):
            try:
                entry = parse_json(line, _PredictionLine)
            except BadFile:
                continue
            summary = Summary(
                entry.id, entry.prediction, entry.truncation, entry.complete, entry.tokens
            )
            summaries.append(replace(summary, counts=entry.counts))
    return summaries


def digest_texts(summaries: Iterable[Summary]) -> str:
    """Return a hash of summaries, as `RunRecord.outputs_digest`."""
    return digest([summary.text for summary in summaries])[:16]


def write_summaries(path: Path, summaries: Iterable[Summary]) -> None:
    """Write summaries as JSON lines, atomically."""
    write_atomically(path, "".join(map(to_line, summaries)))
