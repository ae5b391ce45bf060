"""The screen at the end of `longsumbench run`: the runs just done, their places, what they found, what to do next.

It has at most 25 lines, or 40 with two tables or planted facts. `longsumbench leaderboard` prints the whole table.

Numbers are the percent of the facts that summaries state right, with 95 % intervals. What they decide is what the tests
of the table decide (`judge_differences`). Systems that did not learn are left out.
"""

import math
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longsumbench.formatting import break_command, escape_line, format_count, format_interval
from longsumbench.leaderboards.columns import columns_of
from longsumbench.leaderboards.comparability import describe_difference, heading_of
from longsumbench.leaderboards.notes import (
    LEAD,
    caution,
    describe_equal,
    describe_lengths,
    describe_undecided,
    describe_unlearned,
    warnings_on_outputs,
)
from longsumbench.leaderboards.recall import CHANCE, MOST_SYSTEMS
from longsumbench.leaderboards.seed_groups import ScoresOfRuns, SeedGroup, estimate_share
from longsumbench.leaderboards.significance import UNDISTINGUISHED, ComparableRows
from longsumbench.leaderboards.table import (
    Table,
    describe_block,
    row_cells,
    seeds_column,
    table_block,
)
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import SHORT_ID, RunRecord, run_label
from longsumbench.runs.results import Results
from longsumbench.views.tables import Block, on_one_line, terminal_block, terminal_width

_SINGLE, _RELAYED = "fact_recall_single", "fact_recall_relayed"
_SAME, _OTHER = "fact_recall_silent_same", "fact_recall_silent_other"
_TENTH_MEASURES = [f"{_SINGLE}_position_{tenth}" for tenth in range(10)]
_MOST_LINES = 25
_TABLES_SHOWN = 2  # more datasets have a line each
_LINES_OF_A_SENTENCE = 4
_WARNINGS = 2  # on the outputs of single runs
_SMALL_TABLE, _ROWS_OWN, _REASONS = (
    7,
    2,
    2,
)  # rows of a table that is shown whole; most own rows, and reasons
_NARROWEST, _OTHER_COLUMNS = (
    8,
    58,
)  # columns of the terminal: least width of settings, width of the rest
_RUN_MARK = "→"  # before the row of a run just done
_ROW_GAP = "⋮"  # instead of rows that are not shown
_MEANINGS = {  # of words in the table
    _RUN_MARK: "a run of this command",
    "facts": "planted facts that the summaries state right, in percent",
    "R-Lsum": "ROUGE-Lsum, 0–100",
    "±": "half the 95 % interval (of one seed: over examples only)",
    "words / reference": "mean words of a summary / of its reference",
    "oracle": "copies the sentences nearest to the reference",
}


def describe_facts_found(block: ComparableRows, scores: ScoresOfRuns) -> list[str]:
    """Return sentences on facts by system, by place and by distance; without fact recall, none.

    The best row of each model counts, of at most six models, as in the picture. Rows that did not learn, and rows
    without intervals, are left out.
    """
    systems = _best_rows(block.rows)
    halves, distances = {}, {}
    for system, row in systems.items():
        first_half = _share_of_places(row, _TENTH_MEASURES[:5], scores)
        halves[system] = [first_half, _share_of_places(row, _TENTH_MEASURES[5:], scores)]
        distances[system] = [row.numbers.get(_SAME), row.numbers.get(_OTHER)]
    sentences = [
        _by_system(block, systems, _SINGLE, "Single facts (in one place)"),
        _describe_contrasts(
            "Single facts, in the first half of the source against the second", halves
        ),
        _by_system(
            block, systems, _RELAYED, "Relayed facts (in two places; which bid won is stated)"
        ),
        _describe_contrasts(
            "Silent facts (in two places; which bid won is not stated; a guess of two is right in 50 %), in one "
            "section against several",
            distances,
        ),
    ]
    return [sentence for sentence in sentences if sentence]


