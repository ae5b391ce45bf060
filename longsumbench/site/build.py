"""`longsumbench site`: static pages of a results folder, which need no server and load nothing from other hosts.

results --read_table--> tables --render_page--> index.html, papers.html, sweeps.html; <dataset>/index.html and
<dataset>/<run id>.html. Templates of `views/templates/site` decide what a page shows.
"""

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from longsumbench.core import SECTIONS, defaults_of
from longsumbench.errors import DataError
from longsumbench.files import (
    BadFile,
    check_contained,
    read_text,
    writable_folder,
    write_atomically,
)
from longsumbench.formatting import format_duration, format_plain_value
from longsumbench.leaderboards.comparability import heading_of
from longsumbench.leaderboards.matrix import matrix_of_tables
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.leaderboards.table import find_datasets, read_table
from longsumbench.papers.page import OUTCOMES, MadePage, read_written
from longsumbench.papers.paper_tables import find_paper_table, read_paper_tables
from longsumbench.papers.write import page_title, summarize_outcomes
from longsumbench.runs.record import RunRecord, output_problems, source_seen, split_variant
from longsumbench.runs.results import Results
from longsumbench.site.examples import write_examples
from longsumbench.site.shown_tables import (
    BY_PLACE,
    SHOWN_KINDS,
    axis_ticks,
    scores_by_length,
    settings_on_card,
    shown_block,
)
from longsumbench.sweeps.state import (
    ENDED,
    Sweep,
    describe_point,
    describe_progress,
    describe_sweep,
    sweeps_in,
)
from longsumbench.views.columns import remarks
from longsumbench.views.html import render_page, static_text
from longsumbench.views.leaderboard import TableView
from longsumbench.views.ledger import cut_shares
from longsumbench.views.matrix import matrix_blocks
from longsumbench.views.published import published_blocks

_ROWS_AT_ONCE = 300  # of a table; further rows are in a file that the page loads


def page_name(record: RunRecord) -> str:
    """Return the file name of a run's page."""
    return re.sub(r"[^\w-]", "_", record.run_id) + ".html"


def changed_settings(record: RunRecord, section: str) -> set[str]:
    """Return the names of the settings of a section that differ from their default."""
    usual = defaults_of(SECTIONS[section]) if section in SECTIONS else {}
    values = asdict(record.config)[section]
    changed = {name for name, value in usual.items() if values[name] != value}
    return changed | {part.partition("=")[0] for part in split_variant(record.variant)}


_FUNCTIONS: dict[str, Any] = {  # of the templates
    function.__name__: function
    for function in (
        *(
            asdict,
            axis_ticks,
            changed_settings,
            cut_shares,
            describe_point,
            describe_progress,
            describe_sweep,
        ),
        *(
            find_paper_table,
            format_duration,
            format_plain_value,
            heading_of,
            output_problems,
            page_name,
            page_title,
        ),
        summarize_outcomes,
        *(remarks, settings_on_card, source_seen, split_variant, math.exp, math.log, shlex.join),
    )
}
_CONSTANTS: dict[str, Any] = {
    "by_place": BY_PLACE,
    "ended": ENDED,
    "outcomes": OUTCOMES,
    "shown_kinds": SHOWN_KINDS,
}
_CONSTANTS |= {"rows_at_once": _ROWS_AT_ONCE, "sections": ("model", *SECTIONS)}
_Shown = dict[str, Any]  # what the pages of a dataset show; without blocks if no run can be read


