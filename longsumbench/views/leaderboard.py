"""The leaderboard of a dataset as text, Markdown, LaTeX, CSV and pictures.

    Results --read_table--> Table --TableView--> blocks, files; `update_table` writes them after every run

Oracles and published numbers have separate blocks. Planted facts also have pictures.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from longsumbench.arguments import public_function
from longsumbench.leaderboards.comparability import (
    ROUGE_STATISTICS,
    SURVIVAL,
    describe_unlike_conditions,
    find_heading,
    shown_measures,
)
from longsumbench.leaderboards.published import Published
from longsumbench.leaderboards.seed_groups import ResultRow, collect_runs
from longsumbench.leaderboards.significance import METHOD, LeaderboardBlock, best_rows
from longsumbench.leaderboards.table import Table, find_datasets, read_table
from longsumbench.runs.record import SHORT_ID
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import describe_shared
from longsumbench.views import tables
from longsumbench.views.column_list import collect_columns, csv_rows
from longsumbench.views.columns import Column, has_system_metadata
from longsumbench.views.figures import draw_figure
from longsumbench.views.footnotes import describe_untrained, footnotes
from longsumbench.views.intervals import IntervalFigure, IntervalPanel, IntervalRow
from longsumbench.views.ledger import ledger_block
from longsumbench.views.published import published_blocks
from longsumbench.views.recall import SURVIVAL_PANELS, recall_figure, recall_lines, survival_figure
from longsumbench.views.series import SeriesFigure, draw_series
from longsumbench.views.tables import Block, Stressed, Tied, csv_text, rounded_frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_WHO = ("system", "remarks")
_COST = ("length", "source_seen", "source_copied", "seconds", "run", "verified")
# Shown if more than its settings is known of any system
_CHECKPOINT_COLUMNS = ("price", "parameters", "context", "released", "prompt", "length_ratio")
# Left out after scores that do not rank
_FIRST_LEFT_OUT = ("seconds", "source_copied", "source_seen", "seeds", "seed", "length")
_PICTURES = ("recall", "survival")
_SURVIVAL_COLUMNS = (f"{SURVIVAL}_wrong", f"{SURVIVAL}_random", f"{SURVIVAL}_ceiling")
_survival_lines = partial(recall_lines, panels=SURVIVAL_PANELS)
_RECALL_PICTURES = (
    ("recall", "planted facts that the summaries state right", recall_lines, recall_figure),
    ("survival", "planted facts that survive, by place and kind", _survival_lines, survival_figure),
)


def leaderboard_block(
    comparable: LeaderboardBlock,
    table: Sequence[LeaderboardBlock],
    statistic: str = "f",
    column_names: Sequence[str] = (),
) -> Block:
    """Return the ranking of comparable systems, followed by their oracles.

    The heading describes how the block differs from the first of the table. `column_names` are the columns after system
    and settings; empty for the default ones.
    """
    rows = comparable.rows
    heading = describe_block(comparable, table)
    if table[1:]:
        number = [block is comparable for block in table].index(True) + 1
        heading = f"block {number}: {heading}"
    if unlike := describe_unlike_conditions(
        rows[0].representative, table[0].rows[0].representative
    ):
        heading += f"; not comparable with the first block: {unlike}"
    columns, optional = _choose_columns(comparable, statistic, column_names)
    names = {column.name for column in columns}
    untrained = describe_untrained(rows)
    shared = [line for line in (describe_shared_settings(rows),) if line]
    return replace(
        table_block(columns, row_cells(comparable, columns)),
        heading=heading,
        notes=(untrained,) if untrained else (),
        optional=tuple(column.heading for column in optional),
        footnotes=(*shared, *footnotes(comparable, names, statistic)),
        private=_describe_texts(comparable, table),
    )


def describe_shared_settings(rows: Sequence[ResultRow]) -> str:
    """Return the line below a table with the settings that the rows of each system share; empty without any."""
    text = describe_shared([row.name for row in rows])
    return f"{text}." if text else ""


def describe_block(comparable: LeaderboardBlock, table: Sequence[LeaderboardBlock]) -> str:
    """Describe what comparable runs have in common: "test split, 183 examples, texts of my_texts".

    Own texts also have their fingerprint if other blocks of the table have other texts.
    """
    run, texts = comparable.rows[0].representative, _describe_texts(comparable, table)
    untrained = ", systems that were not trained here" if comparable.zero_shot else ""
    return f"{run.key.split} split, {run.evaluation.describe_examples()}{texts}{untrained}"


def _describe_texts(comparable: LeaderboardBlock, table: Sequence[LeaderboardBlock]) -> str:
    run, texts = comparable.rows[0].representative, ""
    if path := run.config.dataset.path:
        texts = f", texts of {PurePath(path).name or path}"
        if len({block.rows[0].representative.key.fingerprint for block in table}) > 1:
            texts += f" (fingerprint {run.key.fingerprint[:SHORT_ID]})"
    return texts


def _choose_columns(
    comparable: LeaderboardBlock, statistic: str, column_names: Sequence[str]
) -> tuple[list[Column], list[Column]]:
    """Return the columns of a block, and those that a narrow terminal leaves out, the least important first."""
    rows = comparable.rows
    runs = collect_runs(rows)
    all_columns = collect_columns(runs, statistic)
    # Chosen columns: a narrow terminal leaves out the last ones first
    if column_names:
        names = dict.fromkeys((*_WHO, *column_names))
        columns = [all_columns[name] for name in names if name in all_columns]
        return columns, columns[:1:-1]
    measures = list(shown_measures([row.representative for row in rows]))
    checkpoint = _CHECKPOINT_COLUMNS if any(map(has_system_metadata, runs)) else ()
    survival = [name for name in _SURVIVAL_COLUMNS if name in all_columns]
    scores = (*measures, *survival)
    shown = dict.fromkeys((*_WHO, seeds_column(rows), *scores, *checkpoint, *_COST))
    # The score that ranks is never left out
    unranked = [name for name in reversed(measures) if name != runs[0].evaluation.ranked_by]
    optional = (*unranked, *reversed(survival), *_FIRST_LEFT_OUT, *_CHECKPOINT_COLUMNS)
    left_out_first = [all_columns[name] for name in optional if name in shown]
    return [all_columns[name] for name in shown], left_out_first


def seeds_column(rows: Sequence[ResultRow]) -> str:
    """Return the name of the column of seeds: their number, or the seed itself if each row is a single run."""
    return "seeds" if any(len(row.runs) > 1 for row in rows) else "seed"


def row_cells(comparable: LeaderboardBlock, columns: Sequence[Column]) -> list[list[str]]:
    """Return for each row its place and its cells; oracles and systems that did not learn have no place and marks.

    The best number of a column has no mark if it is of one seed.
    """
    ranked = [row for row in comparable.rows if row.ranked]
    # The best of a column is marked if there is another row to be better than
    tied = comparable.tied()
    best: dict[str, float] = {}
    if len(ranked) > 1:
        names = shown_measures([row.representative for row in comparable.rows])
        for name, row in best_rows(ranked, names).items():
            if not row.one_seed:
                best[name] = row.means[name].mean
    lines = []
    place = 0
    for row in comparable.rows:
        cells = [column.cell(row) for column in columns]
        if not row.ranked:
            lines.append(["", *cells])
            continue
        place += 1
        for number, column in enumerate(columns):
            measured = row.means.get(column.name)
            if measured and measured.mean == best.get(column.name):
                cells[number] = Stressed(cells[number])
            elif (row.key, column.name) in tied:
                cells[number] = Tied(cells[number])
        lines.append([str(place), *cells])
    return lines


def table_block(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> Block:
    """Return a block of the lines of `row_cells`, without empty columns."""
    align = "r" + "".join(column.align for column in columns)
    block = Block(
        "",
        (),
        ("", *(column.heading for column in columns)),
        align,
        cells,
        groups=("", *(column.group for column in columns)),
        names=("", *(column.name for column in columns)),
        tied=f"not distinguishable from the best ({METHOD})",
    )
    return block.without_empty_columns()


class TablePicture(NamedTuple):
    """A picture of a table: the end of its file's name, a title for readers without it, and what is drawn."""

    name: str
    title: str
    figure: SeriesFigure