def _best_rows(rows: Sequence[SeedGroup]) -> dict[str, SeedGroup]:
    valid = [
        row
        for row in rows
        if row.learned.comparable and not row.first.oracle and _has_interval(row, _SINGLE)
    ]
    models = [row.first.key.model for row in valid]
    best = [row for place, row in enumerate(valid) if row.first.key.model not in models[:place]]
    return {
        row.label if models.count(row.first.key.model) > 1 else row.first.key.model: row
        for row in best[:MOST_SYSTEMS]
    }


def _has_interval(row: SeedGroup, name: str) -> bool:
    return name in row.numbers and not math.isnan(row.numbers[name].low)


def _share_of_places(
    row: SeedGroup, tenths: Sequence[str], scores: ScoresOfRuns
) -> Estimate | None:
    """Return the share of right facts of some tenths of the source; None without per-example scores."""
    means = {}
    for run in row.runs:
        table = scores.get(run.run_id)
        shares = (
            [] if table is None else [np.asarray(table[name]) for name in tenths if name in table]
        )
        if table is not None and shares:
            mean = np.ma.masked_invalid(shares).mean(axis=0)
            means[run.run_id] = table.assign(**{_SINGLE: np.ma.filled(mean, np.nan)})
    return estimate_share(row.runs, _SINGLE, means)


def _by_system(
    block: ComparableRows, systems: Mapping[str, SeedGroup], measure: str, facts: str
) -> str:
    """List what systems state right, the best first, and name those that the table marks as tied with its best row."""
    rows = {name: row for name, row in systems.items() if _has_interval(row, measure)}
    names = sorted(rows, key=lambda name: -rows[name].numbers[measure].mean)
    if not names:
        return ""
    stated = ", ".join(f"{name} {_bounds(rows[name].numbers[measure])}" for name in names)
    chance = next(
        (row.numbers[CHANCE].mean for row in rows.values() if CHANCE in row.numbers), None
    )
    guesses = "" if chance is None else f" (guesses: right in {chance:.0f} %)"
    tied = [name for name in names if (rows[name].key, measure) in block.tests.tied()]
    verdict = f" {UNDISTINGUISHED.capitalize()} from the best: {', '.join(tied)}." if tied else ""
    return f"{facts}, stated right{guesses}: {stated}.{verdict}"


def _describe_contrasts(topic: str, numbers: Mapping[str, Sequence[Estimate | None]]) -> str:
    """List by system what it states right of two groups of facts; systems without an interval of both are left out."""
    stated = []
    for system, pair in numbers.items():
        intervals = [number for number in pair if number is not None and not math.isnan(number.low)]
        if len(intervals) == len(pair):
            stated.append(f"{system} {' against '.join(map(_bounds, intervals))}")
    return f"{topic}: {'; '.join(stated)}." if stated else ""


def _bounds(number: Estimate) -> str:
    return f"{number.mean:.0f} % ({number.low:.0f} to {number.high:.0f})"


@dataclass(frozen=True)
class UpdatedTable:
    """A table that has been rebuilt after runs.

    Attributes:
        curves: files with the scores against the settings that were swept over.
    """

    table: Table
    results: Results
    curves: tuple[Path, ...] = ()


class _LocatedRuns(NamedTuple):
    """The runs just done on a dataset, the block that has most of them, and their rows in it, the best first."""

    updated: UpdatedTable
    runs: Sequence[RunRecord]
    block: ComparableRows
    places: Sequence[int]

    @property
    def table(self) -> Table:
        return self.updated.table

    @property
    def best(self) -> SeedGroup:
        """The best row of the runs just done."""
        return self.block.rows[self.places[0]]


def describe_runs(updated: Sequence[UpdatedTable], runs: Sequence[RunRecord]) -> str:
    """Describe the runs just done: on one or two datasets in detail, on more with a line for each.

    `runs` are without their baselines; points of a sweep that are the same run may be repeated.
    """
    runs = list({run.run_id: run for run in runs}.values())
    datasets = [
        _locate_runs(item, [run for run in runs if run.key.dataset == item.table.dataset])
        for item in updated
    ]
    if len(datasets) <= _TABLES_SHOWN:
        details = ["\n".join(_detailed_lines(located)) for located in datasets]
        return "\n".join(["\n\n".join(details), *_next_commands(datasets[0])])
    lines = [f"{format_count(len(runs), 'run')} on {len(datasets)} datasets. The best of them:"]
    warnings = warnings_on_outputs(runs, _WARNINGS)
    num_shown = _MOST_LINES - 3 - len(warnings)
    lines += map(_describe_best, datasets[:num_shown])
    if len(datasets) > num_shown:
        lines.append(f"… and {format_count(len(datasets) - num_shown, 'more dataset')}.")
    lines += [*warnings, f"Next: {_command('leaderboard', 'DATASET', results=updated[0].results)}"]
    return "\n".join(line for text in lines for line in _wrapped(text, 1))


