"""The tables and numbers of the front page and docs/findings.md about real systems, from results/reference.

It also draws docs/pictures/real-systems.png, the rows of QMSum's table.

    python benchmarks/real_systems_claims.py [--check | --write] [--results-dir DIR]

`benchmarks/real_systems.py` makes the runs.
"""

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from probe_claims import (
    FINDINGS,
    FRONT_PAGES,
    RESULTS,
    ROOT,
    Table,
    differences,
    picture_differences,
    put_tables,
)

from longsumbench.leaderboards.seed_groups import ResultRow, compare_groups
from longsumbench.leaderboards.significance import Outcome, correct_differences
from longsumbench.leaderboards.table import read_table
from longsumbench.metrics.output_stats import OutputStats
from longsumbench.runs.results import Results
from longsumbench.views.column_list import collect_columns
from longsumbench.views.figures import (
    COLOURS,
    GREY,
    TEXT,
    add_title_and_notes,
    plain_axes,
    render_picture,
)
from longsumbench.views.leaderboard import row_cells
from longsumbench.views.tables import Stressed, Tied

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QMSUM, MEETINGS, STORIES = "qmsum", "qmsum_meetings", "squality_human"
COLUMNS = {  # of the findings, with their headings
    "system": "system",
    "rouge1": "R-1",
    "rouge1_p": "precision",
    "rouge1_r": "recall",
    "rouge2": "R-2",
    "rougeLsum": "R-Lsum",
    "lift": "gain by the source",
    "length": "words / reference",
    "repetitive": "repetitive",
}
SHORT = (
    "system",
    "rouge1",
    "rouge1_p",
    "rouge1_r",
    "rougeLsum",
    "length",
)  # front pages
SHORT_ROWS = {
    "Socratic-SegEnc",
    "GPT-5.6-Luna",
    "BART-QMSum",
    "Claude-Opus-5",
    "random",
}
LABELLED = {*SHORT_ROWS, "LED-QMSum"}  # in the picture
PICTURE = "docs/pictures/real-systems.png"
KINDS = {  # of systems → colour and marker
    "trained on QMSum": (COLOURS[0], "o"),
    "language models, zero-shot": (COLOURS[1], "s"),
    "baselines that copy sentences": (GREY, "^"),
}
TICKS = (50, 100, 200, 400)  # words
LABEL_PLACES = {
    "GPT-5.6-Luna": (-20, 15),
    "BART-QMSum": (6, -8),
    "Claude-Opus-5": (7, 5),
}  # from the point, in points


class Rows:
    """The rows of the first block of each dataset."""

    def __init__(self, results: Results) -> None:
        tables = {name: read_table(results, name) for name in (QMSUM, MEETINGS, STORIES)}
        self.blocks = {name: table.comparable[0] for name, table in tables.items()}
        self.scores = {name: table.scores for name, table in tables.items()}

    def row(self, start: str, dataset: str = QMSUM) -> ResultRow:
        """Return the row whose label begins with these words."""
        return next(
            row
            for row in self.blocks[dataset].rows
            if f"{row.label} ".replace(",", "").startswith(f"{start} ")
        )

    def score(self, start: str, dataset: str = QMSUM) -> str:
        """Return the R-Lsum of a row."""
        return f"{self.row(start, dataset).means['rougeLsum'].mean:.1f}"

    def gain(self, start: str) -> str:
        """Return what the outputs of a row gain by their sources in R-2, as share of what Random gains."""
        return f"{self.row(start).learned.lift:.0f} %"

    def floor(self, start: str) -> str:
        """Return the R-Lsum of the outputs of a row as answers to other questions."""
        return f"{self.row(start).learned.floor:.1f}"

    def outputs(self, start: str) -> OutputStats:
        """Return the stats of the outputs of a row."""
        outputs = self.row(start).representative.evaluation.outputs
        assert outputs is not None
        return outputs


