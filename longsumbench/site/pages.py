"""The pages of the site, a dataclass for each kind. The template of a page gets it as `page`; `build` makes them.

Static methods are functions that templates call. `show_block` says what a dataset's page shows of a table; `drawings.html`
draws its scatter.
"""

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from longsumbench.core import SECTIONS, collect_defaults
from longsumbench.files import write_atomically
from longsumbench.leaderboards.comparability import find_heading, shown_measures
from longsumbench.leaderboards.seed_groups import ResultRow
from longsumbench.leaderboards.significance import LeaderboardBlock
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import RunRecord, output_problems, source_seen, split_variant
from longsumbench.sweeps.state import (
    PointState,
    Sweep,
    SweepStart,
    describe_point,
    describe_progress,
    describe_sweep,
)
from longsumbench.views.columns import remarks
from longsumbench.views.html import render_page
from longsumbench.views.leaderboard import leaderboard_block
from longsumbench.views.ledger import cut_shares
from longsumbench.views.outcomes import describe_leader
from longsumbench.views.tables import Block

_MOST_METRICS = 12
BY_PLACE = ("_position_", "_distance_")  # in names of measures that pictures show together
_COLUMN_KINDS = {  # kind → its columns, besides the scores
    "words": ("length",),
    "cost": ("seconds", "summarize_seconds", "peak_memory_gb", "price"),
    "reading": ("source_seen", "source_copied", "outputs_cut", "repetitive", "length_ratio"),
    "system": ("parameters", "context", "released", "prompt", "steps"),
}
_FEWEST_MARKS = 2


@dataclass(frozen=True)
class SiteRow:
    """A row of a table.

    Attributes:
        difference: of its ranking score from that of the best row, with the half width of the interval; empty if the
            row is not ranked.
        interval: low, mean and high of the difference, and the best row, in percent of the axis; None if the row is
            not ranked.
        best: True if it may be the best.
    """

    group: ResultRow
    cells: Sequence[str]
    difference: str
    interval: tuple[float, ...] | None
    best: bool


@dataclass(frozen=True)
class SiteTable:
    """A block of comparable rows.

    Attributes:
        kinds: for each column, the kind by which readers choose it; empty for one that is always shown.
        score: place of the column with the ranking score.
        lead: the sentence on who is ahead.
    """

    block: Block
    kinds: Sequence[str]
    rows: Sequence[SiteRow]
    ranked_by: str
    score: int
    lead: str


def show_block(comparable: LeaderboardBlock, table: Sequence[LeaderboardBlock]) -> SiteTable:
    """Return a block with all columns that a reader may choose."""
    rows, ranked_by = comparable.rows, comparable.ranked_by
    # A reader switches kinds of columns on and off
    kind_of = dict.fromkeys(shown_measures([row.representative for row in rows]), "scores")
    others: list[str] = []
    for row in rows:
        for name in row.means:
            is_by_place = any(word in name for word in BY_PLACE)
            if not is_by_place and name not in (*kind_of, *others):
                others.append(name)
    kind_of |= dict.fromkeys(others[:_MOST_METRICS], "other metrics")
    for kind, columns_of_kind in _COLUMN_KINDS.items():
        kind_of |= dict.fromkeys(columns_of_kind, kind)
    kind_of |= {ranked_by: "", "run": "runs"}
    block = leaderboard_block(comparable, table, "f", tuple(kind_of))
    best = comparable.top_rows()
    differences = {}
    for row in comparable.ranked:
        differences[row.key] = Estimate(*comparable.compare_with_best(row)[:3])
    bars = _bars(differences)
    texts = {key: f"{number:.1f}".replace("-", "−") for key, number in differences.items()}
    shown_rows = []
    for row, cells in zip(rows, block.rows, strict=True):
        difference, bar = texts.get(row.key, ""), bars.get(row.key)
        shown_rows.append(SiteRow(row, cells, difference, bar, row.key in best))
    kinds = [kind_of.get(name, "") for name in block.names]
    lead = describe_leader(comparable)
    return SiteTable(block, kinds, shown_rows, ranked_by, block.names.index(ranked_by), lead)


def axis_ticks(low: float, high: float, marks: Sequence[float] = ()) -> list[float]:
    """Return where an axis from `low` to `high` has ticks: at `marks` if two lie there, else at round numbers."""
    ticks = [mark for mark in marks if low <= mark <= high]
    if len(ticks) >= _FEWEST_MARKS:
        return ticks
    if not high > low:
        return [low]
    # The first step is too wide; halves of it stay round numbers
    step = 2 * 10.0 ** math.floor(math.log10(high - low))
    while math.floor(high / step) - math.ceil(low / step) < _FEWEST_MARKS:  # fewer than three ticks
        step /= 2
    places = range(math.ceil(low / step), math.floor(high / step) + 1)
    return [round(place * step, 12) for place in places]