def _locate_runs(updated: UpdatedTable, runs: Sequence[RunRecord]) -> _LocatedRuns:
    ids, matches = {run.run_id for run in runs}, []
    for block in updated.table.comparable:
        runs_of_rows = [{run.run_id for run in (*row.runs, *row.repeated)} for row in block.rows]
        places = [place for place, row_ids in enumerate(runs_of_rows) if row_ids & ids]
        matches.append(_LocatedRuns(updated, runs, block, places))
    return max(matches, key=lambda located: len(located.places))


def _describe_best(located: _LocatedRuns) -> str:
    row, name = located.best, located.best.first.evaluation.ranked_by
    number = f"{row.numbers[name]:.1f}" if name in row.numbers else ""
    ranked = [entry.key for entry in located.block.rows if entry.ranked]
    place = (
        f"place {ranked.index(row.key) + 1} of {len(ranked)}"
        if row.ranked
        else row.learned.word or "oracle"
    )
    return f"{located.table.dataset}: {row.label}, {heading_of(name)} {number}, {place}"


def _detailed_lines(located: _LocatedRuns) -> Iterator[str]:
    table, block, runs = located.table, located.block, located.runs
    yield from _wrapped(f"{table.heading()}, {describe_block(block, table.comparable)}", 1)
    count = f"{len(runs)} runs, " if len(runs) > 1 else ""
    yield from _wrapped(f"Done: {count}{', '.join(map(run_label, runs))}", 1)
    yield from ("", terminal_block(_nearby_rows(located)), "")
    about_facts = describe_facts_found(block, table.scores)
    sentences = [(sentence, _LINES_OF_A_SENTENCE) for sentence in about_facts]
    if not about_facts or len(runs) == 1:
        sentences.append((_describe_difference(located), 2))
    sentences += [(describe_undecided(block.tests, block.rows), 2), (caution(block.rows), 2)]
    sentences += [(describe_equal(block.rows), 2), (describe_lengths(block.rows), 3)]
    sentences += [
        (describe_unlearned(block.rows), 3),
        *((line, 2) for line in warnings_on_outputs(runs, _WARNINGS)),
    ]
    for sentence, most_lines in (*sentences, (_describe_comparable(table, block), 3)):
        yield from _wrapped(sentence, most_lines)
    folder = located.updated.results.root / "leaderboard"
    yield f"Table: {folder / table.dataset}.md, .csv, .tex"
    pictures = [folder / name for name in table.pictures()]
    pictures += [path for path in located.updated.curves if path.suffix == ".png"]
    if pictures:
        yield f"Picture: {pictures[0]}" + (f" and {len(pictures) - 1} more" if pictures[1:] else "")


def _nearby_rows(located: _LocatedRuns) -> Block:
    rows, places = located.block.rows, located.places
    nearby = {0, *places[:_ROWS_OWN], *range(max(0, places[0] - 1), min(places[0] + 2, len(rows)))}
    if len(rows) <= _SMALL_TABLE:
        nearby = set(range(len(rows)))
    all_columns = columns_of(run for row in rows for run in row.runs)
    names = (
        "system",
        "settings",
        seeds_column(rows),
        rows[0].first.evaluation.ranked_by,
        "length",
        "run",
    )
    columns = [all_columns[name] for name in names]
    cells = row_cells(located.block, columns)
    width = max(_NARROWEST, terminal_width() - _OTHER_COLUMNS)
    lines, previous = [], -1
    for place in sorted(nearby):
        if place > previous + 1:
            lines.append([_ROW_GAP, *[""] * len(columns)])
        number, system, settings, *values = cells[place]
        mark = f"{_RUN_MARK} {number}" if place in places else number
        lines.append(
            [
                mark,
                system,
                settings if len(settings) <= width else f"{settings[: width - 1]}…",
                *values,
            ]
        )
        previous = place
    table = table_block(columns, lines)
    words = " ".join([*map(on_one_line, table.columns), *(cell for line in lines for cell in line)])
    meanings = "; ".join(
        f"{word}: {meaning}" for word, meaning in _MEANINGS.items() if word in words
    )
    return replace(table, footnotes=(f"Legend: {meanings}.",))