def tables_of_qmsum(rows: Rows) -> list[Table]:
    """Return the first block of QMSum, whole and short."""
    block = rows.blocks[QMSUM]
    columns = collect_columns(run for row in block.rows for run in row.runs)
    whole_rows, short_rows = (
        [tuple(map(marked, line)) for line in row_cells(block, [columns[name] for name in names])]
        for names in (COLUMNS, SHORT)
    )
    better_rows = {
        line[1]: line[1:] for line in reversed(short_rows)
    }  # the better one of two rows of a system
    chosen_rows = [
        line[1:]
        for line in short_rows
        if line[1] in SHORT_ROWS and better_rows[line[1]] == line[1:]
    ]
    headings = tuple(COLUMNS[name] for name in SHORT)
    return [
        Table(FINDINGS, ("", *COLUMNS.values()), whole_rows),
        *(Table(page, headings, chosen_rows) for page in FRONT_PAGES),
    ]


def kind_of(row: ResultRow) -> str:
    """Return the kind of a system, a key of KINDS."""
    trained, zero_shot, baseline = KINDS
    if not row.representative.imported:
        return baseline
    return zero_shot if "zero-shot" in row.label else trained


def draw_picture(rows: Rows) -> bytes:
    """Draw R-2 and R-Lsum of each system on QMSum against the length of its outputs; return a PNG."""
    lengths = [
        (row, row.representative.evaluation.outputs)
        for row in rows.blocks[QMSUM].rows
        if not row.representative.oracle
    ]
    systems = [(row, stats.words, stats.reference_words) for row, stats in lengths if stats]
    labelled_rows = {row.key for name in LABELLED for row in [rows.row(name)]}

    def draw(figure: "Figure") -> None:
        notes = (
            "Bars: 95 % intervals over the 281 questions. Hollow: not ranked, it repeats itself.\n"
            "Dashed: the length of the references."
        )
        add_title_and_notes(figure, "Real systems on QMSum: ROUGE against length", notes)
        plots = figure.subplots(1, 2)
        for plot, measure in zip(plots, ("rouge2", "rougeLsum"), strict=True):
            for row, words, _ in systems:
                colour, marker = KINDS[kind_of(row)]
                mean, low, high = row.means[measure]
                face = colour if row.ranked else "white"
                plot.plot(
                    [words, words], [low, high], color=colour, linewidth=1.6, alpha=0.6, zorder=2
                )
                plot.plot(
                    [words],
                    [mean],
                    marker,
                    color=colour,
                    markerfacecolor=face,
                    markersize=6.5,
                    zorder=3,
                )
                if row.key in labelled_rows:
                    style = {
                        "textcoords": "offset points",
                        "fontsize": TEXT - 2.5,
                        "color": colour,
                        "va": "center",
                    }
                    plot.annotate(
                        row.representative.key.model,
                        (words, mean),
                        LABEL_PLACES.get(row.representative.key.model, (7, 1)),
                        **style,
                    )
            plot.axvline(systems[0][-1] or 0.0, color=GREY, linestyle="--", linewidth=1.0, zorder=1)
            plain_axes(plot)
            plot.set_xscale("log")
            plot.set_xlim(40, 750)
            plot.set_xticks(TICKS, [str(tick) for tick in TICKS])
            plot.set_xticks([], minor=True)
            plot.set_ylim(0, None)
            plot.set_xlabel("mean words of an output", fontsize=TEXT)
            plot.set_title(
                f"{COLUMNS[measure]}, 0–100", loc="left", fontsize=TEXT + 1, fontweight="bold"
            )
        for kind, (colour, marker) in KINDS.items():
            plots[0].plot([], [], marker, color=colour, label=kind)
        plots[0].legend(
            loc="upper right", bbox_to_anchor=(1, 0.9), frameon=False, fontsize=TEXT - 2.5
        )

    return render_picture((8.0, 4.6), draw, ("png",))["png"]


def marked(cell: str) -> str:
    """Return a cell as Markdown."""
    text = cell.replace("; imported", "").replace("imported", "")
    return (
        f"**{text}**"
        if isinstance(cell, Stressed)
        else f"{text} ≈"
        if isinstance(cell, Tied)
        else text
    )