def _bars(differences: Mapping[str, Estimate]) -> dict[str, tuple[float, ...]]:
    """Return key of a row → low, mean and high of its difference, and 0, in percent of their common axis."""
    ends = {}
    for key, (mean, low, high) in differences.items():
        ends[key] = (mean, mean, mean, 0.0) if math.isnan(low) else (low, mean, high, 0.0)
    start = min(map(min, ends.values()), default=0.0)
    width = max(map(max, ends.values()), default=0.0) - start or 1
    bars = {}
    for key, values in ends.items():
        bars[key] = tuple(round(100 * (value - start) / width, 1) for value in values)
    return bars


# Sizes in the units of the drawing, which are pixels on a phone
SCATTER_WIDTH, SCATTER_HEIGHT = 360, 220
_MARGIN = 24  # between the outermost points and the ends of the axes
_FEWEST_ROWS = 3
_POWERS = [10.0**power for power in range(-4, 8)]


class ScatterPoint(NamedTuple):
    """A row in the drawing; `place` is its place in the table."""

    row: SiteRow
    place: int
    x: float
    y: float


@dataclass(frozen=True)
class Scatter:
    """A drawing, `SCATTER_WIDTH` wide and `SCATTER_HEIGHT` high.

    Attributes:
        title: what is drawn, and how many rows.
        axis: what the horizontal axis shows; it is logarithmic.
        x_ticks, y_ticks: positions on the axes, and their texts.
    """

    title: str
    axis: str
    points: Sequence[ScatterPoint]
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]


def plot_against_cost(shown: SiteTable) -> Scatter | None:
    """Return the scores of the rows against their price, or else their time; None if few rows have it, or all the same."""
    price = _plot_scatter(
        shown, "price", "US$ for all summaries", lambda run: run.ledger.counts.get("price")
    )
    if price:
        return price
    return _plot_scatter(shown, "time", "seconds to train and summarize", lambda run: run.seconds)


def _plot_scatter(
    shown: SiteTable, name: str, axis: str, cost: Callable[[RunRecord], float | None]
) -> Scatter | None:
    ranked = [row for row in shown.rows if row.interval]
    costs, scores = {}, {}
    for place, row in enumerate(ranked, start=1):
        of_runs = [cost(run) or 0 for run in row.group.runs]
        if min(of_runs) > 0:
            costs[place] = sum(of_runs) / len(of_runs)
            scores[place] = row.group.means[shown.ranked_by].mean
    if len(costs) < max(_FEWEST_ROWS, len(ranked) / 2):
        return None
    left, right = min(costs.values()), max(costs.values())
    if left == right:
        return None
    low, high = min(scores.values()), max(scores.values())
    ends = math.log(left), math.log(right)
    x_of = partial(_position_on_axis, ends=ends, length=SCATTER_WIDTH)
    y_of = partial(_position_on_axis, ends=(high, low), length=SCATTER_HEIGHT)
    points = []
    for place, value in costs.items():
        x, y = x_of(math.log(value)), y_of(scores[place])
        points.append(ScatterPoint(ranked[place - 1], place, x, y))
    x_ticks = [(x_of(math.log(tick)), f"{tick:,.10g}") for tick in axis_ticks(left, right, _POWERS)]
    y_ticks = [(y_of(score), f"{score:.4g}") for score in axis_ticks(low, high)]
    rows = f"{len(costs)} of {len(ranked)} rows"
    title = f"{find_heading(shown.ranked_by)} against {name}, {rows}"
    return Scatter(title, axis, points, x_ticks, y_ticks)


def _position_on_axis(value: float, ends: tuple[float, float], length: float) -> float:
    """Return where a value is, from the start of an axis."""
    share = (value - ends[0]) / ((ends[1] - ends[0]) or 1)
    return _MARGIN + (length - 2 * _MARGIN) * share


def page_name(record: RunRecord) -> str:
    """Return the file name of a run's page."""
    return re.sub(r"[^\w-]", "_", record.run_id) + ".html"


class SiteSection(NamedTuple):
    """Pages of a plug-in.

    Attributes:
        name: the word in the menu.
        path: the page that it links.
        write: writes the pages; it receives the `build.Site`.
    """

    name: str
    path: str
    write: Callable[[Any], None]


@dataclass(frozen=True)
class Links:
    """Which pages the menu links."""

    datasets: Sequence[str] = ()
    sections: Sequence["SiteSection"] = ()
    sweeps: bool = False


