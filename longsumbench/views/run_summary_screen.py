"""The last screen of `run`, `import`, the first command and `recommend`: an `EndScreen` of 24 lines.

Begin with `describe_runs`. `longsumbench leaderboard` prints the whole table.
"""

import shlex
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from longsumbench.formatting import break_command, describe_work, escape_line, terminal_width
from longsumbench.leaderboards.comparability import describe_unlike_conditions, find_heading
from longsumbench.leaderboards.seed_groups import collect_runs
from longsumbench.leaderboards.significance import LeaderboardBlock
from longsumbench.leaderboards.table import Table
from longsumbench.runs.record import SHORT_ID, RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import describe_run
from longsumbench.views.column_list import collect_columns
from longsumbench.views.footnotes import describe_equal, warnings_on_outputs
from longsumbench.views.leaderboard import (
    TableView,
    describe_block,
    describe_shared_settings,
    row_cells,
    seeds_column,
    table_block,
)
from longsumbench.views.outcomes import (
    describe_leader,
    describe_place,
    describe_undecided,
    describe_unlearned,
)
from longsumbench.views.tables import Block, on_one_line, terminal_block

MOST_LINES = 24
_SENTENCE_LINES = 4  # the most of a sentence
_WARNINGS = 2  # on the outputs of single runs
_SMALL_TABLE = 9  # rows of a table that is shown whole
_OWN_ROWS = 2  # most rows of the runs just done that are shown of a larger one
_LEAST_NAME, _GAP = 8, 2  # characters: of a name, and between columns
_RUN_MARK = "→"  # before the row of a run just done
_ROW_GAP = "⋮"  # instead of rows that are not shown
_MEANINGS = {  # of words in the table
    _RUN_MARK: "a run of this command",
    "facts": "planted facts that the summaries state right, in percent",
    "R-Lsum": "0–100",
    "±": "half the 95 % interval",
    "oracle": "copies the sentences nearest to the reference",
    "highlights": "copies what people highlighted",
    "person": "one of the references, against the others",
}


@dataclass(frozen=True)
class UpdatedTable:
    """A table that has been rebuilt after runs.

    Attributes:
        curves: files with the scores against the settings that were swept over.
    """

    table: Table
    results: Results
    curves: tuple[Path, ...] = ()


@dataclass(frozen=True)
class EndScreen:
    """What a finished command says: a table, sentences, and commands to type next.

    Attributes:
        heading: a line on texts and runs.
        run_ids: of the runs just done, whose rows are marked.
        sentences: the most important first; those for which there is no room are left out.
        commands: command → what it answers.
        files: a line on what was written.
        columns: names of the table's columns; empty for the default ones.
    """

    heading: str
    block: LeaderboardBlock
    run_ids: Collection[str]
    sentences: Sequence[str]
    commands: Mapping[str, str]
    files: str = ""
    columns: Sequence[str] = ()

    def render(self) -> str:
        """Return the text; at 80 columns or more it has at most `MOST_LINES` lines."""
        start = [*_wrap(self.heading, 2), *terminal_block(self._nearby_rows()).splitlines(), ""]
        end = [*_wrap(self.files, 2), *self._command_lines()]
        room = MOST_LINES - len(start) - len(end)
        lines: list[str] = []
        for sentence in self.sentences:
            if room > len(lines):
                lines += _wrap(sentence, min(_SENTENCE_LINES, room - len(lines)))
        return "\n".join([*start, *lines, *end])

    def own_rows(self) -> list[int]:
        """Return the indices of the rows of the runs just done, the best first."""
        indices = []
        for index, row in enumerate(self.block.rows):
            if any(run.run_id in self.run_ids for run in (*row.runs, *row.repeated)):
                indices.append(index)
        return indices

    def _nearby_rows(self) -> Block:
        """Return the table, or of a large one: the best row, rows of the runs just done, and their neighbours."""
        rows, own = self.block.rows, self.own_rows()
        nearby = set(range(len(rows)))
        if len(rows) > _SMALL_TABLE:
            around = range(own[0] - 1, own[0] + 2) if own else range(_SMALL_TABLE)
            nearby &= {0, *own[:_OWN_ROWS], *around}
        default = ("system", "remarks", seeds_column(rows), self.block.ranked_by, "length", "run")
        table = self._build_table(sorted(nearby), self.columns or default)
        names = [line[table.columns.index("system")] for line in table.rows]
        # Names that are cut to the same text tell nothing; the table without remarks has more room for them.
        if len({*filter(None, names)}) < len({*(rows[index].label for index in nearby)}):
            short = [name for name in self.columns or default if name != "remarks"]
            table = self._build_table(sorted(nearby), short)
        words = " ".join(map(on_one_line, table.columns))
        for line in table.rows:
            words += " ".join(line)
        meanings = [f"{word}: {meaning}" for word, meaning in _MEANINGS.items() if word in words]
        notes = (describe_shared_settings(rows), f"{'; '.join(meanings)}.")
        return replace(table, footnotes=tuple(filter(None, notes)))

    def _build_table(self, indices: Sequence[int], names: Sequence[str]) -> Block:
        """Return some rows with some columns, in the width of the terminal."""
        own, all_columns = self.own_rows(), collect_columns(collect_runs(self.block.rows))
        columns = [all_columns[name] for name in names]
        cells = row_cells(self.block, columns)
        lines, previous = [], -1
        for index in indices:
            if index > previous + 1:
                lines.append([_ROW_GAP, *[""] * len(columns)])
            previous = index
            place, *values = cells[index]
            lines.append([f"{_RUN_MARK} {place}" if index in own else place, *values])
        table = replace(table_block(columns, lines), tied="not distinguishable from it")
        return _shorten_names(table)

    def _command_lines(self) -> Iterator[str]:
        start = "Next: "
        for command, purpose in self.commands.items():
            line = f"{start}{command}  # {purpose}"
            # A command that is copied must stay whole: it is broken at blanks, with backslashes
            if len(line) > terminal_width():
                line = break_command(f"{start}{command}", terminal_width())
            yield from line.split("\n")
            start = " " * len(start)


