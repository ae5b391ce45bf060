"""The leaderboard of a dataset: a CSV with a row per run, and ranked blocks of comparable runs.

Runs are comparable if the texts, the split, the examples and the signature of the scores agree. Oracles and published
numbers have separate blocks. Planted facts, and the sentences that an oracle selects, also have pictures.
"""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pandas as pd

from longsumbench.formatting import format_count
from longsumbench.leaderboards.blocks import describe_block, leaderboard_block
from longsumbench.leaderboards.comparability import ROUGE_PARTS, heading_of
from longsumbench.leaderboards.csv_rows import runs_frame
from longsumbench.leaderboards.figures.lengths import (
    LengthCurves,
    draw_lengths,
    lengths_csv,
    systems_at_lengths,
    title_of,
)
from longsumbench.leaderboards.figures.recall import FACTS, RECALL_PICTURES, RecallLine, RecallPicture
from longsumbench.leaderboards.published import published_blocks
from longsumbench.leaderboards.significance import ComparableRows
from longsumbench.leaderboards.truncation import ledger_block
from longsumbench.report import tables
from longsumbench.report.figures import draw_figure, plain_axes
from longsumbench.report.palette import system_styles
from longsumbench.report.tables import Block
from longsumbench.runs.record import RunRecord, ranking_score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _ROW, _MARGINS = 8.0, 0.4, 1.2  # inches of a figure: its width, a row's height, title and axis
_LABEL_WIDTH = 40  # characters


