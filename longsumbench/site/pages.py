"""The pages of the site, a dataclass for each kind. The template of a page gets it as `page`; `build` makes them.

Static methods are functions that templates call.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from longsumbench.core import SECTIONS, collect_defaults
from longsumbench.files import write_atomically
from longsumbench.leaderboards.significance import LeaderboardBlock
from longsumbench.runs.record import RunRecord, output_problems, source_seen, split_variant
from longsumbench.site.scatter import SCATTER_HEIGHT, SCATTER_WIDTH, plot_against_cost
from longsumbench.site.shown_tables import SiteTable, axis_ticks
from longsumbench.sweeps.state import (
    PointState,
    Sweep,
    SweepStart,
    describe_point,
    describe_progress,
    describe_sweep,
)
from longsumbench.views.fact_columns import remarks
from longsumbench.views.html import render_page
from longsumbench.views.ledger import cut_shares
from longsumbench.views.tables import Block


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