def describe_runs(updated: Sequence[UpdatedTable], runs: Sequence[RunRecord]) -> str:
    """Describe the runs just done: the table of the first dataset, and a line for each of the others.

    `runs` are without their baselines; points of a sweep that are the same run may be repeated.
    """
    runs = list({run.run_id: run for run in runs}.values())
    first, *others = [_build_screen(table, runs) for table in updated]
    further = [describe_best(screen.block, screen.own_rows()[0]) for screen in others]
    further += warnings_on_outputs(runs, _WARNINGS)
    return replace(first, sentences=[*first.sentences[:2], *further, *first.sentences[2:]]).render()


def _build_screen(updated: UpdatedTable, runs: Sequence[RunRecord]) -> EndScreen:
    """Return the screen of one dataset, with the block that has most of its runs."""
    table, view = updated.table, TableView(updated.table)
    own_runs = [run for run in runs if run.key.dataset == table.dataset]
    ids = {run.run_id for run in own_runs}
    screens = [EndScreen("", block, ids, (), {}) for block in table.comparable]
    screen = max(screens, key=lambda entry: len(entry.own_rows()))
    block, row = screen.block, screen.block.rows[screen.own_rows()[0]]
    done = describe_run(own_runs[0]) if len(own_runs) == 1 else f"{len(own_runs)} runs"
    folder = updated.results.root / "leaderboard"
    files = [folder / name for name in view.picture_files()]
    files += [path for path in updated.curves if path.suffix == ".png"]
    pictures = f"; pictures: {', '.join(map(str, files))}" if files else ""
    sentences = [
        describe_leader(block),
        f"{row.label}: {describe_place(block, row)}." if row is not block.rows[0] else "",
        describe_undecided(block),
        describe_unlearned(block.rows),
        describe_equal(block.rows),
        _describe_other_blocks(table, block),
    ]
    run_id = row.key[:SHORT_ID]
    rivals = [entry.key[:SHORT_ID] for entry in block.rows if entry is not row]
    commands = {find_command(updated.results, "leaderboard", table.dataset): "the whole table"}
    if rivals:
        compare = find_command(updated.results, "compare", rivals[0], run_id)
        commands[compare] = "do these two differ?"
    commands[find_command(updated.results, "inspect", run_id, "0")] = "what it read and wrote"
    heading = f"{view.heading()}, {describe_block(block, table.comparable)}. Done: {done}, {_sum_work(own_runs)}"
    text = f"Table: {folder / table.dataset}.md, .csv, .tex{pictures}"
    return replace(screen, heading=heading, sentences=sentences, commands=commands, files=text)


def _sum_work(runs: Sequence[RunRecord]) -> str:
    tokens = sum(run.ledger.source.tokens_seen for run in runs if run.ledger.source)
    seconds = sum(run.costs.timings.total for run in runs)
    return describe_work(sum(run.num_outputs for run in runs), tokens, seconds)


def describe_best(block: LeaderboardBlock, index: int = 0) -> str:
    """Return a line on a dataset: a row, its score and its place."""
    row, measure = block.rows[index], block.ranked_by
    mean = f"{row.means[measure]:.1f}"
    rank = describe_place(block, row)
    return f"{row.representative.key.dataset}: {row.label}, {find_heading(measure)} {mean}, {rank}."


def _shorten_names(table: Block) -> Block:
    """Cut names of rows that are too long for one line."""
    index = table.columns.index("system")
    room = terminal_width() - _GAP  # of marks after cells
    for number, heading in enumerate(table.columns):
        cells = [*heading.split("\n"), *(row[number] for row in table.rows)]
        room -= _GAP + max(map(len, cells)) if number != index else 0
    width = max(_LEAST_NAME, room)

    def shorten(cell: str, number: int) -> str:
        return f"{cell[: width - 1]}…" if number == index and len(cell) > width else cell

    return table.map_cells(shorten)


def _describe_other_blocks(table: Table, block: LeaderboardBlock) -> str:
    """Name what distinguishes the blocks of runs that may not be compared with those of the block."""
    reasons: dict[str, None] = {}
    for other_block in table.comparable:
        if other_block is not block:
            training = "no training here" if other_block.zero_shot else "training here"
            unlike = describe_unlike_conditions(
                other_block.rows[0].representative, block.rows[0].representative
            )
            reasons[unlike or training] = None
    return f"Other runs may not be compared with these: {'; '.join(reasons)}." if reasons else ""


def find_command(results: Results, *words: str) -> str:
    """Return a command on these results, as it is typed."""
    root = str(results.root)
    option = [] if root == "results" else ["--results-dir", root]
    return shlex.join(["longsumbench", *words, *option])


def _wrap(text: str, most_lines: int) -> list[str]:
    """Break a text into at most so many lines."""
    return textwrap.wrap(
        escape_line(text),
        terminal_width(),
        max_lines=most_lines,
        placeholder=" …",
        break_on_hyphens=False,
    )
