"""The blocks of a leaderboard: rows of comparable runs, best first, with their scores and costs."""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import groupby

from longsumbench.formatting import format_count, format_duration
from longsumbench.leaderboards.comparability import (
    MEASURE_HEADINGS,
    ROUGE_HEADINGS,
    ROUGE_PARTS,
    describe_difference,
    numbers_shown,
)
from longsumbench.leaderboards.notes import table_notes
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.leaderboards.significance import LEVEL, UNTESTED, AgainstBest, best_rows
from longsumbench.report.tables import TIED, Block, Stressed, Tied
from longsumbench.runs.record import (
    DEFAULT_RANKING_SCORE,
    SHORT_ID,
    RunRecord,
    source_seen,
)

_ROUGE_WITH_MEASURES = (DEFAULT_RANKING_SCORE,)  # the CSV has all types of ROUGE
_WHO, _COST = ("model", "variant", "seed"), ("source\nseen", "steps", "train\ntime", "run")
TABLE_COLUMNS = (*_WHO, *ROUGE_HEADINGS.values(), *_COST)
_VIEW_WIDTHS = (("model", 20), ("variant", 30))
_VIEW_WIDTHS_WITH_MEASURES = (("model", 13), ("variant", 15))


def run_blocks(
    rows: Sequence[SeedGroup], first: RunRecord, tests: AgainstBest = UNTESTED, part: str = "f"
) -> list[Block]:
    """Return the ranking of comparable runs and, if there are any, a block of their oracles.

    Args:
        rows: comparable rows, best first.
        first: a run of the table's first group; the heading describes how this group differs from it.
        tests: of the rows against the best of each column.
        part: the part of ROUGE that the runs' scores have as F, a key of `ROUGE_PARTS`.
    """
    members = [run for row in rows for run in row.runs]
    heading = f"{members[0].split} split, {format_count(members[0].n, 'example')}"
    if unlike := describe_difference(members[0], first):
        heading += f"; not comparable with the first block: {unlike}"
    ranked = [row for row in rows if not row.first.oracle]
    oracles = [row for row in rows if row.first.oracle]
    shown = numbers_shown(members)
    widths = _VIEW_WIDTHS if set(shown) <= set(ROUGE_HEADINGS) else _VIEW_WIDTHS_WITH_MEASURES
    words = any(record.outputs for record in members)
    view = (*_WHO, *shown.values(), *(["words"] if words else []), *_COST)
    align = f"ll{'r' * (len(view) - 3)}l"
    best = {}
    if len(ranked) > 1:
        best = {name: row.numbers[name].mean for name, row in best_rows(ranked, shown).items()}
    notes = (*table_notes(members, part), *describe_tests(tests, rows))
    groups = _groups(shown, part, words)
    cells = [_row(row, shown, best, tests.tied(), words) for row in ranked]
    blocks = [Block(heading, notes, view, align, cells, widths, groups)] if ranked else []
    if oracles:
        heading, notes = ("", ()) if ranked else (heading, notes)  # the ranking already has both
        notes = (*notes, "Oracles: they saw the references, or their lengths, and are not ranked.")
        cells = [_row(row, shown, {}, frozenset(), words) for row in oracles]
        blocks.append(Block(heading, notes, view, align, cells, widths, groups))
    return blocks


def _groups(shown: Iterable[str], part: str, words: bool) -> tuple[tuple[str, int], ...]:
    """Return the headings over groups of columns: planted facts, ROUGE and training."""
    kinds = [
        f"ROUGE {ROUGE_PARTS[part]}"
        if name in ROUGE_HEADINGS
        else "facts stated right"
        if name in MEASURE_HEADINGS
        else ""
        for name in shown
    ]
    numbers = [(heading, len(list(columns))) for heading, columns in groupby(kinds)]
    return (("", len(_WHO)), *numbers, ("", 1 + words), ("training", 2), ("", 1))


def _row(
    row: SeedGroup,
    shown: Iterable[str],
    best: Mapping[str, float],
    tied: Set[tuple[str, str]],
    words: bool,
) -> list[str]:
    record, count = row.first, len(row.runs)
    oracle = record.oracle and record.model != "oracle"
    variant = (", ".join(row.settings), *remarks(record))
    seen = source_seen(record)
    return [
        f"{record.model} (oracle)" if oracle else record.model,
        "; ".join(text for text in variant if text),
        f"{count} seeds" if count > 1 else "" if record.seed is None else str(record.seed),
        *(_cell(row, name, best, tied) for name in shown),
        *([f"{record.outputs.words:.0f}" if record.outputs else ""] if words else []),
        "" if seen is None else f"{seen:.0f} %",
        f"{record.fit.steps:,}" if record.trained else "",
        format_duration(record.fit.seconds) if record.trained else "",
        f"{count} runs" if count > 1 else record.run_id[:SHORT_ID],
    ]


def remarks(record: RunRecord) -> list[str]:
    """Return facts about a run that its variant does not show."""
    averaged = len(record.fit.averaged)
    candidates = {
        "not repeatable": not record.repeatable,
        f"mean of {len(record.checkpoints)} checkpoints": record.checkpoints,
        f"weights of {averaged} checkpoints averaged": averaged,
    }
    return [remark for remark, holds in candidates.items() if holds]


def _cell(row: SeedGroup, name: str, best: Mapping[str, float], tied: Set[tuple[str, str]]) -> str:
    if (number := row.numbers.get(name)) is None:
        return ""
    cell = f"{number:.1f}"
    if number.mean == best.get(name):
        return Stressed(cell)
    return Tied(cell) if (row.key, name) in tied else cell


def describe_tests(tests: AgainstBest, rows: Sequence[SeedGroup]) -> list[str]:
    """Describe the tests, the range of their smallest detectable differences and the untested rows."""
    notes = []
    if tests.p_values:
        used = [f"approximate randomization over examples, {tests.resamples:,} resamples"] if tests.resamples else []
        used += ["t test over examples and seeds"] if tests.over_seeds else []
        corrected = f"Holm's correction for {format_count(len(tests.p_values), 'test')}"
        notes.append(
            f"{TIED}: not distinguishable from the best of its column ({'; '.join(used)}; p ≥ {LEVEL} after "
            f"{corrected}); {_power(list(tests.detectable.values()))}."
        )
    elif tests.untested:
        return ["No row is tested against the best: scores.csv is missing."]
    if tests.untested:
        names = ", ".join(f"{row.first.label}" for row in rows if row.key in tests.untested)
        notes.append(f"Not tested, because their scores.csv or that of the best run is missing: {names}.")
    return notes


def _power(detectable: Sequence[float]) -> str:
    """Describe which differences the tests would have found, and how many tests could not find any."""
    finite = [difference for difference in detectable if math.isfinite(difference)]
    if not finite:
        return "too few examples differ to find any difference"
    blind = len(detectable) - len(finite)
    rest = f"; in {blind} of the tests too few examples differ to find any" if blind else ""
    return f"a difference of {_range(finite)} would have been found 4 times in 5{rest}"


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}, by row and column,"
