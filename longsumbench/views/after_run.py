"""The screen at the end of `longsumbench run`: the runs just done, their places, and what to do next.

Begin with `describe_runs`. The screen has at most 25 lines, or 40 with two tables. `longsumbench leaderboard` prints the
whole table. What is said of differences is what the tests of the table decide (`judge_differences`).
"""

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from longsumbench.formatting import (
    break_command,
    describe_interval,
    escape_line,
    format_count,
    terminal_width,
)
from longsumbench.leaderboards.comparability import describe_difference, heading_of
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.leaderboards.significance import ComparableRows
from longsumbench.leaderboards.table import Table
from longsumbench.runs.record import SHORT_ID, RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import describe_run
from longsumbench.views.columns import columns_of
from longsumbench.views.leaderboard import (
    TableView,
    describe_block,
    describe_shared_settings,
    row_cells,
    seeds_column,
    table_block,
)
from longsumbench.views.notes import (
    LEAD,
    describe_equal,
    describe_lengths,
    describe_undecided,
    describe_unlearned,
    runs_of,
    warnings_on_outputs,
)
from longsumbench.views.tables import Block, on_one_line, terminal_block

_MOST_LINES = 25
_TABLES_SHOWN = 2  # more datasets have a line each
_WARNINGS = 2  # on the outputs of single runs
_SMALL_TABLE = 7  # rows of a table that is shown whole
_OWN_ROWS = 2  # most rows of the runs just done that are shown
_REASONS = 2  # why runs are in other blocks
_NARROWEST, _OTHER_COLUMNS = 8, 58  # of the terminal: least width of settings, width of the rest
_RUN_MARK = "→"  # before the row of a run just done
_ROW_GAP = "⋮"  # instead of rows that are not shown
_MEANINGS = {  # of words in the table
    _RUN_MARK: "a run of this command",
    "facts": "planted facts that the summaries state right, in percent",
    "R-Lsum": "ROUGE-Lsum, 0–100",
    "±": "half the 95 % interval (of one seed: over examples only)",
    "words / reference": "mean words of a summary / of its reference",
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
class _LocatedRuns:
    """The runs just done on a dataset, the block that has most of them, and their rows in it, the best first."""

    updated: UpdatedTable
    runs: Sequence[RunRecord]
    block: ComparableRows
    places: Sequence[int]

    @property
    def best(self) -> SeedGroup:
        """The best row of the runs just done."""
        return self.block.rows[self.places[0]]


def describe_runs(updated: Sequence[UpdatedTable], runs: Sequence[RunRecord]) -> str:
    """Describe the runs just done: on one or two datasets in detail, on more with a line for each.

    `runs` are without their baselines; points of a sweep that are the same run may be repeated.
    """
    runs = list({run.run_id: run for run in runs}.values())
    datasets = [_locate_runs(table, runs) for table in updated]
    if len(datasets) <= _TABLES_SHOWN:
        details = ["\n".join(_detailed_lines(located)) for located in datasets]
        return "\n".join(["\n\n".join(details), *_next_commands(datasets[0])])
    # Many datasets: a line each, as many as fit the screen
    lines = [f"{format_count(len(runs), 'run')} on {len(datasets)} datasets. The best of them:"]
    warnings = warnings_on_outputs(runs, _WARNINGS)
    num_shown = _MOST_LINES - 3 - len(warnings)
    lines += map(_describe_best, datasets[:num_shown])
    if len(datasets) > num_shown:
        lines.append(f"… and {format_count(len(datasets) - num_shown, 'more dataset')}.")
    lines += [*warnings, f"Next: {_command(updated[0].results, 'leaderboard', 'DATASET')}"]
    return "\n".join(_wrapped((line, 1) for line in lines))


def _locate_runs(updated: UpdatedTable, runs: Sequence[RunRecord]) -> _LocatedRuns:
    own_runs = [run for run in runs if run.key.dataset == updated.table.dataset]
    ids = {run.run_id for run in own_runs}
    # Runs of one command may be in several blocks: describe the one that has most of them
    matches = []
    for block in updated.table.comparable:
        places = []
        for place, row in enumerate(block.rows):
            if any(run.run_id in ids for run in (*row.runs, *row.repeated)):
                places.append(place)
        matches.append(_LocatedRuns(updated, own_runs, block, places))
    return max(matches, key=lambda located: len(located.places))


def _describe_best(located: _LocatedRuns) -> str:
    row, name = located.best, located.best.first.evaluation.ranked_by
    number = f"{row.numbers[name]:.1f}" if name in row.numbers else ""
    place = row.learned.word or "oracle"
    if row.ranked:
        ranked = [entry.key for entry in located.block.rows if entry.ranked]
        place = f"place {ranked.index(row.key) + 1} of {len(ranked)}"
    dataset = located.updated.table.dataset
    return f"{dataset}: {row.label}, {heading_of(name)} {number}, {place}"


def _detailed_lines(located: _LocatedRuns) -> Iterator[str]:
    table, block, runs = located.updated.table, located.block, located.runs
    view = TableView(table)
    count = f"{len(runs)} runs, " if len(runs) > 1 else ""
    heading = f"{view.heading()}, {describe_block(block, table.comparable)}"
    yield from _wrapped([(heading, 1), (f"Done: {count}{', '.join(map(describe_run, runs))}", 1)])
    yield from ("", terminal_block(_nearby_rows(located)), "")
    # Each sentence has so many lines at most
    sentences = [
        (_describe_difference(located), 2),
        (describe_undecided(block.tests, block.rows), 2),
        (describe_equal(block.rows), 2),
        (describe_lengths(block.rows), 3),
        (describe_unlearned(block.rows), 3),
    ]
    sentences += [(line, 2) for line in warnings_on_outputs(runs, _WARNINGS)]
    yield from _wrapped([*sentences, (_describe_comparable(table, block), 3)])
    folder = located.updated.results.root / "leaderboard"
    yield f"Table: {folder / table.dataset}.md, .csv, .tex"
    pictures = [folder / name for name in view.picture_files()]
    pictures += [path for path in located.updated.curves if path.suffix == ".png"]
    if pictures:
        yield f"Picture: {pictures[0]}" + (f" and {len(pictures) - 1} more" if pictures[1:] else "")


def _nearby_rows(located: _LocatedRuns) -> Block:
    """Return the table, or of a large one: the best row, rows of the runs just done, and their neighbours."""
    rows, places = located.block.rows, located.places
    # The best row, rows of this command, and the rows around the best of these
    nearby = {0, *places[:_OWN_ROWS], *range(max(0, places[0] - 1), min(places[0] + 2, len(rows)))}
    if len(rows) <= _SMALL_TABLE:
        nearby = set(range(len(rows)))
    all_columns = columns_of(runs_of(rows))
    ranked_by = rows[0].first.evaluation.ranked_by
    names = ("system", "remarks", seeds_column(rows), ranked_by, "length", "run")
    columns = [all_columns[name] for name in names]
    cells = row_cells(located.block, columns)
    width = max(_NARROWEST, terminal_width() - _OTHER_COLUMNS)
    lines, previous = [], -1
    for place in sorted(nearby):
        if place > previous + 1:
            lines.append([_ROW_GAP, *[""] * len(columns)])
        previous = place
        number, system, settings, *values = cells[place]
        if place in places:
            number = f"{_RUN_MARK} {number}"
        if len(settings) > width:
            settings = f"{settings[: width - 1]}…"
        lines.append([number, system, settings, *values])
    table = table_block(columns, lines)
    words = " ".join(map(on_one_line, table.columns))
    for line in lines:
        words += " ".join(line)
    meanings = [f"{word}: {meaning}" for word, meaning in _MEANINGS.items() if word in words]
    shared = describe_shared_settings(rows)
    return replace(table, footnotes=(shared, f"Legend: {'; '.join(meanings)}."))


def _describe_difference(located: _LocatedRuns) -> str:
    """Describe how far the first row of a trained system is from the best row; if it is the best, how far Lead is."""
    ranked = [row for row in located.block.rows if row.ranked]
    own_rows = [located.block.rows[place] for place in located.places]
    row = next((entry for entry in own_rows if entry.first.trained), own_rows[0])
    if row not in ranked:
        return ""
    # The best row has no difference from itself: compare with Lead instead
    if row is ranked[0] and ranked[1:]:
        row = max(ranked[1:], key=lambda entry: entry.first.key.model == LEAD)
    name = row.first.evaluation.ranked_by
    judged = located.block.tests.differences.get((row.key, name))
    if judged is None:
        return ""
    interval = describe_interval(judged.low, judged.high, judged.confidence)
    subject = f"{row.label}, difference in {heading_of(name)} from the best, {ranked[0].label}"
    return f"{subject}: {judged.mean:+.1f}{interval}, {judged.outcome}."


def _describe_comparable(table: Table, block: ComparableRows) -> str:
    """Describe how many rows the block has, and why other runs are in other blocks; empty if all rows are shown."""
    if len(block.rows) <= _SMALL_TABLE and len(table.comparable) == 1:
        return ""
    ids = _run_ids(block)
    text = f"Same texts, split, examples and scoring: {format_count(len(block.rows), 'row')}"
    text += f" ({format_count(len(ids), 'run')})."
    # Runs that may not be compared are counted with the reason
    reasons: Counter[str] = Counter()
    for other_block in table.comparable:
        if other_block is not block:
            training = "no training here" if other_block.zero_shot else "training here"
            reason = describe_difference(other_block.rows[0].first, block.rows[0].first) or training
            reasons[reason] += len(_run_ids(other_block) - ids)
    if reasons:
        causes = [f"{count} with {reason}" for reason, count in reasons.most_common(_REASONS)]
        total = format_count(reasons.total(), "run")
        text += f" In other blocks: {total} ({'; '.join(causes)})."
    return text


def _run_ids(block: ComparableRows) -> set[str]:
    return {run.run_id for run in runs_of(block.rows)}


def _next_commands(located: _LocatedRuns) -> Iterator[str]:
    row, results = located.best, located.updated.results
    ids = {run.run_id for run in located.runs}
    run_id = next((run for run in row.runs if run.run_id in ids), row.first).run_id[:SHORT_ID]
    rivals = [entry.key[:SHORT_ID] for entry in located.block.rows if entry is not row]
    dataset = located.updated.table.dataset
    commands = {_command(results, "leaderboard", dataset): "the whole table"}
    if rivals:
        commands[_command(results, "compare", rivals[0], run_id)] = "do these two differ?"
    commands[_command(results, "inspect", run_id, "0")] = "what it read and wrote"
    start = "Next: "
    for command, purpose in commands.items():
        line = f"{start}{command}  # {purpose}"
        # A command that is copied must stay whole: it is broken at blanks, with backslashes
        if len(line) > terminal_width():
            line = break_command(f"{start}{command}", terminal_width())
        yield line
        start = " " * len(start)


def _command(results: Results, *words: str) -> str:
    root = str(results.root)
    place = [] if root == "results" else ["--results-dir", root]
    return shlex.join(["longsumbench", *words, *place])


def _wrapped(texts: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Break texts into lines; each has a number of lines at most."""
    for text, most_lines in texts:
        yield from textwrap.wrap(
            escape_line(text),
            terminal_width(),
            max_lines=most_lines,
            placeholder=" …",
            break_on_hyphens=False,
        )
