"""SEAL, Table 1, and PageSum, Table 1: numbers of examples, and lengths of sources and targets."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from longsumbench.analysis.dataset.published_sizes import PUBLISHED_SIZES, TABLES_OF_SIZES
from longsumbench.analysis.dataset.tables import summarize_lengths
from longsumbench.leaderboards.published import PUBLISHED_AS
from longsumbench.metrics.aggregate import BOOTSTRAP_SEED, Estimate
from longsumbench.metrics.statistics import bootstrap_interval
from longsumbench.papers.artifacts import Artifact
from longsumbench.papers.long_table import DIFFERENCE, OURS, PRINTED, TableNumber, long_table
from longsumbench.papers.page import Job, Page
from longsumbench.papers.texts.lengths import WORDS, DatasetLengths, measure_lengths
from longsumbench.papers.texts.reachable import ReadableDataset, read_datasets, typed_option
from longsumbench.report.tables import Block

_COLUMNS = ("dataset", "", "examples", "source\nmean", "source\n95 %", "target\nmean", "target\n95 %")
_MEASURES = tuple((text, statistic) for text in ("source", "target") for statistic in ("mean", "95 %"))
_ABSENT = "–"
_RESAMPLES = 1_000  # of the bootstrap for the 95 % intervals
_NUMBER = re.compile(r"([\d.,]+)([kKM]?)")
_TIMES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6}
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
    for name in {**job.artifact.datasets, **job.datasets}:
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
            if printed and dataset.of_paper:
                changes = list(_changes(dataset, found, printed))
                numbers += changes
                rows.append([dataset.label, "ours − printed, %", "", *_change_cells(changes)])
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


def read_printed_size(text: str) -> float | None:
    """Return the value of a printed number ("24.2k" → 24200); None for a dash."""
    found = _NUMBER.fullmatch(text)
    return None if found is None else float(found[1].replace(",", "")) * _TIMES[found[2]]


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
            length, row = summarize_lengths(table[text]), f"{text}, {unit}"
            if length.n and statistic == "mean":
                low, high = _interval(table[text].dropna())
                yield TableNumber(OURS, dataset.name, row, statistic, length.mean, low, high, length.n)
            elif length.n:
                yield TableNumber(OURS, dataset.name, row, statistic, length.p95, n=length.n)


def _changes(dataset: ReadableDataset, found: DatasetLengths, printed: _PrintedSizes) -> Iterator[TableNumber]:
    """Yield the differences of our lengths from the printed ones, in percent of these; those of tokens if there are."""
    unit, table = list(found.tables.items())[-1]
    for (text, statistic), cell in zip(_MEASURES, printed.lengths, strict=True):
        length, value = summarize_lengths(table[text]), read_printed_size(cell)
        row = f"{text}, {unit}, % of the printed length"
        if value is None or not length.n:
            yield TableNumber(DIFFERENCE, dataset.name, row, statistic, None)
            continue
        number = Estimate(length.p95, float("nan"), float("nan"))
        if statistic == "mean":
            number = Estimate(length.mean, *_interval(table[text].dropna()))
        change, low, high = (100 * (part / value - 1) for part in number)
        yield TableNumber(DIFFERENCE, dataset.name, row, statistic, change, low, high, length.n)


def _change_cells(changes: list[TableNumber]) -> Iterator[str]:
    for change in changes:
        if change.value is None:
            yield _ABSENT
        elif change.measure == "mean" and change.low is not None and change.high is not None:
            yield f"{change.value:+.1f} ±{(change.high - change.low) / 2:.1f}"
        else:
            yield f"{change.value:+.1f}"


def _interval(values: "pd.Series[float]") -> tuple[float, float]:
    """Return the 95 % interval of a mean; NaN for a single value."""
    if len(values) < 2:
        return float("nan"), float("nan")
    return bootstrap_interval(values.tolist(), _RESAMPLES, BOOTSTRAP_SEED)


def _describe_sample(dataset: ReadableDataset, found: DatasetLengths) -> str:
    whole = found.examples[found.split]
    part = "all" if found.size == whole else f"{found.size:,} of"
    unit = WORDS if len(found.tables) == 1 else f"{WORDS} and {list(found.tables)[-1]}"
    return f"{dataset.label}: lengths in {unit}, of {part} {whole:,} examples of the {found.split} split."