def sentences(rows: Rows) -> Iterator[str]:
    """Yield the words with numbers."""
    score, gain, outputs = rows.score, rows.gain, rows.outputs
    opus = rows.row("Claude-Opus-5").representative.evaluation.scores["rouge1"]
    tests = rows.blocks[QMSUM].differences
    smallest = [judged.detectable for (_, name), judged in tests.items() if name == "rougeLsum"]
    yield f"with 80 % power is {min(smallest):.1f} to {max(smallest):.1f}, by row"
    released, port = score("Socratic-SegEnc released"), score("Socratic-SegEnc run")
    yield f"R-Lsum {released} as released, {port} as the repository ran it"
    yield f"`Claude-Opus-5` writes {outputs('Claude-Opus-5').words:.0f} words"
    yield f"its R-1 precision is {opus.p:.1f} and its recall {opus.r:.1f}"
    yield f"In R-Lsum, a test shows {count_shown(rows)} of these 6 differences"
    yield f"an R-Lsum of {score('BART-QMSum')} and {score('Claude-Haiku-4.5')}"
    yield f"other questions they score {rows.floor('BART-QMSum')} and {rows.floor('Claude-Haiku-4.5')}"
    yield f"{gain('BART-QMSum')} and {gain('Claude-Haiku-4.5')} of what Random gains"
    yield f"`GPT-5.6-Luna` gains {gain('GPT-5.6-Luna')}"
    for name in ("LED-QMSum", "PEGASUS-QMSum"):
        yield f"`{name}` in {outputs(name).repetitive} of {outputs(name).count} outputs"
    others = ", ".join(map(score, ("random", "lead", "lexrank")))
    yield f"R-Lsum of {score('ranker')}, Random, Lead and LexRank of {others}"
    for dataset, names in {
        MEETINGS: ("DialogLED", "LED", "Zephyr-7B-alpha", "PEGASUS-X", "random"),
        STORIES: ("human", "bart-dpr", "bart", "lexrank", "ranker"),
    }.items():
        yield from (f"`{name}` {score(name, dataset)}" for name in names)


def count_shown(rows: Rows) -> int:
    """Return how many differences in R-Lsum of the GPT-5.6 from the Claude models are shown, tested together."""
    groups = [
        [row for row in rows.blocks[QMSUM].rows if row.representative.key.model.startswith(family)]
        for family in ("GPT-5.6", "Claude")
    ]
    pairs = {}
    for first, second in product(*groups):
        if pair := compare_groups(first, second, "rougeLsum", rows.scores[QMSUM]):
            pairs[first.key, second.key] = pair
    judged = correct_differences(pairs).values()
    return sum(one.outcome == Outcome.AHEAD and one.mean > 0 for one in judged)


def front_sentences(rows: Rows) -> list[tuple[str, str]]:
    """Return (file, words): which system is first, and what its length does to the F1 of another."""
    block = rows.blocks[QMSUM]
    first = block.rows[0]
    ties = {*block.best_set} - {first.key}
    opus = rows.row("Claude-Opus-5").representative.evaluation.scores["rouge1"]
    words = [
        f"{first.representative.key.model} is first, and {len(ties) or 'no system'} ties with it",
        f"precision is {opus.p:.1f}, its recall {opus.r:.1f}",
    ]
    return [(page, text) for page in FRONT_PAGES for text in words]


def main() -> None:
    """Print the tables and the words, compare them with their files, or put the tables there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results-dir", type=Path, default=RESULTS, help="where the runs are")
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--check", action="store_true", help="name the stated numbers that differ; exit code 1"
    )
    action.add_argument(
        "--write", action="store_true", help="put the tables into their files, and draw the picture"
    )
    options = parser.parse_args()
    rows = Rows(Results(options.results_dir))
    tables, words = tables_of_qmsum(rows), [(FINDINGS, words) for words in sentences(rows)]
    words += front_sentences(rows)
    picture = draw_picture(rows)
    if options.write:
        put_tables(tables)
        (ROOT / PICTURE).write_bytes(picture)
    if options.check or options.write:
        wrong = [*differences(tables, words), *picture_differences(picture, PICTURE)]
        sys.exit("\n".join(wrong) or None)
    print(
        *(line for table in tables for line in table.lines()),
        *(text for _, text in words),
        sep="\n",
    )


if __name__ == "__main__":
    main()