def _describe_difference(located: _LocatedRuns) -> str:
    """Describe how far the first row of a trained system is from the best row; if it is the best, how far Lead is."""
    ranked = [row for row in located.block.rows if row.ranked]
    own_rows = [located.block.rows[place] for place in located.places]
    row = next((entry for entry in own_rows if entry.first.trained), own_rows[0])
    if row not in ranked:
        return ""
    below = row
    if row is ranked[0] and ranked[1:]:
        below = max(ranked[1:], key=lambda entry: entry.first.key.model == LEAD)
    name = located.block.rows[0].first.evaluation.ranked_by
    judged = located.block.tests.differences.get((below.key, name))
    if judged is None:
        return ""
    interval = format_interval(judged.low, judged.high)
    subject = f"{below.label}, difference in {heading_of(name)} from the best, {ranked[0].label}"
    return f"{subject}: {judged.mean:+.1f} ({interval}), {judged.outcome}."


def _describe_comparable(table: Table, block: ComparableRows) -> str:
    """Describe how many rows the block has, and why other runs are in other blocks; empty if all rows are shown."""
    if len(block.rows) <= _SMALL_TABLE and len(table.comparable) == 1:
        return ""
    ids = _run_ids(block)
    text = f"Same texts, split, examples and scoring: {format_count(len(block.rows), 'row')}"
    text += f" ({format_count(len(ids), 'run')})."
    reasons: Counter[str] = Counter()
    for other_block in table.comparable:
        if other_block is not block:
            training = "no training here" if other_block.zero_shot else "training here"
            reason = describe_difference(other_block.rows[0].first, block.rows[0].first) or training
            reasons[reason] += len(_run_ids(other_block) - ids)
    if reasons:
        causes = "; ".join(
            f"{count} with {reason}" for reason, count in reasons.most_common(_REASONS)
        )
        text += f" In other blocks: {format_count(reasons.total(), 'run')} ({causes})."
    return text


def _run_ids(block: ComparableRows) -> set[str]:
    return {run.run_id for row in block.rows for run in row.runs}


def _next_commands(located: _LocatedRuns) -> Iterator[str]:
    row, results, ids = located.best, located.updated.results, {run.run_id for run in located.runs}
    run_id = next((run for run in row.runs if run.run_id in ids), row.first).run_id[:SHORT_ID]
    rivals = [entry.key for entry in located.block.rows if entry is not row]
    commands = {_command("leaderboard", located.table.dataset, results=results): "the whole table"}
    if rivals:
        commands[_command("compare", rivals[0][:SHORT_ID], run_id, results=results)] = (
            "do these two differ?"
        )
    commands[_command("inspect", run_id, "0", results=results)] = "what it read and wrote"
    for number, (command, purpose) in enumerate(commands.items()):
        line = f"{'Next:' if number == 0 else '':6}{command}"
        explained = f"{line}  # {purpose}"
        yield (
            explained
            if len(explained) <= terminal_width()
            else break_command(line, terminal_width())
        )


def _command(*words: str, results: Results) -> str:
    root = str(results.root)
    return shlex.join(
        ["longsumbench", *words, *([] if root == "results" else ["--results-dir", root])]
    )


def _wrapped(text: str, lines: int) -> list[str]:
    return textwrap.wrap(
        escape_line(text),
        terminal_width(),
        max_lines=lines,
        placeholder=" …",
        break_on_hyphens=False,
    )