@dataclass(frozen=True)
class TableView:
    """A table as it is shown.

    Attributes:
        columns: names of the columns that are shown after system and settings; empty for the default ones.
        block: number of the only block that is shown, from 1; None for all blocks and the published numbers.
        chosen: published numbers that are shown instead of those on the dataset.
    """

    table: Table
    columns: tuple[str, ...] = ()
    block: int | None = None
    chosen: Sequence[Published] = ()

    def heading(self) -> str:
        """Return the table's heading."""
        statistic = self.table.statistic
        ranked_by = "" if statistic == "f" else f", ROUGE {ROUGE_STATISTICS[statistic]}"
        return self.table.dataset + ranked_by

    def blocks(self) -> list[Block]:
        """Return the blocks of our runs."""
        table = self.table.comparable
        blocks = [
            leaderboard_block(rows, table, self.table.statistic, self.columns) for rows in table
        ]
        return blocks if self.block is None else [blocks[self.block - 1]]

    def published(self, brief: bool = False) -> list[Block]:
        """Return the block of published numbers; without chosen ones none if columns or a block were chosen.

        A brief one has only the best row of each of the suite's systems.
        """
        if not self.chosen and (self.columns or self.block is not None):
            return []
        table = self.table
        return published_blocks(table.dataset, table.records(), brief, table.statistic, self.chosen)

    def ledger(self) -> Block:
        """Return the block of the truncation ledgers of the shown runs."""
        records = self.table.records()
        if self.block is not None:
            records = self.table.comparable[self.block - 1].records()
        return ledger_block(records, self.table.locate_runs())

    def render(self) -> str:
        """Return the table for the terminal, with few published numbers; each footnote once."""
        # Blocks often have the same notes
        known: set[str] = set()
        blocks = []
        for block in [*self.blocks(), *self.published(brief=True)]:
            lines = [line for line in block.footnotes if line not in known]
            blocks.append(replace(block, footnotes=tuple(lines)))
            known.update(lines)
        return tables.terminal(self.heading(), blocks)

    def markdown(self) -> str:
        """Return the table in Markdown, with the runs' ledgers and links to its pictures."""
        blocks = [*self.blocks(), self.ledger(), *self.published()]
        text = tables.markdown(self.heading(), blocks)
        for picture in self.pictures():
            text += f"\n![{picture.title}]({self.table.dataset}-{picture.name}.png)\n"
        return text

    def latex(self) -> str:
        """Return the table in LaTeX, for booktabs and siunitx, with few published numbers."""
        return tables.latex(self.heading(), [*self.blocks(), *self.published(brief=True)])

    def _csv_rows(self) -> list[dict[str, Any]]:
        rows = csv_rows(self.table.records())
        places = self.table.locate_runs()
        settings: dict[str, None] = {}
        for _, group in places.values():
            settings |= dict.fromkeys(group.name.settings)
        for row in rows:
            number, group = places[row["run_id"]]
            row |= {"block": number, "row": group.label}
            row |= {key: group.name.settings.get(key) for key in settings}
        return rows

    def frame(self) -> "pd.DataFrame":
        """Return a row per run; the column `block` is the number of the first block that has it."""
        return rounded_frame(self._csv_rows())

    def csv(self) -> str:
        """Return the rows of `frame` as CSV."""
        return csv_text(self._csv_rows())

    def pictures(self) -> list[TablePicture]:
        """Return the pictures of the first block that has each of them."""
        pictures = []
        for name, topic, lines_of, make_figure in _RECALL_PICTURES:
            # The first block that has such numbers, usually that of the whole test split
            for block in self.table.comparable:
                if lines := lines_of(block.rows):
                    run = block.rows[0].representative
                    examples = run.evaluation.describe_examples()
                    title = f"{self.table.dataset}: {topic} ({run.key.split} split, {examples})"
                    pictures.append(TablePicture(name, title, make_figure(title, lines)))
                    break
        return pictures

    def picture_files(self) -> list[str]:
        """Return the file names of the table's pictures."""
        return [f"{self.table.dataset}-{picture.name}.png" for picture in self.pictures()]

    def files(self, draw: bool = True) -> dict[str, str | bytes | None]:
        """Return the table's files, by name; None for a picture that the runs do not have. Drawing takes a second."""
        name = self.table.dataset
        contents: dict[str, str | bytes | None] = {
            f"{name}.csv": self.csv(),
            f"{name}.md": self.markdown(),
            f"{name}.tex": self.latex(),
        }
        if draw:
            # None removes a picture whose runs are gone
            contents |= dict.fromkeys(f"{name}-{kind}.png" for kind in _PICTURES)
            for picture in self.pictures():
                contents[f"{name}-{picture.name}.png"] = draw_series(picture.figure)["png"]
        return contents