@dataclass(frozen=True, kw_only=True)
class SitePage:
    """A page.

    Attributes:
        template: its name in `views/templates`; of another package, "PACKAGE:NAME" in its folder `templates`.
        shown_kinds: kinds of columns that tables show until the reader chooses.
        path: its file in the folder of the site.
    """

    template: ClassVar[str]
    shown_kinds: ClassVar = ("scores", "words", "cost", "runs")
    path: str
    title: str
    links: Links

    page_name = staticmethod(page_name)

    @property
    def base(self) -> str:
        """The way to the folder of the site."""
        return "../" * self.path.count("/")

    def write(self, folder: Path) -> None:
        """Write the page into the folder of the site."""
        text = render_page(self.template, page=self)
        write_atomically(folder / self.path, text)


@dataclass(frozen=True)
class SiteDataset:
    """What the pages show of a dataset.

    Attributes:
        folders: run id → the folder of the run.
        pictures: topic → file name.
        examples: id of a run in the browser of examples → True if its outputs are there; empty without a browser.
        problems: what could not be read.
    """

    name: str
    comparable: Sequence[LeaderboardBlock]
    records: Sequence[RunRecord]
    folders: Mapping[str, Path]
    blocks: Sequence[SiteTable]
    pictures: Mapping[str, str]
    published: Sequence[Block]
    examples: Mapping[str, bool]
    problems: Sequence[str]

    @property
    def silent(self) -> int:
        """Number of runs without their outputs."""
        return sum(not (folder / "predictions.jsonl").is_file() for folder in self.folders.values())

    @property
    def is_real(self) -> bool:
        """True if it has released outputs, or systems that were loaded."""
        return any(run.imported or run.system.checkpoint for run in self.records)


@dataclass(frozen=True, kw_only=True)
class OverviewPage(SitePage):
    """The best systems on each dataset, and systems × datasets."""

    template: ClassVar = "site/overview.html"
    datasets: Sequence[SiteDataset]
    matrix: Sequence[Block]
    problems: Sequence[str]

    @property
    def runs(self) -> list[RunRecord]:
        """The runs on all datasets."""
        return [run for dataset in self.datasets for run in dataset.records]


@dataclass(frozen=True, kw_only=True)
class DatasetPage(SitePage):
    """The tables and pictures of a dataset."""

    template: ClassVar = "site/dataset.html"
    dataset: SiteDataset

    scatter_width: ClassVar = SCATTER_WIDTH
    scatter_height: ClassVar = SCATTER_HEIGHT

    axis_ticks = staticmethod(axis_ticks)
    plot_against_cost = staticmethod(plot_against_cost)


@dataclass(frozen=True, kw_only=True)
class RunPage(DatasetPage):
    """A run: scores, training, ledger, evidence, settings.

    Attributes:
        inspections: addresses of views of its evidence.
        place: words of commands that name the results folder.
        config: the settings of each section.
    """

    template: ClassVar = "site/run.html"
    sections: ClassVar = ("model", *SECTIONS)
    run: RunRecord
    inspections: Sequence[str]
    place: Sequence[str]
    config: Mapping[str, Any] = field(init=False)

    cut_shares = staticmethod(cut_shares)
    join = staticmethod(shlex.join)
    output_problems = staticmethod(output_problems)
    remarks = staticmethod(remarks)
    source_seen = staticmethod(source_seen)
    split_variant = staticmethod(split_variant)

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", asdict(self.run.config))

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.dataset.folders[self.run.run_id]

    def changed_settings(self, section: str) -> set[str]:
        """Return the names of the settings of a section that differ from their default."""
        usual = collect_defaults(SECTIONS[section]) if section in SECTIONS else {}
        changed = {part.partition("=")[0] for part in split_variant(self.run.variant)}
        return changed | {name for name in usual if usual[name] != self.config[section][name]}


@dataclass(frozen=True)
class SiteSweep:
    """A sweep with its start and the states of its points."""

    sweep: Sweep
    start: SweepStart
    states: Sequence[PointState]


@dataclass(frozen=True, kw_only=True)
class SweepsPage(SitePage):
    """All sweeps of the results folder."""

    template: ClassVar = "site/sweeps.html"
    sweeps: Sequence[SiteSweep]

    describe_point = staticmethod(describe_point)
    describe_progress = staticmethod(describe_progress)
    describe_sweep = staticmethod(describe_sweep)
    join = staticmethod(shlex.join)


@dataclass(frozen=True, kw_only=True)
class ExamplesPage(SitePage):
    """The browser of examples of a dataset.

    Attributes:
        num_runs: number of runs on the dataset; the page may have fewer.
        total: number of examples of the split; the page may have fewer.
        index: what the browser knows before it loads a file; JSON.
    """

    template: ClassVar = "site/examples.html"
    dataset: str
    split: str
    num_runs: int
    total: int
    index: Mapping[str, Any]
