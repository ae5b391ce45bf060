"""Writes the statistics of a dataset as CSV, Markdown and one self-contained HTML page."""

import base64
from collections.abc import Iterator
from html import escape
from pathlib import Path

from longsumbench.analysis.dataset.figures import Picture, dataset_pictures
from longsumbench.analysis.dataset.stats import DatasetStats
from longsumbench.analysis.dataset.tables import (
    describe_sample,
    describe_texts,
    format_number,
    stats_blocks,
    stats_csv,
    stats_markdown,
    stats_title,
)
from longsumbench.files import write_atomically
from longsumbench.report.html import html_page, html_table
from longsumbench.report.tables import Block

_NAMES = ("stats.csv", "stats.md", "stats.html")
_STYLE = """
figure img { width: 100%; height: auto; display: block; }
@media (prefers-color-scheme: dark) { figure img { filter: invert(1) hue-rotate(180deg); } }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem 1rem; }
.tile b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; line-height: 1.3; }
.tile span { color: var(--soft); font-size: .85rem; }
"""
# heading of a table → heading of the picture before it
_PICTURE = {
    "Lengths": "Lengths",
    "What an example has": "Structure",
    "What the references keep of the source": "What the references keep",
    "What the best extract scores": "The best extract",
    "What each system would see": "What each system would see",
}


def write_dataset_page(stats: DatasetStats, folder: Path) -> list[Path]:
    """Write the three files; return their paths."""
    paths = [folder / name for name in _NAMES]
    for path, content in zip(paths, (stats_csv(stats), stats_markdown(stats), dataset_page(stats)), strict=True):
        write_atomically(path, content)
    return paths


def dataset_page(stats: DatasetStats) -> str:
    """Return the HTML page, with each picture before its table."""
    drawn = {picture.heading: picture for picture in dataset_pictures(stats)}
    parts = [
        f"<h1>{escape(stats_title(stats))}</h1>",
        *(f'<p class="soft">{escape(line)}</p>' for line in describe_texts(stats)),
    ]
    parts += [_tiles(stats), *_sections(stats, drawn)]
    parts.append(f'<p class="soft">{escape(stats.oracle_signature)}</p>')
    return html_page(stats_title(stats), parts, _STYLE)


def _sections(stats: DatasetStats, drawn: dict[str, Picture]) -> Iterator[str]:
    above = set(describe_texts(stats))
    for block in stats_blocks(stats):
        yield f"<h2>{escape(block.heading)}</h2>"
        yield from (f'<p class="soft">{escape(note)}</p>' for note in block.notes if note not in above)
        if picture := drawn.get(_PICTURE.get(block.heading, "")):
            yield _figure(picture)
        if block.rows:
            yield _table(block)


def _table(block: Block) -> str:
    return html_table([name.replace("\n", " ") for name in block.columns], block.align, block.rows)


def _figure(picture: Picture) -> str:
    caption, content = escape(picture.caption), base64.b64encode(picture.svg).decode("ascii")
    image = f'<img alt="{caption}" src="data:image/svg+xml;base64,{content}">'
    return f"<figure>{image}\n<figcaption>{caption}</figcaption></figure>"


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
