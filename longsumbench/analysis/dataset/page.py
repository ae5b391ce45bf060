"""Writes the statistics of a dataset as CSV, Markdown and one self-contained HTML page."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pandas as pd

from longsumbench.analysis.dataset.figures import dataset_pictures
from longsumbench.analysis.dataset.stats import DatasetStats
from longsumbench.analysis.dataset.tables import (
    describe_sample,
    describe_texts,
    format_number,
    number_rows,
    stats_blocks,
    stats_markdown,
    stats_title,
)
from longsumbench.analysis.pages import PAGE_STYLE, html_picture
from longsumbench.report.figures import write_pictures
from longsumbench.report.html import html_page, html_table
from longsumbench.report.tables import ShownInNotebooks, terminal

_STYLE = """
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem 1rem; }
.tile b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; line-height: 1.3; }
.tile span { color: var(--soft); font-size: .85rem; }
"""


@dataclass(frozen=True)
class DatasetReport(ShownInNotebooks):
    """The statistics of a dataset with their tables; `stats` has the numbers of each example."""

    stats: DatasetStats

    def render(self) -> str:
        """Return all tables for the terminal."""
        return f"{terminal(stats_title(self.stats), stats_blocks(self.stats))}\n\n{self.stats.oracle_signature}"

    def table(self) -> pd.DataFrame:
        """Return one row per number: split, what, name, statistic, value, and the number of examples `n`."""
        return number_rows(self.stats)

    def csv(self) -> str:
        """Return `table` as CSV."""
        return self.table().to_csv(index=False, lineterminator="\n")


def write_dataset_page(stats: DatasetStats, folder: Path) -> list[Path]:
    """Write the three files; return their paths."""
    files = {
        "stats.csv": DatasetReport(stats).csv(),
        "stats.md": stats_markdown(stats),
        "stats.html": dataset_page(stats),
    }
    return write_pictures(folder, {**files})


def dataset_page(stats: DatasetStats) -> str:
    """Return the HTML page, with each picture before its table."""
    parts = [
        f"<h1>{escape(stats_title(stats))}</h1>",
        *(f'<p class="soft">{escape(line)}</p>' for line in describe_texts(stats)),
        _tiles(stats),
        *_sections(stats),
        f'<p class="soft">{escape(stats.oracle_signature)}</p>',
    ]
    return html_page(stats_title(stats), parts, PAGE_STYLE + _STYLE)


def _sections(stats: DatasetStats) -> Iterator[str]:
    pictures = dataset_pictures(stats)
    above = set(describe_texts(stats))
    for block in stats_blocks(stats):
        yield f"<h2>{escape(block.heading)}</h2>"
        yield from (f'<p class="soft">{escape(note)}</p>' for note in block.notes if note not in above)
        if picture := pictures.get(block.heading):
            yield html_picture(picture.svg, picture.caption)
        if block.rows:
            yield html_table([name.replace("\n", " ") for name in block.columns], block.align, block.rows)


def _tiles(stats: DatasetStats) -> str:
    """Return the key figures on top of the page."""
    sizes = " / ".join(f"{len(split.counts):,}" for split in stats.splits)
    found = [(sizes, f"examples ({' / '.join(split.name for split in stats.splits)})")]
    largest = max(stats.splits, key=lambda split: len(split.counts))
    for name, what in (("source_words", "source words"), ("target_words", "target words")):
        found.append((format_number(float(largest.counts[name].median())), f"{what}, median of {largest.name}"))
    shared = [overlap for overlap in stats.overlaps or () if (overlap.one, overlap.other) == ("train", "test")]
    found += [(f"{overlap.of_other:,}", "test examples with a near-duplicate in train") for overlap in shared]
    tiles = (f'<div class="tile"><b>{escape(number)}</b><span>{escape(label)}</span></div>' for number, label in found)
    note = f'<p class="soft">Slow statistics are computed {escape(describe_sample(stats))}.</p>'
    return f'<div class="tiles">{"".join(tiles)}</div>{note}'
