"""SEAL, Table 1, and PageSum, Table 1: numbers of examples; lengths of sources and targets in words and tokens."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from longsumbench.analysis.dataset.stats import StatsSettings, sample_indices
from longsumbench.analysis.dataset.tables import (
    PUBLISHED_SIZES,
    TABLES_OF_SIZES,
    summarize_lengths,
)
from longsumbench.cache.artifacts import user_cache
from longsumbench.core import Split, build_settings, count_words
from longsumbench.corpora.loading.load import Texts
from longsumbench.errors import EnvironmentProblem
from longsumbench.leaderboards.published import PUBLISHED_AS
from longsumbench.metrics.aggregate import Estimate
from longsumbench.modeling.tokenizer import encode_sentences, load_tokenizer, trained_tokenizer
from longsumbench.progress import track
from longsumbench.views.tables import Block
from longsumbench_reproduction.analysis.sampled import estimate_mean, find_split
from longsumbench_reproduction.papers.claims import OURS, PRINTED, TableNumber, long_table
from longsumbench_reproduction.papers.conditions import ReadableDataset, read_datasets
from longsumbench_reproduction.papers.page_model import Job, Page
from longsumbench_reproduction.papers.paper_tables import PaperTable

_VOCABULARY = 32_000  # entries of the trained tokenizer
WORDS = "words"
_PRINTED_SIZE = re.compile(r"([\d.,]+)([kKM]?)")
_TIMES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6}

_Count = Callable[[list[str]], int]  # consecutive sentences → their length in a unit


class DatasetLengths(NamedTuple):
    """Lengths of a dataset.

    Attributes:
        examples: split → number of examples.
        split: name of the split whose lengths were measured.
        size: number of measured examples.
        tables: unit ("words", "tokens of NAME" or "tokens (trained BPE, …)") → one row per example. The columns are
            "source" and "target", which is the first reference, NaN without one.
    """

    examples: Mapping[str, int]
    split: str
    size: int
    tables: Mapping[str, pd.DataFrame]


def measure_lengths(
    texts: Texts,
    split: str,
    sample: str | int | float | None,
    tokenizer: str | None,
    required: bool,
) -> DatasetLengths:
    """Measure the lengths of a split, without titles and section names.

    `sample` is the number of examples, drawn by a fixed seed; None: all. `tokenizer` is a folder or a hub name. Without
    it, or if it is not required and cannot be downloaded, one is trained on the training split.

    Raises:
        DataError: the dataset lacks the split.
        UsageError: there is no such tokenizer, or the size is invalid.
        EnvironmentProblem: the tokenizer is required, and cannot be downloaded.
    """
    split_examples = find_split(texts, split)
    settings: StatsSettings = build_settings(StatsSettings, {"sample": sample}, "")
    indices = sample_indices(split, len(split_examples), settings)
    counters = {WORDS: count_words, **_count_tokens(texts, tokenizer, required)}
    return DatasetLengths(
        examples={name: len(examples) for name, examples in texts.splits.items()},
        split=split,
        size=len(indices),
        tables=_count_lengths(split_examples, indices, counters),
    )


def _count_tokens(texts: Texts, name: str | None, required: bool) -> dict[str, _Count]:
    """Return the name of the unit and the function that counts it; nothing without a tokenizer."""
    try:
        encoder = load_tokenizer(name, of_system=False) if name is not None else None
    except EnvironmentProblem:
        if required:
            raise
        encoder = None
    label = f"tokens of {name}"
    if encoder is None:
        if "train" not in texts.splits:
            return {}
        encoder = trained_tokenizer(texts.splits["train"], _VOCABULARY, user_cache())
        label = f"tokens (trained BPE, {len(encoder):,} entries)"

    def count_tokens(sentences: list[str]) -> int:
        return sum(len(encoding.ids) for encoding in encode_sentences(encoder, sentences))

    return {label: count_tokens}


def _count_lengths(
    split: Split, indices: Sequence[int], counters: Mapping[str, _Count]
) -> dict[str, pd.DataFrame]:
    # All counters read an example at once: the texts are read from the disk one by one
    lengths = np.full((len(counters), len(indices), 2), np.nan)
    for row, index in enumerate(track(indices, f"counting {split.name}", len(indices))):
        example = split[index]
        for number, count in enumerate(counters.values()):
            documents = [list(document.sentences()) for document in example.documents]
            lengths[number, row, 0] = sum(map(count, documents))
            if any(example.references[:1]):
                lengths[number, row, 1] = count([" ".join(example.references[0])])
    tables = {}
    for label, table in zip(counters, lengths, strict=True):
        tables[label] = pd.DataFrame(table, columns=["source", "target"])
    return tables


_LENGTH_COLUMNS = (
    *("dataset", "", "examples"),
    *("source\nmean", "source\n95 %", "target\nmean", "target\n95 %"),
)
_STATISTICS = (("source", "mean"), ("source", "95 %"), ("target", "mean"), ("target", "95 %"))
_NO_LENGTH = "–"
_SPLIT_ORDER = ("train", "validation", "test")


class _PrintedSizes(NamedTuple):
    """A row of the paper's table, as printed; `lengths` are in the order of `_MEASURES`."""

    unit: str
    examples: str
    lengths: tuple[str, ...]