@public_function
def leaderboard(dataset: str | None = None, results_dir: str | Path = "results") -> "pd.DataFrame":
    """Rebuild the table of a dataset, or of all, from their finished runs, as `longsumbench leaderboard` does.

    Args:
        dataset: its name; None for all datasets.
        results_dir: where the runs are.

    Returns:
        A row for each run, with the columns of `leaderboard/<dataset>.csv`: comparable runs together, the best first.

    Raises:
        UsageError: there is no finished run on the dataset.
        DataError: no record can be read.
    """
    import pandas as pd

    results = Results.at(results_dir)
    frames = []
    for name in find_datasets(results, dataset):
        frames.append(TableView(update_table(results, name)).frame())
    return pd.concat(frames, ignore_index=True).infer_objects()


@public_function
def leaderboard_figure(dataset: str, results_dir: str | Path = "results") -> "Figure":
    """Draw the ranking score of each system on a dataset with its 95 % interval; nothing is written.

    Returns:
        A figure of the first block of the table, best first; 0–100, or in the measure's unit.

    Raises:
        UsageError: there is no finished run on the dataset.
        DataError: no record can be read.
    """
    results = Results.at(results_dir)
    find_datasets(results, dataset)
    table = read_table(results, dataset).comparable
    measure = table[0].rows[0].representative.evaluation.ranked_by
    rows = []
    for row in table[0].rows:
        rows.append(IntervalRow(row.label, row.means[measure], row.representative.key.model))
    title = f"{dataset}, {describe_block(table[0], table)}"
    axis = f"{find_heading(measure)}, with 95 % intervals"
    figure = IntervalFigure(title, [IntervalPanel("", rows)], axis)
    return draw_figure(figure.size, figure.draw)


def update_table(results: Results, dataset: str, redraw: bool = True) -> Table:
    """Rebuild `leaderboard/<dataset>.csv`, `.md`, `.tex` and the pictures from all finished runs on a dataset.

    A lock serializes simultaneous jobs, so the last table has all runs. Pictures are drawn if the CSV has changed, or
    one is missing. Without `redraw`, no file is written if the CSV is the same.

    Raises:
        UsageError: there is no finished run on the dataset.
        DataError: no record can be read; the files stay unchanged.
    """
    find_datasets(results, dataset)
    with results.leaderboard_lock(dataset):
        table = read_table(results, dataset)
        view = TableView(table)
        folder = results.root / "leaderboard"
        csv = folder / f"{dataset}.csv"
        # Pictures depend on the numbers of the CSV alone, and take a second to draw
        is_current = csv.is_file() and csv.read_bytes() == view.csv().encode()
        if redraw or not is_current:
            pictures = [folder / name for name in view.picture_files()]
            draw = not is_current or not all(picture.is_file() for picture in pictures)
            results.write_leaderboard(view.files(draw))
    return table