@dataclass(frozen=True)
class Table:
    """The table of a dataset.

    Attributes:
        dataset: its name.
        comparable: blocks of comparable rows, that of the whole test split first.
        part: the part of ROUGE that ranks the rows and is shown; the CSV is the same for all parts.
        scores: run id → per-example scores, 0–1, of the runs that have them.
        columns: names of the columns that are shown after system and settings; empty for the default ones.
        block: number of the only block that is shown, from 1; None for all blocks and the published numbers.
    """

    dataset: str
    comparable: tuple[ComparableRows, ...]
    part: str = "f"
    scores: Mapping[str, pd.DataFrame] = field(default_factory=dict, compare=False, repr=False)
    columns: tuple[str, ...] = ()
    block: int | None = None

    def records(self) -> list[RunRecord]:
        """Return all runs, each once: comparable ones together, the best first, oracles last."""
        return list({run.run_id: run for block in self.comparable for run in block.records()}.values())

    def frame(self) -> pd.DataFrame:
        """Return a row per run, as `runs_frame`; the column `block` is the number of the first block that has it."""
        records = self.records()
        blocks = [{run.run_id for run in block.records()} for block in self.comparable]
        numbers = [next(n for n, ids in enumerate(blocks, 1) if run.run_id in ids) for run in records]
        return runs_frame(records).assign(block=numbers)

    def csv(self) -> str:
        """Return `frame` as CSV."""
        return self.frame().to_csv(index=False, lineterminator="\n")

    def render(self) -> str:
        """Return the table for the terminal, with few published numbers; each footnote once."""
        seen: set[str] = set()
        blocks = []
        for block in self.blocks(brief=True):
            blocks.append(replace(block, footnotes=tuple(line for line in block.footnotes if line not in seen)))
            seen.update(block.footnotes)
        return tables.terminal(self.heading(), blocks)

    def markdown(self) -> str:
        """Return the table in Markdown, with the runs' ledgers and links to its pictures."""
        text = tables.markdown(self.heading(), self.blocks(ledger=True))
        for picture in RECALL_PICTURES:
            if self.lines(picture):
                text += f"\n![{self.title(picture)}]({self.dataset}-{picture.name}.png)\n"
        if found := self.at_lengths():
            text += f"\n![{title_of(self.dataset, found)}]({self.dataset}-lengths.png)\n"
        return text

    def figure(self) -> "Figure":
        """Draw the ranking score of each row of the first block with its 95 % interval, best first."""
        rows, number = self.comparable[0].rows, ranking_score(self.comparable[0].rows[0].first)

        def draw(figure: "Figure") -> None:
            figure.set_layout_engine("constrained")
            plot = figure.subplots()
            for place, (row, style) in enumerate(
                zip(rows, system_styles([one.first.model for one in rows]), strict=True)
            ):
                mean, low, high = row.numbers[number]
                plot.plot([low, high], [place, place], color=style["color"], linewidth=2.2)
                plot.plot([mean], [place], **style)
            plot.set_yticks(range(len(rows)), [textwrap.fill(row.label, _LABEL_WIDTH) for row in rows])
            plot.set_ylim(len(rows) - 0.5, -0.5)
            plot.set_xlabel(f"{heading_of(number)}, with 95 % intervals")
            plot.set_title(f"{self.dataset}, {describe_block(self.comparable[0], self.comparable)}", loc="left")
            plain_axes(plot, "x")

        return draw_figure((_WIDTH, _MARGINS + _ROW * len(rows)), draw)

    def ledger(self) -> Block:
        """Return the block of the truncation ledgers of the shown runs."""
        return ledger_block(self.records() if self.block is None else self.comparable[self.block - 1].records())

    def latex(self) -> str:
        """Return the table in LaTeX, for booktabs and siunitx, with few published numbers."""
        return tables.latex(self.heading(), self.blocks(brief=True))

    def heading(self) -> str:
        """Return the table's heading."""
        return self.dataset + (f", ROUGE {ROUGE_PARTS[self.part]}" if self.part != "f" else "")

    def lines(self, picture: RecallPicture = FACTS) -> tuple[RecallLine, ...]:
        """Return the lines of a picture, of the first block that has any; empty if none has."""
        return next((lines for block in self.comparable if (lines := picture.lines(block.rows))), ())

    def at_lengths(self) -> tuple[LengthCurves, ...]:
        """Return the systems that were tested on texts of several lengths, across blocks."""
        return systems_at_lengths(self.records(), self.scores)

    def files(self) -> dict[str, str | bytes | None]:
        """Return the table's files, by name; None for a picture that the runs do not have."""
        found = self.at_lengths()
        drawn = {picture: self.lines(picture) for picture in RECALL_PICTURES}
        return {
            f"{self.dataset}.csv": self.csv(),
            f"{self.dataset}.md": self.markdown(),
            f"{self.dataset}.tex": self.latex(),
            **{
                f"{self.dataset}-{picture.name}.png": picture.draw(self.title(picture), lines) if lines else None
                for picture, lines in drawn.items()
            },
            f"{self.dataset}-lengths.png": draw_lengths(title_of(self.dataset, found), found) if found else None,
            f"{self.dataset}-lengths.csv": lengths_csv(found) if found else None,
        }

    def pictures(self) -> list[str]:
        """Return the file names of the table's pictures."""
        names = [picture.name for picture in RECALL_PICTURES if self.lines(picture)]
        return [f"{self.dataset}-{name}.png" for name in [*names, *(["lengths"] if self.at_lengths() else [])]]

    def title(self, picture: RecallPicture = FACTS) -> str:
        """Return the title of a picture."""
        first = next(block.rows[0].first for block in self.comparable if picture.lines(block.rows))
        of = f"{first.split} split, {format_count(first.n, 'example')}"
        return f"{self.dataset}: {picture.topic} ({of})"

    def blocks(self, brief: bool = False, ledger: bool = False) -> list[Block]:
        """Return the blocks of our runs, then, if no columns and no block were chosen, that of published numbers.

        Args:
            brief: show only the best published row of each of the suite's systems.
            ledger: add the runs' truncation ledgers.
        """
        ours = [leaderboard_block(one, self.comparable, self.part, self.columns) for one in self.comparable]
        if self.block is not None:
            return [ours[self.block - 1]]
        ours += [self.ledger()] if ledger else []
        return ours if self.columns else ours + published_blocks(self.dataset, self.records(), brief, self.part)
