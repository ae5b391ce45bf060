"""Draws the statistics of a dataset: distributions of lengths and scores, and the share that systems would read.

    DatasetStats --dataset_pictures--> Pictures: a heading, a caption and an SVG each

The same numbers give the same bytes with the same release of matplotlib.
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longsumbench.analysis.dataset.readings import Reading
from longsumbench.analysis.dataset.stats import DatasetStats
from longsumbench.analysis.dataset.tables import (
    ROUGE,
    STRUCTURE,
    describe_examples_read,
    describe_sample,
    format_number,
    ledger_entries,
)
from longsumbench.metrics.extractive import Extractive
from longsumbench.metrics.novelty import NovelNgrams
from longsumbench.report.palette import COLOURS, GREY

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


class Picture(NamedTuple):
    """A figure with its heading and caption."""

    heading: str
    caption: str
    svg: bytes


class _Panel(NamedTuple):
    """A histogram: the axis label, the values of each split, and whether the axis is logarithmic."""

    name: str
    values: Values
    log: bool = False


def dataset_pictures(stats: DatasetStats) -> Iterator[Picture]:
    """Yield all pictures of a dataset."""
    share = "Vertical: percent of a split's examples in each bin; the last bin includes all greater values"
    yield Picture("Lengths", f"{share}. Numbers in legends are medians.", _histograms(_lengths(stats)))
    if structure := _structure(stats):
        yield Picture("Structure", f"{share}; all examples.", _histograms(structure))
    kept = _kept(stats)
    if any(len(values) for panel in kept for values in panel.values.values()):
        caption = f"{share}; novel n-grams: means, {describe_sample(stats)}."
        yield Picture("What the references keep", caption, _histograms(kept, lambda plot: _novelty(plot, stats)))
        caption = f"ROUGE F1 of the sentences closest to the references. {share}, {describe_sample(stats)}."
        yield Picture("The best extract", caption, _histograms(_scores(stats)))
    if readings := [reading for reading in stats.readings if reading.whole is not None and reading.source.tokens]:
        examples = describe_examples_read(stats, stats.read_split)
        caption = f"{examples}: percent of all tokens. On the right: the share of examples read whole."
        yield Picture("What each system would see", caption, _stacked(readings))


def _count_values(stats: DatasetStats, name: str) -> Values:
    return {split.name: split.counts[name].to_numpy(np.float64) for split in stats.splits}


def _sample_values(stats: DatasetStats, name: str, scale: float = 1.0) -> Values:
    return {split.name: scale * split.sampled[name].dropna().to_numpy(np.float64) for split in stats.splits}


def _lengths(stats: DatasetStats) -> list[_Panel]:
    targets = {name: values[values > 0] for name, values in _count_values(stats, "target_words").items()}
    panels = [_Panel("source, words", _count_values(stats, "source_words")), _Panel("target, words", targets)]
    return [panel._replace(log=_is_skewed(panel.values)) for panel in panels]


def _structure(stats: DatasetStats) -> list[_Panel]:
    """Return panels of the counts that vary."""
    panels = [_Panel(f"{name} an example", _count_values(stats, name)) for name in STRUCTURE[:-1]]
    varied = [panel for panel in panels if len(np.unique(_joined(panel.values))) > 1]
    return [panel._replace(log=_is_skewed(panel.values)) for panel in varied]


def _kept(stats: DatasetStats) -> list[_Panel]:
    coverage, density, compression = Extractive.columns
    panels = [
        _Panel("compression, source words per reference word", _sample_values(stats, compression)),
        _Panel("coverage (%)", _sample_values(stats, coverage, 100)),
        _Panel("density (words)", _sample_values(stats, density)),
    ]
    return [panel._replace(log=_is_skewed(panel.values) and "%" not in panel.name) for panel in panels]


def _scores(stats: DatasetStats) -> list[_Panel]:
    return [_Panel(f"{name} (0–100)", _sample_values(stats, f"{kind}_f", 100)) for kind, name in ROUGE.items()]


def _joined(values: Values) -> NDArray[np.float64]:
    return np.concatenate([np.zeros(0), *values.values()])


def _is_skewed(values: Values) -> bool:
    """Return whether to use a logarithmic axis: the maximum is far above the median, and no value is 0."""
    every = _joined(values)
    return len(every) > 0 and every.min() > 0 and every.max() > 8 * np.median(every)


def _edges(panel: _Panel) -> NDArray[np.float64]:
    every = _joined(panel.values)
    if not len(every):
        return np.array([0.0, 1.0])
    low, high = float(every.min()), float(every.max())
    whole = bool((every == every.round()).all())
    if "(%)" in panel.name or "(0–100)" in panel.name:
        return np.linspace(0, 100, _BINS + 1)
    if whole and not panel.log and high - low < _FEW:
        return np.arange(low - 0.5, high + 1)
    if panel.log:
        edges = np.geomspace(low, max(high, low * 1.1), _BINS + 1)
        return np.unique(edges.round() - 0.5) if whole and high - low < 4 * _BINS else edges
    end = float(np.quantile(every, 0.995))  # the last bin includes greater values
    return np.linspace(low, end if end > low else max(high, low + 1), _BINS + 1)


def _histograms(panels: Sequence[_Panel], last: "Callable[[Axes], None] | None" = None) -> bytes:
    """Draw a histogram for each panel, at most three per row, and the plot `last`."""
    count = len(panels) + (last is not None)
    columns = 2 if count in (2, 4) else 3
    rows = -(-count // columns)

    def fill(figure: "Figure") -> None:
        plots = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, plot in zip(panels, plots, strict=False):
            _histogram(plot, panel)
        if last is not None:
            last(plots[len(panels)])
        for plot in plots:
            _bare(plot)
        for plot in plots[count:]:
            plot.set_axis_off()

    return _svg((_WIDTH, _PANEL_HEIGHT * rows), fill)


def _histogram(plot: "Axes", panel: _Panel) -> None:
    edges, largest = _edges(panel), max(panel.values, key=lambda split: len(panel.values[split]))
    if panel.log:
        plot.set_xscale("log")
    for split, values in panel.values.items():
        if len(values):
            shares = 100 * np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / len(values)
            colour = _COLOUR_OF_SPLIT.get(split, GREY)
            if split == largest:
                plot.stairs(shares, edges, fill=True, color=colour, alpha=0.15)
            plot.stairs(
                shares, edges, color=colour, linewidth=1.6, label=f"{split}: {format_number(float(np.median(values)))}"
            )
    every = _joined(panel.values)
    _plain_ticks(plot, whole=len(every) > 0 and every.max() - every.min() < _FEW and bool((every % 1 == 0).all()))
    plot.set_xlabel(panel.name)
    if plot.get_legend_handles_labels()[0]:
        plot.legend(frameon=False, fontsize=8.5, handlelength=1.2)


def _plain_ticks(plot: "Axes", whole: bool) -> None:
    """Format the horizontal axis; with `whole`, use integer ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if plot.get_xscale() == "log":
        low, high = plot.get_xlim()
        subs = (1.0, 2.0, 5.0) if high / low < 1_000 else (1.0,)
        plot.xaxis.set_major_locator(LogLocator(subs=subs))
        plot.xaxis.set_minor_formatter(NullFormatter())
    elif whole:
        plot.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    plot.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def _novelty(plot: "Axes", stats: DatasetStats) -> None:
    """Draw the mean share of novel n-grams, one bar per split and n."""
    width = 0.8 / len(stats.splits)
    for place, split in enumerate(stats.splits):
        means = [100 * split.sampled[column].mean() for column in NovelNgrams.columns]
        at = np.arange(len(means)) + (place - (len(stats.splits) - 1) / 2) * width
        plot.bar(at, means, 0.9 * width, color=_COLOUR_OF_SPLIT.get(split.name, GREY), label=split.name)
    plot.set_xticks(range(len(NovelNgrams.columns)), [f"{n + 1}-grams" for n in range(len(NovelNgrams.columns))])
    plot.set_ylim(0, 100)
    plot.set_xlim(-0.6, len(NovelNgrams.columns) - 0.4)
    plot.set_xlabel("novel n-grams, mean (%)")
    plot.legend(frameon=False, fontsize=8.5, handlelength=1.2)