def sizes_page(job: Job) -> Page:
    """Return numbers of examples and lengths, as printed and ours in words and tokens.

    Options: `tokenizer` is a folder or hub name, null for a byte-level BPE trained on the training split; if the
    paper table's own tokenizer cannot be downloaded, one is trained. `split` is the split whose lengths are counted.
    `sample` is the number of examples of it, null for all.
    """
    datasets, conditions = read_datasets(job)
    readable = {dataset.name: dataset for dataset in datasets}
    name = job.options.get("tokenizer")
    tokenizer = None if name is None else str(name)
    # Only the table's own tokenizer may be replaced by a trained one
    required = name != job.paper_table.options_at(job.scale).get("tokenizer")
    rows, numbers = list[list[str]](), list[TableNumber]()
    for dataset_name in job.paper_table.datasets:
        printed = _printed_sizes(job.paper_table, dataset_name)
        if printed:
            label = f"printed: {printed.unit}"
            rows.append([dataset_name, label, printed.examples, *printed.lengths])
            numbers += _printed_size_numbers(job.paper_table, dataset_name, printed)
        dataset = readable.get(dataset_name)
        if dataset is None:
            continue
        split, sample = (
            str(job.options.get("split") or dataset.settings.split),
            job.options.get("sample"),
        )
        lengths = measure_lengths(dataset.texts, split, sample, tokenizer, required)
        our_rows, our_numbers = _tabulate_lengths(dataset, lengths)
        rows += our_rows
        numbers += our_numbers
        conditions.append(_describe_sample(dataset, lengths))
        if tokenizer is not None and f"tokens of {tokenizer}" not in lengths.tables:
            problem = f"{tokenizer} is not on this machine; tokenizer=FOLDER sets it"
            conditions.append(f"{dataset.label}: {problem}.")
    notes = ("Lengths without titles and section names; words are separated by whitespace.",)
    block = Block("", notes, _LENGTH_COLUMNS, "lllrrrr", rows)
    return Page((block,), long_table(numbers), conditions=tuple(conditions))


def _tabulate_lengths(
    dataset: ReadableDataset, lengths: DatasetLengths
) -> tuple[list[list[str]], list[TableNumber]]:
    """Return a row for each unit, and the same numbers for the CSV."""
    rows, numbers = [], []
    counts = " / ".join(f"{lengths.examples.get(split, 0):,}" for split in _SPLIT_ORDER)
    for split, size in lengths.examples.items():
        numbers.append(TableNumber(OURS, dataset.name, "examples", split, size))
    for unit, table in lengths.tables.items():
        row = [dataset.label, f"ours: {unit}", counts]
        for text, statistic in _STATISTICS:
            number = _estimate(table[text], statistic)
            row.append(f"{number.mean:,.1f}" if number else _NO_LENGTH)
            if number:
                labels, n = f"{text}, {unit}", int(table[text].count())
                numbers.append(TableNumber(OURS, dataset.name, labels, statistic, *number, n))
        rows.append(row)
    return rows, numbers


def _printed_sizes(paper_table: PaperTable, name: str) -> _PrintedSizes | None:
    table_name = TABLES_OF_SIZES[paper_table.source, paper_table.prints]
    for source, unit, examples, *lengths in PUBLISHED_SIZES.get(PUBLISHED_AS.get(name, ""), ()):
        if source == table_name:
            return _PrintedSizes(unit, examples, tuple(lengths))
    return None


def _read_printed_size(text: str) -> float | None:
    """Return the value of a printed number ("24.2k" → 24200); None for a dash."""
    match = _PRINTED_SIZE.fullmatch(text)
    return None if match is None else float(match[1].replace(",", "")) * _TIMES[match[2]]


def _printed_size_numbers(
    paper_table: PaperTable, name: str, printed: _PrintedSizes
) -> Iterator[TableNumber]:
    source = f"{paper_table.source} {paper_table.prints}"
    parts = printed.examples.split(" / ")
    splits = _SPLIT_ORDER if parts[1:] else ("all splits",)
    for split, text in zip(splits, parts, strict=True):
        value = _read_printed_size(text)
        yield TableNumber(PRINTED, name, "examples", split, value, source=source)
    for (text, statistic), cell in zip(_STATISTICS, printed.lengths, strict=True):
        if (value := _read_printed_size(cell)) is not None:
            row = f"{text}, {printed.unit}"
            yield TableNumber(PRINTED, name, row, statistic, value, source=source)


def _estimate(lengths: "pd.Series[float]", statistic: str) -> Estimate | None:
    """Return the mean with its interval, or the percentile without one; None without a length."""
    if statistic == "mean":
        return estimate_mean(np.asarray(lengths.dropna(), np.float64))
    length = summarize_lengths(lengths)
    return Estimate(length.p95, np.nan, np.nan) if length.n else None


def _describe_sample(dataset: ReadableDataset, lengths: DatasetLengths) -> str:
    total = lengths.examples[lengths.split]
    part = "all" if lengths.size == total else f"{lengths.size:,} of"
    unit = WORDS if len(lengths.tables) == 1 else f"{WORDS} and {list(lengths.tables)[-1]}"
    return f"{dataset.label}: lengths in {unit}, of {part} {total:,} examples of the {lengths.split} split."