@dataclass
class Site:
    """The site of a results folder."""

    results: Results
    folder: Path
    _links: dict[str, Any] = field(default_factory=dict)

    def write(self) -> Path:
        """Write all pages; return `index.html`. Raises UsageError if there is nothing to show."""
        names, sweeps = self.results.datasets(), sweeps_in(self.results.root)
        papers, problems = list[MadePage](), list[str]()
        for name in read_paper_tables():
            try:
                papers += [
                    page for page in [read_written(self.results, name)] if page and page.claims
                ]
            except DataError as error:
                problems.append(self._public(error))
        if not (names or sweeps or papers):
            find_datasets(self.results)  # raises
        writable_folder(self.folder, "--output")
        self._links = {"datasets": names, "papers": bool(papers), "sweeps": bool(sweeps)}
        for asset in ("site.css", "site.js"):
            write_atomically(self.folder / "assets" / asset, static_text(asset))
        dataset_views = [self._write_dataset(name) for name in names]
        if papers:
            self._write_papers(papers)
        if sweeps:
            self._write_sweeps(sweeps, problems)
        self._write_overview(dataset_views, problems)
        return self.folder / "index.html"

    def _public(self, problem: object) -> str:
        return str(problem).replace(f"{self.results.root}/", "")

    def _write_page(self, path: str, title: str, template: str, **values: Any) -> None:
        values |= {
            "title": title,
            "base": "../" * path.count("/"),
            "links": self._links,
            **_FUNCTIONS,
            **_CONSTANTS,
        }
        write_atomically(self.folder / path, render_page(f"site/{template}", **values))

    def _write_sweeps(self, sweeps: Sequence[Sweep], problems: list[str]) -> None:
        shown = []
        for sweep in sweeps:
            try:
                shown.append((sweep, sweep.start(), sweep.present_states()))
            except DataError as error:
                problems.append(self._public(error))
        self._write_page("sweeps.html", "Sweeps", "sweeps.html", sweeps=shown)

    def _write_overview(self, shown: Sequence[_Shown], problems: list[str]) -> None:
        problems += [f"{item['name']}: {line}" for item in shown for line in item["problems"]]
        shown = sorted(
            (item for item in shown if item["blocks"]),
            key=lambda item: (-item["runs"], item["name"]),
        )
        tables = {item["name"]: item["comparable"] for item in shown}
        blocks = matrix_blocks(matrix_of_tables(tables), brief=True) if tables else []
        rows: list[SeedGroup] = []
        for table in tables.values():
            for block in table:
                rows += block.rows
        counts = {"systems": len({row.first.key.model for row in rows})}
        counts["rows"] = len({row.label for row in rows})
        values = {"shown": shown, "matrix": blocks, "problems": problems, "counts": counts}
        self._write_page("index.html", "Overview", "overview.html", **values)

    def _write_dataset(self, name: str) -> _Shown:
        results, folder = replace(self.results, reported=set()), self.folder / name
        shown: _Shown
        try:
            table = read_table(results, name)
        except DataError as error:
            shown = {
                "name": name,
                "blocks": (),
                "problems": [*map(self._public, [*sorted(results.reported), error])],
            }
            self._write_page(f"{name}/index.html", name, "unreadable.html", **shown)
            return shown
        records, comparable = table.records(), table.comparable
        folders = {record.run_id: results.run_folder(record) for record in records}
        shown = {"name": name, "comparable": comparable, "runs": len(records)}
        shown["silent"] = sum(
            not (place / "predictions.jsonl").is_file() for place in folders.values()
        )
        shown["blocks"] = [shown_block(block, comparable) for block in comparable]
        shown["by_length"] = None
        try:
            shown["by_length"] = scores_by_length(shown["blocks"][0], folders)
        except DataError as error:
            results.leave_out(error)
        pictures = self._copy_files(
            f"leaderboard/{name}-*.[ps][nv]g", name
        )  # of a stem, an SVG replaces a PNG
        shown["pictures"] = {path.stem.removeprefix(f"{name}-"): path.name for path in pictures}
        shown["published"] = published_blocks(name, records)
        layout = {"base": "../", "links": self._links}
        shown["examples"] = write_examples(results, name, records, folder, page_name, **layout)
        shown["problems"] = [*map(self._public, sorted(results.reported))]  # of all that was read
        write_atomically(folder / f"{name}.csv", TableView(table).csv())
        for number, block in enumerate(shown["blocks"], 1):
            if block.rows[_ROWS_AT_ONCE:]:
                self._write_page(
                    f"{name}/rows-{number}.js", name, "more_rows.html", number=number, shown=block
                )
        self._write_page(f"{name}/index.html", name, "dataset.html", **shown)
        root = self.results.root.name if self.results.root.is_absolute() else str(self.results.root)
        of_runs = {**shown, "results_dir": ["--results-dir", root] if root != "results" else []}
        for record in records:
            values = {**of_runs, "run": record, "folder": folders[record.run_id]}
            place = f"inspections/{page_name(record).removesuffix('.html')}"
            values["inspections"] = [
                f"{place}/{p.name}" for p in self._copy_files(f"{place}/*.html", f"{name}/{place}")
            ]
            self._write_page(f"{name}/{page_name(record)}", record.label, "run.html", **values)
        return shown

    def _copy_files(self, pattern: str, folder: str) -> list[Path]:
        """Copy files of the results into a folder of the site; return their paths, sorted. Links out are left out."""
        paths = []
        for path in sorted(self.results.root.glob(pattern)):
            try:
                check_contained(self.results.root, path)
            except BadFile as error:
                self.results.leave_out(DataError(f"{error}", path))
                continue
            write_atomically(self.folder / folder / path.name, path.read_bytes())
            paths.append(path)
        return paths

    def _write_papers(self, papers: Sequence[MadePage]) -> None:
        for page in papers:
            for path in self._copy_files(f"papers/{page.name}.html", "assets/papers"):
                text = read_text(path).replace('href="index.html"', 'href="../../papers.html"')
                write_atomically(self.folder / "assets" / "papers" / path.name, text)
        self._write_page("papers.html", "The papers' claims", "papers.html", papers=papers)


def write_site(results: Results, folder: Path) -> Path:
    """Write the site of a results folder, as `Site.write`; return its `index.html`."""
    return Site(results, folder).write()
