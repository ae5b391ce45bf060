"""Draws the statistics of a dataset: distributions of lengths and scores, and the share that systems would read.

Writes them as CSV, Markdown and one self-contained HTML page.

    DatasetStats --dataset_pictures--> heading of a table → its picture

The same numbers give the same bytes with the same release of matplotlib.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench.analysis.dataset import tables
from longsumbench.analysis.dataset.stats import STRUCTURE, DatasetStats, Reading
from longsumbench.metrics.word_metrics import Extractive, NovelNgrams
from longsumbench.render.figures import COLOURS, GREY, plain_axes, transparent_svg, write_pictures
from longsumbench.render.html import render_page
from longsumbench.render.tables import terminal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOUR_OF_SPLIT = {"train": COLOURS[0], "validation": COLOURS[5], "test": COLOURS[1]}
_SEEN = COLOURS[0]
# of cuts, in the order in which their causes appear
_CUT = (*(COLOURS[place] for place in (1, 5, 3, 4, 2)), "#8c6bb1", "#a6761d", "#9a9a9a", "#5a5a5a")
_WIDTH, _PANEL_HEIGHT = 11.0, 2.7  # inches
_BAR_HEIGHT = 0.46  # inches per system
_BINS = 30
_FEW = 25  # range of whole numbers up to which each has its own bar
_SMALLEST_LABELLED = 6.0  # percent; a smaller part of a bar has no room for its number

Values = Mapping[str, NDArray[np.float64]]  # split → numbers


class _Panel(NamedTuple):
    """A histogram: the axis label, the values of each split, and whether they are percentages."""

    name: str
    values: Values
    percent: bool = False

    @property
    def joined(self) -> NDArray[np.float64]:
        """Return the values of all splits."""
        return np.concatenate([np.zeros(0), *self.values.values()])

    @property
    def log(self) -> bool:
        """Whether to use a logarithmic axis: the maximum is far above the median, and no value is 0."""
        every = self.joined
        return bool(not self.percent and len(every) and every.min() > 0 and every.max() > 8 * np.median(every))

    @property
    def few(self) -> bool:
        """Whether the values are few whole numbers: each has its own bar."""
        every = self.joined
        return bool(not self.percent and len(every) and np.ptp(every) < _FEW and (every % 1 == 0).all())


def dataset_pictures(stats: DatasetStats) -> dict[str, tuple[str, bytes]]:
    """Return heading of a table → the caption and the SVG of its picture."""
    share = "Vertical: percent of a split's examples in each bin; the last bin includes all greater values"
    sample, pictures = tables.describe_sample(stats), dict[str, tuple[str, bytes]]()
    targets = {name: values[values > 0] for name, values in _count_values(stats, "target_words").items()}
    panels = [_Panel("source, words", _count_values(stats, "source_words")), _Panel("target, words", targets)]
    pictures["Lengths"] = f"{share}. Numbers in legends are medians.", _histograms(panels)
    panels = [_Panel(f"{name} an example", _count_values(stats, name)) for name in STRUCTURE[:-1]]
    if varied := [panel for panel in panels if len(np.unique(panel.joined)) > 1]:
        pictures["What an example has"] = f"{share}; all examples.", _histograms(varied)
    extractive_panels = _extractive_panels(stats)
    if any(len(panel.joined) for panel in extractive_panels):
        caption = f"{share}; novel n-grams: means, {sample}."
        pictures["What the references keep of the source"] = caption, _histograms(extractive_panels, stats)
        scores = [
            _Panel(f"{name} (0–100)", _sample_values(stats, f"{kind}_f", 100), percent=True)
            for kind, name in tables.ROUGE.items()
        ]
        caption = f"ROUGE F1 of the sentences closest to the references. {share}, {sample}."
        pictures["What the best extract scores"] = caption, _histograms(scores)
    if readings := [reading for reading in stats.readings if reading.num_whole is not None and reading.source.tokens]:
        examples = tables.describe_examples_read(stats, stats.read_split)
        caption = f"{examples}: percent of all tokens. On the right: the share of examples read whole."
        pictures["What each system would see"] = caption, _stacked(readings)
    return pictures


def _count_values(stats: DatasetStats, name: str) -> Values:
    return {split.name: split.counts[name].to_numpy(np.float64) for split in stats.splits}


def _sample_values(stats: DatasetStats, name: str, scale: float = 1.0) -> Values:
    return {split.name: scale * split.sampled[name].dropna().to_numpy(np.float64) for split in stats.splits}


def _extractive_panels(stats: DatasetStats) -> list[_Panel]:
    coverage, density, compression = Extractive.columns
    return [
        _Panel("compression, source words per reference word", _sample_values(stats, compression)),
        _Panel("coverage (%)", _sample_values(stats, coverage, 100), percent=True),
        _Panel("density (words)", _sample_values(stats, density)),
    ]


def _edges(panel: _Panel) -> NDArray[np.float64]:
    every = panel.joined
    if panel.percent or not len(every):
        return np.linspace(0, 100, _BINS + 1)
    low, high = float(every.min()), float(every.max())
    if panel.few:
        return np.arange(low - 0.5, high + 1)
    if panel.log:
        return np.geomspace(low, high, _BINS + 1)
    end = float(np.quantile(every, 0.995))  # the last bin includes greater values
    return np.linspace(low, end if end > low else max(high, low + 1), _BINS + 1)


def _histograms(panels: Sequence[_Panel], novelty: DatasetStats | None = None) -> bytes:
    """Draw a histogram for each panel, at most three per row, and the novel n-grams of `novelty`."""
    count = len(panels) + (novelty is not None)
    columns = 2 if count in (2, 4) else 3
    rows = -(-count // columns)

    def draw(figure: "Figure") -> None:
        plots = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, plot in zip(panels, plots, strict=False):
            _histogram(plot, panel)
        if novelty is not None:
            _novelty(plots[len(panels)], novelty)
        for plot in plots:
            plain_axes(plot)
        for plot in plots[count:]:
            plot.set_axis_off()

    return transparent_svg((_WIDTH, _PANEL_HEIGHT * rows), draw)


def _histogram(plot: "Axes", panel: _Panel) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    edges = _edges(panel)
    for split, values in panel.values.items():
        if len(values):
            shares = 100 * np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / len(values)
            label = f"{split}: {tables.format_number(float(np.median(values)))}"
            plot.stairs(shares, edges, color=_COLOUR_OF_SPLIT.get(split, GREY), linewidth=1.6, label=label)
    if panel.log:
        plot.set_xscale("log")
        plot.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if edges[-1] / edges[0] < 1_000 else (1.0,)))
        plot.xaxis.set_minor_formatter(NullFormatter())
    elif panel.few:
        plot.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    plot.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    plot.set_xlabel(panel.name)
    if plot.get_legend_handles_labels()[0]:
        plot.legend(frameon=False, fontsize=8.5, handlelength=1.2)


def _novelty(plot: "Axes", stats: DatasetStats) -> None:
    """Draw the mean share of novel n-grams, one bar per split and n."""
    width, count = 0.8 / len(stats.splits), len(NovelNgrams.columns)
    for place, split in enumerate(stats.splits):
        means = 100 * split.sampled[list(NovelNgrams.columns)].mean()
        at = np.arange(count) + (place - (len(stats.splits) - 1) / 2) * width
        plot.bar(at, means, 0.9 * width, color=_COLOUR_OF_SPLIT.get(split.name, GREY), label=split.name)
    plot.set_xticks(range(count), [f"{n + 1}-grams" for n in range(count)])
    plot.set_ylim(0, 100)
    plot.set_xlabel("novel n-grams, mean (%)")
    plot.legend(frameon=False, fontsize=8.5, handlelength=1.2)


def _stacked(readings: Sequence[Reading]) -> bytes:
    """Draw one bar per system: the share that it reads, and the share that each setting cuts."""
    causes = dict.fromkeys(cause for reading in readings for cause, *_ in tables.ledger_entries(reading.source)[1:])
    colours = {"seen": _SEEN, **{cause: _CUT[place % len(_CUT)] for place, cause in enumerate(causes)}}

    def draw(figure: "Figure") -> None:
        plot = figure.subplots()
        for name, colour in colours.items():
            plot.bar(0, 0, color=colour, label=name if name == "seen" else f"cut by {name}")
        for place, reading in enumerate(readings):
            _draw_reading_bar(plot, place, reading, colours)
        plot.set_yticks(range(len(readings)), ["\n".join(textwrap.wrap(reading.label, 26)[:2]) for reading in readings])
        plot.set_ylim(len(readings) - 0.45, -0.55)
        plot.set_xlim(0, 100)
        plot.set_xlabel("% of the sources")
        plot.legend(frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0, 1.0), fontsize=9, handlelength=1)
        plain_axes(plot, "x")

    return transparent_svg((_WIDTH, 1.15 + _BAR_HEIGHT * len(readings)), draw)


def _draw_reading_bar(plot: "Axes", place: int, reading: Reading, colours: Mapping[str, str]) -> None:
    start, total = 0.0, reading.source.tokens
    for cause, tokens, _ in tables.ledger_entries(reading.source):
        share = 100 * tokens / total
        plot.barh(place, share, 0.7, left=start, color=colours[cause], edgecolor="white", linewidth=0.8)
        if share >= _SMALLEST_LABELLED:
            plot.text(start + share / 2, place, f"{share:.1f}", ha="center", va="center", color="white", fontsize=9)
        start += share
    seen, whole_share = 100 * reading.source.tokens_seen / total, 100 * (reading.num_whole or 0) / reading.sources
    plot.text(101, place, f"{seen:.1f} % seen, {whole_share:.0f} % whole", va="center", fontsize=9, color=GREY)


@dataclass(frozen=True)
class DatasetReport:
    """The statistics of a dataset with their tables; `stats` has the numbers of each example."""

    stats: DatasetStats

    def render(self) -> str:
        """Return all tables for the terminal."""
        text = terminal(tables.stats_title(self.stats), tables.stats_blocks(self.stats))
        return f"{text}\n\n{self.stats.oracle_signature}"

    def table(self) -> pd.DataFrame:
        """Return one row per number: split, what, name, statistic, value, and the number of examples `n`."""
        return tables.number_rows(self.stats)

    def csv(self) -> str:
        """Return `table` as CSV."""
        return self.table().to_csv(index=False, lineterminator="\n")

    def write(self, folder: Path) -> list[Path]:
        """Write the numbers, the tables as Markdown, and the page; return their paths."""
        files = {"csv": self.csv(), "md": tables.stats_markdown(self.stats), "html": dataset_page(self.stats)}
        return write_pictures(folder, {f"stats.{kind}": content for kind, content in files.items()})


def dataset_page(stats: DatasetStats) -> str:
    """Return the HTML page, with each picture before its table."""
    title, blocks, pictures = tables.stats_title(stats), tables.stats_blocks(stats), dataset_pictures(stats)
    signature = stats.oracle_signature
    return render_page("stats.html", title=title, blocks=blocks, pictures=pictures, signature=signature)
