"""Formats the statistics of a dataset as tables: blocks for reading, and one long table of all numbers.

DatasetStats --stats_blocks--> Blocks, for the terminal, Markdown and the page
--number_rows--> one row per number: split, what, name, statistic, value, n
--DatasetReport--> the result of `longsumbench stats`
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from longsumbench.analysis.dataset.stats import STRUCTURE, DatasetStats, SplitStats
from longsumbench.formatting import percent
from longsumbench.metrics.aggregate import (
    GROUP,
    MeasureMean,
    RougeMeans,
    aggregate,
    aggregate_measures,
)
from longsumbench.metrics.word_metrics import Extractive, NovelNgrams
from longsumbench.views.figures import write_pictures
from longsumbench.views.tables import Block, markdown, terminal

_PAGESUM = ("PageSum, Table 1", "BART's BPE, validation split")
_SEAL = ("SEAL, Table 1", "subwords, 1.3 a word; split not said")
_HIERARCHICAL = (
    "Hierarchical Transformer, §4",
    "SentencePiece, 32,000; 525 paragraphs of 70.1 tokens",
)
_ETADS = ("ETADS, §4.1", "sentences: 42.1 in the document, 3.8 in the summary")
# Sizes that papers print are shown below ours, for their tokenizers and splits differ.
TABLES_OF_SIZES = {  # source and table, as in published.csv → source of the rows below
    ("liu2022pagesum", "Table 1"): _PAGESUM[0],
    ("zhao2020seal", "Table 1"): _SEAL[0],
}

SIZE_COLUMNS = (
    "source",
    "counted",
    "examples",
    "source\nmean",
    "source\n95 %",
    "target\nmean",
    "target\n95 %",
)
PUBLISHED_SIZES = {  # dataset → rows, as printed
    "arxiv": (
        (*_PAGESUM, "203K / 6.4K / 6.4K", "8154.3", "–", "197.8", "–"),
        (*_SEAL, "215k", "10k", "24.2k", "460", "754"),
    ),
    "pubmed": (
        (*_PAGESUM, "120K / 6.7K / 6.6K", "3983.6", "–", "261.3", "–"),
        (*_SEAL, "133k", "4.4k", "10.2k", "331", "538"),
    ),
    "gov_report": ((*_PAGESUM, "17.5K / 973 / 974", "10726.1", "–", "681.6", "–"),),
    "multi_news": ((*_PAGESUM, "45.0K / 5.6K / 5.6K", "2526.4", "–", "277.2", "–"),),
    "search2wiki": ((*_SEAL, "4.8M", "37k", "90k", "310", "510"),),
    "wikisum": ((*_HIERARCHICAL, "1,579,360 / 38,144 / 38,205", "–", "–", "139.4", "–"),),
    "cnn_dailymail": ((*_ETADS, "287,226 / 13,368 / 11,490", "–", "–", "–", "–"),),
}

ROUGE = {"rouge1": "R-1", "rouge2": "R-2", "rougeL": "R-L", "rougeLsum": "R-Lsum"}
_NO_VALUE = "–"
_EXTRACTIVE_HEADINGS = {
    "extractive_compression": "compression",
    "extractive_coverage": "coverage\n(%)",
    "extractive_density": "density\n(words)",
    "novel_ngrams_1": "novel\n1 (%)",
    "novel_ngrams_2": "novel\n2 (%)",
    "novel_ngrams_3": "novel\n3 (%)",
    "novel_ngrams_4": "novel\n4 (%)",
}


class _Stat(NamedTuple):
    """A row of the long table; `n` is the number of examples, or of other things, that `value` comes from."""

    split: str
    what: str
    name: str
    statistic: str
    value: float
    n: int


class _LengthSpread(NamedTuple):
    n: int
    mean: float
    median: float
    p95: float
    longest: float


def summarize_lengths(values: "pd.Series[Any]") -> _LengthSpread:
    """Return mean, median, 95th percentile (interpolated linearly) and maximum; NaN without values."""
    values = values.dropna()
    return _LengthSpread(
        n=len(values),
        mean=float(values.mean()),
        median=float(values.median()),
        p95=float(values.quantile(0.95)),
        longest=float(values.max()),
    )


def format_number(value: float) -> str:
    """Format a number: no decimals if it is whole or at least 100, else one."""
    return f"{value:,.0f}" if value >= 100 or value % 1 == 0 else f"{value:.1f}"


def lengths(split: SplitStats) -> dict[str, "pd.Series[Any]"]:
    """Return column → lengths; targets only of examples with a first reference."""
    targets = split.counts["target_words"]
    return {"source_words": split.counts["source_words"], "target_words": targets[targets > 0]}


def kept_measures(split: SplitStats) -> dict[str, MeasureMean]:
    """Return the means of copied fragments and novel n-grams, by measure."""
    columns = [*Extractive.columns, *NovelNgrams.columns, GROUP]
    return aggregate_measures(split.sampled[columns], in_units=Extractive.units)


def oracle_scores(split: SplitStats) -> tuple[int, dict[str, RougeMeans]]:
    """Return the number of scored examples, and type → scores of their best extracts, 0–100."""
    columns = [*(f"{kind}_{statistic}" for kind in ROUGE for statistic in "prf"), GROUP]
    scored = split.sampled[columns].dropna()
    return len(scored), aggregate(scored) if len(scored) else {}


# Begin to read here: the tables in the order of the page.
def stats_blocks(stats: DatasetStats) -> list[Block]:
    """Return all tables."""
    blocks = [_lengths_block(stats)]
    if sizes := PUBLISHED_SIZES.get(stats.dataset):
        blocks.append(Block("Published sizes", (), SIZE_COLUMNS, "lllrrrr", sizes))
    return [*blocks, _structure_block(stats), _extractive_block(stats), _oracle_block(stats)]


def describe_texts(stats: DatasetStats) -> list[str]:
    """Return lines about the texts: fingerprint, source, licence and the rows left out."""
    metadata = stats.metadata
    origins = [f"{name}: {metadata[name]}" for name in ("source", "licence") if metadata.get(name)]
    lines = [f"Texts {stats.fingerprint[:12]}; {'; '.join(origins)}."]
    headings = {"skipped": "Rows that could not be used", "left_out": "Left out on purpose"}
    for name, label in headings.items():
        reasons = []
        for split, counts in (metadata.get(name) or {}).items():
            reasons += [f"{split} {count:,} × {why}" for why, count in counts.items()]
        if reasons:
            lines.append(f"{label}: {', '.join(reasons)}.")
    return lines


def describe_sample(stats: DatasetStats) -> str:
    """Describe the sample of the slow statistics."""
    sizes = [
        f"{len(split.sampled):,} of {len(split.counts):,} {split.name}"
        for split in stats.splits
        if not split.is_whole
    ]
    if not sizes:
        return "of all examples"
    return f"of a sample drawn by seed {stats.seed}: {', '.join(sizes)} examples"


def _lengths_block(stats: DatasetStats) -> Block:
    rows = []
    for split in stats.splits:
        for name, values in lengths(split).items():
            size = summarize_lengths(values)
            cells = [_NO_VALUE] * 4
            if size.n:
                mean, median = f"{size.mean:,.1f}", format_number(size.median)
                cells = [mean, median, f"{size.p95:,.0f}", f"{size.longest:,.0f}"]
            rows.append([split.name, name.replace("_", ", "), f"{size.n:,}", *cells])
    notes = describe_texts(stats)
    notes.append(
        "Words are separated by whitespace; titles, section names and queries are not counted. The target is the"
        " first reference."
    )
    columns = ("split", "text", "examples", "mean", "median", "95 %", "longest")
    return Block("Lengths", tuple(notes), columns, "llrrrrr", rows)


def _structure_block(stats: DatasetStats) -> Block:
    rows = []
    for split in stats.splits:
        means = [f"{split.counts[name].mean():,.1f}" for name in STRUCTURE[:-1]]
        queried = percent(split.counts["queries"].sum(), len(split.counts))
        rows.append([split.name, f"{len(split.counts):,}", *means, f"{queried:.1f}"])
    columns = ("split", "examples", *STRUCTURE[:-1], "with a query (%)")
    notes = (
        "Means per example; sections, paragraphs, sentences and references without text do not count.",
    )
    return Block("What an example has", notes, columns, "l" + "r" * (len(columns) - 1), rows)


def _extractive_block(stats: DatasetStats) -> Block:
    rows = []
    for split in stats.splits:
        measures = kept_measures(split)
        n = max((measure.n for measure in measures.values()), default=0)
        cells = [split.name, f"{n:,}"]
        for name in _EXTRACTIVE_HEADINGS:
            cells.append(f"{measures[name].estimate:,.2f}" if name in measures else _NO_VALUE)
        rows.append(cells)
    notes = (
        "Compression: source words per reference word. Coverage: the share of the reference's words that are in"
        " fragments copied from the source; density: the mean length of a word's fragment (Grusky et al. 2018)."
        " Novel: the share of the reference's n-grams that the source does not have.",
        f"Means ± half the 95 % interval, {describe_sample(stats)}; averaged over an example's references.",
    )
    columns = ("split", "examples", *_EXTRACTIVE_HEADINGS.values())
    return Block("What the references keep of the source", notes, columns, "lrrrrrrrr", rows)


def _oracle_block(stats: DatasetStats) -> Block:
    rows = []
    for split in stats.splits:
        n, scores = oracle_scores(split)
        cells = [f"{scores[kind].f1:.2f}" if kind in scores else _NO_VALUE for kind in ROUGE]
        rows.append([split.name, f"{n:,}", *cells])
    selection = "Sentences selected by a greedy search for the highest ROUGE, as by model=oracle"
    notes = (f"{selection}: F1 (0–100) ± half the 95 % interval, {describe_sample(stats)}.",)
    columns = ("split", "examples", *ROUGE.values())
    return Block("What the best extract scores", notes, columns, "lrrrrr", rows)


def number_rows(stats: DatasetStats) -> pd.DataFrame:
    """Return all numbers, one per row: dataset, split, what, name, statistic, value, n.

    Lengths are in words. Scores, measures and shares are 0–100, or in the measure's unit.
    """
    numbers: list[_Stat] = []
    for split in stats.splits:
        numbers += _list_numbers(split)
    table = pd.DataFrame(numbers, columns=list(_Stat._fields))
    table.insert(0, "dataset", stats.dataset)
    return table


def _list_numbers(split: SplitStats) -> Iterator[_Stat]:
    structure = {name: split.counts[name] for name in STRUCTURE}
    for name, values in (lengths(split) | structure).items():
        group = "structure" if name in structure else "length"
        n, *spread = summarize_lengths(values)
        for statistic, value in zip(("mean", "median", "p95", "max"), spread, strict=True):
            yield _Stat(split.name, group, name, statistic, value, n)
    for name, measure in kept_measures(split).items():
        for statistic, value in zip(("mean", "lo", "hi"), measure.estimate, strict=True):
            yield _Stat(split.name, "kept", name, statistic, value, measure.n)
    n, scores = oracle_scores(split)
    for kind, score in scores.items():
        for statistic, value in asdict(score).items():
            yield _Stat(split.name, "oracle", kind, statistic, value, n)


@dataclass(frozen=True)
class DatasetReport:
    """The statistics of a dataset with their tables; `stats` has the numbers of each example."""

    stats: DatasetStats

    @property
    def title(self) -> str:
        """Heading of the tables."""
        return f"{self.stats.dataset}: dataset statistics"

    def render(self) -> str:
        """Return all tables for the terminal."""
        text = terminal(self.title, stats_blocks(self.stats))
        return f"{text}\n\n{self.stats.oracle_signature}"

    def table(self) -> pd.DataFrame:
        """Return one row per number: split, what, name, statistic, value, and the number of examples `n`."""
        return number_rows(self.stats)

    def csv(self) -> str:
        """Return `table` as CSV."""
        return self.table().to_csv(index=False, lineterminator="\n")

    def write(self, folder: Path) -> list[Path]:
        """Write the numbers and the tables in Markdown; return their paths."""
        text = markdown(self.title, stats_blocks(self.stats))
        files: dict[str, Any] = {
            "stats.csv": self.csv(),
            "stats.md": f"{text}\n`{self.stats.oracle_signature}`\n",
        }
        return write_pictures(folder, files)