def _stacked(readings: Sequence[Reading]) -> bytes:
    """Draw one bar per system: the share that it reads, and the share that each setting cuts."""
    causes = list(dict.fromkeys(cause for reading in readings for cause, *_ in ledger_entries(reading.source)[1:]))
    colours = {"seen": _SEEN, **{cause: _CUT[place % len(_CUT)] for place, cause in enumerate(causes)}}

    def fill(figure: "Figure") -> None:
        plot = figure.subplots()
        for place, reading in enumerate(readings):
            _bar(plot, place, reading, colours)
        plot.set_yticks(range(len(readings)), [_wrapped(reading.label) for reading in readings])
        plot.set_ylim(len(readings) - 0.45, -0.55)
        plot.set_xlim(0, 100)
        plot.set_xlabel("% of the sources")
        handles = [plot.bar(0, 0, color=colour) for colour in colours.values()]
        names = ["seen", *(f"cut by {cause}" for cause in causes)]
        plot.legend(
            handles,
            names,
            frameon=False,
            ncols=4,
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            fontsize=9,
            handlelength=1,
        )
        _bare(plot)
        plot.grid(visible=False)

    return _svg((_WIDTH, 1.15 + _BAR_HEIGHT * len(readings)), fill)


def _bar(plot: "Axes", place: int, reading: Reading, colours: Mapping[str, str]) -> None:
    left = 0.0
    for cause, tokens, _ in ledger_entries(reading.source):
        share = 100 * tokens / reading.source.tokens
        plot.barh(place, share, 0.7, left=left, color=colours[cause], edgecolor="white", linewidth=0.8)
        if share >= _SMALLEST_LABELLED:
            ink = "black" if _is_light(colours[cause]) else "white"
            plot.text(left + share / 2, place, f"{share:.1f}", ha="center", va="center", color=ink, fontsize=9)
        left += share
    seen, whole = 100 * reading.source.tokens_seen / reading.source.tokens, 100 * (reading.whole or 0) / reading.sources
    plot.text(101, place, f"{seen:.1f} % seen, {whole:.0f} % whole", va="center", fontsize=9, color=GREY)


def _is_light(colour: str) -> bool:
    """Return whether black text is more readable than white text on a colour."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue > 0.55


def _wrapped(text: str, width: int = 26) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, width)[:2])


def _bare(plot: "Axes") -> None:
    plot.grid(axis="y", color="#D0D0D0", linewidth=0.6)
    plot.set_axisbelow(True)
    plot.tick_params(length=0, labelsize=9)
    plot.spines[["top", "right", "left"]].set_visible(False)
    plot.spines["bottom"].set_color("#D0D0D0")


def _svg(size: tuple[float, float], fill: "Callable[[Any], None]") -> bytes:
    import matplotlib as mpl
    import matplotlib.style
    from matplotlib.figure import Figure

    with matplotlib.style.context("default"), mpl.rc_context({"svg.hashsalt": "dataset", "font.size": 10}):
        figure = Figure(size, layout="constrained")
        fill(figure)
        image = io.BytesIO()
        figure.savefig(image, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return image.getvalue()
