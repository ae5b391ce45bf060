"""SEAL, Table 1, and PageSum, Table 1: numbers of examples, and lengths of sources and targets."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from longsumbench.analysis.dataset.published_sizes import PUBLISHED_SIZES, TABLES_OF_SIZES, read_printed_size
from longsumbench.analysis.dataset.tables import summarize_lengths
from longsumbench.leaderboards.published import PUBLISHED_AS
from longsumbench.metrics.aggregate import Estimate, estimate_mean
from longsumbench.papers.artifacts import Artifact
from longsumbench.papers.long_table import OURS, PRINTED, TableNumber, long_table
from longsumbench.papers.page import Job, Page
from longsumbench.papers.texts.lengths import WORDS, DatasetLengths, measure_lengths
from longsumbench.papers.texts.reachable import ReadableDataset, read_datasets, typed_option
from longsumbench.report.tables import Block

_COLUMNS = ("dataset", "", "examples", "source\nmean", "source\n95 %", "target\nmean", "target\n95 %")
_MEASURES = tuple((text, statistic) for text in ("source", "target") for statistic in ("mean", "95 %"))
_ABSENT = "–"
_SPLITS = ("train", "validation", "test")


class _PrintedSizes(NamedTuple):
    """A row of the paper's table, as printed; `lengths` are in the order of `_MEASURES`."""

    counted: str
    examples: str
    lengths: tuple[str, ...]


def sizes_page(job: Job) -> Page:
    """Return numbers of examples and lengths, as printed and ours in words and tokens.

    Options: `tokenizer` is a folder or hub name, null for a byte-level BPE trained on the training split; if the
    artifact's own tokenizer cannot be downloaded, one is trained. `split` is the split whose lengths are counted.
    `sample` is the number of examples of it, null for all.

    Raises:
        UsageError: no dataset can be read, or there is no such tokenizer.
        EnvironmentProblem: no dataset can be read, or a typed tokenizer cannot be downloaded.
        DataError: a file is damaged, or a dataset lacks the split.
    """
    reached = read_datasets(job)
    readable = {dataset.name: dataset for dataset in reached.datasets}
    tokenizer = None if job.options.get("tokenizer") is None else str(job.options["tokenizer"])
    required = typed_option(job, "tokenizer")
    rows, numbers, conditions = list[list[str]](), list[TableNumber](), list(reached.conditions)
    for name in job.artifact.datasets:
        printed = _printed(job.artifact, name)
        if printed:
            rows.append([name, f"printed: {printed.counted}", printed.examples, *printed.lengths])
            numbers += _printed_numbers(job.artifact, name, printed)
        if dataset := readable.get(name):
            split = str(job.options.get("split") or dataset.settings.split)
            found = measure_lengths(dataset.texts, split, job.options.get("sample"), tokenizer, required)
            for unit, table in found.tables.items():
                rows.append([dataset.label, f"ours: {unit}", _examples(found), *_cells(table)])
            numbers += _our_numbers(dataset, found)
            conditions.append(_describe_sample(dataset, found))
            if tokenizer is not None and f"tokens of {tokenizer}" not in found.tables:
                conditions.append(f"{dataset.label}: {tokenizer} is not on this machine; tokenizer=FOLDER sets it.")
    notes = ("Lengths without titles and section names; words are separated by whitespace.",)
    return Page(
        blocks=(Block("", notes, _COLUMNS, "lllrrrr", rows),),
        numbers=long_table(numbers),
        conditions=tuple(conditions),
    )


def _printed(artifact: Artifact, name: str) -> _PrintedSizes | None:
    """Return what the artifact's table prints for one of the paper's datasets."""
    wanted = TABLES_OF_SIZES[artifact.source, artifact.prints]
    for source, counted, examples, *lengths in PUBLISHED_SIZES.get(PUBLISHED_AS.get(name, ""), ()):
        if source == wanted:
            return _PrintedSizes(counted, examples, tuple(lengths))
    return None


def _printed_numbers(artifact: Artifact, name: str, printed: _PrintedSizes) -> Iterator[TableNumber]:
    source = f"{artifact.source} {artifact.prints}"
    parts = printed.examples.split(" / ")
    for split, text in zip(_SPLITS if len(parts) > 1 else ("all splits",), parts, strict=True):
        value = read_printed_size(text)
        yield TableNumber(PRINTED, name, "examples", split, value, source=source)
    for (text, statistic), cell in zip(_MEASURES, printed.lengths, strict=True):
        if (value := read_printed_size(cell)) is not None:
            row = f"{text}, {printed.counted}"
            yield TableNumber(PRINTED, name, row, statistic, value, source=source)


def _examples(found: DatasetLengths) -> str:
    return " / ".join(f"{found.examples.get(split, 0):,}" for split in _SPLITS)


def _cells(table: pd.DataFrame) -> Iterator[str]:
    for text, statistic in _MEASURES:
        length = summarize_lengths(table[text])
        yield f"{length.mean if statistic == 'mean' else length.p95:,.1f}" if length.n else _ABSENT


def _our_numbers(dataset: ReadableDataset, found: DatasetLengths) -> Iterator[TableNumber]:
    for split, size in found.examples.items():
        yield TableNumber(OURS, dataset.name, "examples", split, size)
    for unit, table in found.tables.items():
        for text, statistic in _MEASURES:
            if number := _estimate(table[text], statistic):
                n = int(table[text].count())
                yield TableNumber(OURS, dataset.name, f"{text}, {unit}", statistic, *number, n)


def _estimate(lengths: "pd.Series[float]", statistic: str) -> Estimate | None:
    """Return the mean with its interval, or the percentile without one; None without a length."""
    if statistic == "mean":
        return estimate_mean(np.asarray(lengths.dropna(), np.float64))
    found = summarize_lengths(lengths)
    return Estimate(found.p95, np.nan, np.nan) if found.n else None


def _describe_sample(dataset: ReadableDataset, found: DatasetLengths) -> str:
    whole = found.examples[found.split]
    part = "all" if found.size == whole else f"{found.size:,} of"
    unit = WORDS if len(found.tables) == 1 else f"{WORDS} and {list(found.tables)[-1]}"
    return f"{dataset.label}: lengths in {unit}, of {part} {whole:,} examples of the {found.split} split."
