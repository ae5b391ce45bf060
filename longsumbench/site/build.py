"""`longsumbench site`: static pages of a results folder, which need no server and load nothing from other hosts.

Begin with `write_site`. It writes index.html, sweeps.html, <dataset>/index.html, <dataset>/<run id>.html, and the pages of
plug-ins. Templates of `views/templates/site` decide how a page looks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longsumbench.core.registry import Registry
from longsumbench.errors import BrokenPlugin, DataError
from longsumbench.files import BadFile, check_contained, writable_folder, write_atomically
from longsumbench.leaderboards.matrix import build_matrices
from longsumbench.leaderboards.table import Table, find_datasets, read_table
from longsumbench.runs.results import Results
from longsumbench.site.examples import write_examples
from longsumbench.site.pages import (
    DatasetPage,
    Links,
    OverviewPage,
    RunPage,
    SiteDataset,
    SitePage,
    SiteSection,
    SiteSweep,
    SweepsPage,
    page_name,
    show_block,
)
from longsumbench.sweeps.state import sweeps_in
from longsumbench.views.html import static_text
from longsumbench.views.leaderboard import TableView
from longsumbench.views.matrix import matrix_blocks
from longsumbench.views.published import published_blocks

# Of plug-ins: functions `Site` → `SiteSection`, or None if the results have nothing for it
sections = Registry("page", "longsumbench.pages")


@dataclass
class Site:
    """The site of a results folder; `problems` are lines on what cannot be read."""

    results: Results
    folder: Path
    links: Links
    problems: list[str]

    def public(self, problem: object) -> str:
        """Return a message without the folders of this machine."""
        return str(problem).replace(f"{self.results.root}/", "")

    def report(self, problem: object) -> None:
        """Show on the overview what cannot be read."""
        self.problems.append(self.public(problem))

    def write_page(self, kind: type[SitePage], path: str, title: str, **values: Any) -> None:
        """Write a page; `values` are the attributes of its kind."""
        kind(path=path, title=title, links=self.links, **values).write(self.folder)

    def copy_files(self, pattern: str, folder: str) -> list[str]:
        """Copy files of the results into a folder of the site; return their names, sorted. Links out are left out."""
        names = []
        for path in sorted(self.results.root.glob(pattern)):
            try:
                check_contained(self.results.root, path)
            except BadFile as error:
                self.results.leave_out(DataError(f"{error}", path))
                continue
            write_atomically(self.folder / folder / path.name, path.read_bytes())
            names.append(path.name)
        return names


def write_site(results: Results, folder: Path) -> Path:
    """Write the site of a results folder; return its `index.html`. Raises UsageError if there is nothing to show."""
    names, sweeps = results.datasets(), sweeps_in(results.root)
    site = Site(results, folder, Links(), [])
    plugged: list[SiteSection] = []
    for plugin in sections.targets():
        try:
            section = sections.load(plugin)(site)
        except BrokenPlugin as error:
            site.report(error)
            continue
        if section:
            plugged.append(section)
    # The same message as that of the command for tables
    if not (names or sweeps or plugged):
        find_datasets(results)  # raises
    writable_folder(folder, "--output")
    tables: list[tuple[Results, Table]] = []
    for name in names:
        own_results = replace(
            results, reported=set()
        )  # remembers what cannot be read of this dataset
        try:
            tables.append((own_results, read_table(own_results, name)))
        except DataError as error:
            lines = [*sorted(own_results.reported), error]
            site.problems += [f"{name}: {site.public(line)}" for line in lines]
    shown_names = [table.dataset for _, table in tables]
    # All pages have the menu, so it must be known before the first one is written
    site.links = Links(shown_names, plugged, bool(sweeps))
    for asset in ("site.css", "site.js"):
        write_atomically(folder / "assets" / asset, static_text(asset))
    for section in plugged:
        section.write(site)
    if sweeps:
        _write_sweeps(site)
    datasets = []
    for own_results, table in tables:
        datasets.append(_write_dataset(replace(site, results=own_results), table))
    _write_overview(site, datasets)
    return folder / "index.html"


def _write_sweeps(site: Site) -> None:
    sweeps = []
    for sweep in sweeps_in(site.results.root):
        try:
            sweeps.append(SiteSweep(sweep, sweep.start(), sweep.present_states()))
        except DataError as error:
            site.report(error)
    site.write_page(SweepsPage, "sweeps.html", "Sweeps", sweeps=sweeps)


def _write_overview(site: Site, datasets: Sequence[SiteDataset]) -> None:
    problems = list(site.problems)
    for dataset in datasets:
        problems += [f"{dataset.name}: {line}" for line in dataset.problems]
    datasets = sorted(datasets, key=lambda dataset: (-len(dataset.records), dataset.name))
    tables = {dataset.name: dataset.comparable for dataset in datasets}
    # Without any table there is no matrix, but sweeps and papers are shown
    matrix = matrix_blocks(build_matrices(tables), brief=True) if tables else []
    values = {"datasets": datasets, "matrix": matrix, "problems": problems}
    site.write_page(OverviewPage, "index.html", "Overview", **values)


def _write_dataset(site: Site, table: Table) -> SiteDataset:
    """Write the pages of a dataset and of its runs."""
    name, records, results = table.dataset, table.records(), site.results
    folders = {record.run_id: results.run_folder(record) for record in records}
    blocks = [show_block(block, table.comparable) for block in table.comparable]
    # Of a stem, an SVG replaces a PNG
    files = site.copy_files(f"leaderboard/{name}-*.[ps][nv]g", name)
    pictures = {Path(file).stem.removeprefix(f"{name}-"): file for file in files}
    dataset = SiteDataset(
        name,
        table.comparable,
        records,
        folders,
        blocks,
        pictures,
        published_blocks(name, records),
        write_examples(results, name, records, site.folder, site.links),
        [*map(site.public, sorted(results.reported))],
    )
    write_atomically(site.folder / name / f"{name}.csv", TableView(table).csv())
    site.write_page(DatasetPage, f"{name}/index.html", name, dataset=dataset)
    root = results.root.name if results.root.is_absolute() else str(results.root)
    place = ["--results-dir", root] if root != "results" else []
    for record in records:
        page = page_name(record)
        views = f"inspections/{page.removesuffix('.html')}"
        inspections = [
            f"{views}/{file}" for file in site.copy_files(f"{views}/*.html", f"{name}/{views}")
        ]
        values = {"dataset": dataset, "run": record, "inspections": inspections, "place": place}
        site.write_page(RunPage, f"{name}/{page}", record.label, **values)
    return dataset
