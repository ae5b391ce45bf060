"""The blocks of a leaderboard: rows of comparable runs, best first, with their scores and costs."""

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import groupby
from operator import itemgetter

from longsumbench.formatting import format_count, format_duration
from longsumbench.leaderboards.comparability import MEASURE_HEADINGS, ROUGE_HEADINGS, ROUGE_PARTS, describe_difference
from longsumbench.leaderboards.notes import table_notes
from longsumbench.report.tables import Block, Stressed, Tied
from longsumbench.runs.record import (
    DEFAULT_RANKING_SCORE,
    SHORT_ID,
    RunRecord,
    measured_mean,
    ranking_score,
    source_seen,
    split_variant,
)

_ROUGE_WITH_MEASURES = (DEFAULT_RANKING_SCORE,)  # the CSV has all types of ROUGE
_WHO, _COST = ("model", "variant", "seed"), ("source\nseen", "steps", "train\ntime", "run")
TABLE_COLUMNS = (*_WHO, *ROUGE_HEADINGS.values(), *_COST)
_VIEW_WIDTHS = (("model", 20), ("variant", 30))
_VIEW_WIDTHS_WITH_MEASURES = (("model", 13), ("variant", 15))


def run_blocks(
    members: Sequence[RunRecord],
    first: RunRecord,
    tied: Set[tuple[str, str]] = frozenset(),
    tested: str = "",
    part: str = "f",
) -> list[Block]:
    """Return the ranking of comparable runs and, if there are any, a block of their oracles.

    Args:
        members: comparable runs, best first.
        first: a run of the table's first group; the heading describes how this group differs from it.
        tied: (run id, number) pairs that are not distinguishable from the best of their column.
        tested: note on the tests; empty if nothing was tested.
        part: the part of ROUGE that the runs' scores have as F, a key of `ROUGE_PARTS`.
    """
    heading = f"{members[0].split} split, {format_count(members[0].n, 'example')}"
    if unlike := describe_difference(members[0], first):
        heading += f"; not comparable with the first block: {unlike}"
    ranked = [record for record in members if not record.oracle]
    oracles = [record for record in members if record.oracle]
    shown = numbers_shown(members)
    widths = _VIEW_WIDTHS if set(shown) <= set(ROUGE_HEADINGS) else _VIEW_WIDTHS_WITH_MEASURES
    words = any(record.outputs for record in members)
    view = (*_WHO, *shown.values(), *(["words"] if words else []), *_COST)
    align = f"ll{'r' * (len(view) - 3)}l"
    best = {}
    if len(ranked) > 1:
        best = {name: mean for name, (mean, _) in best_runs(ranked, shown).items()}
    notes = (*table_notes(members, part), tested) if tested else table_notes(members, part)
    groups = _groups(shown, part, words)
    rows = [_row(record, shown, best, tied, words) for record in ranked]
    blocks = [Block(heading, notes, view, align, rows, widths, groups)] if ranked else []
    if oracles:
        heading, notes = ("", ()) if ranked else (heading, notes)  # the ranking already has both
        notes = (*notes, "Oracles: they saw the references, or their lengths, and are not ranked.")
        rows = [_row(record, shown, {}, frozenset(), words) for record in oracles]
        blocks.append(Block(heading, notes, view, align, rows, widths, groups))
    return blocks


def best_runs(ranked: Sequence[RunRecord], shown: Iterable[str]) -> dict[str, tuple[float, RunRecord]]:
    """Return the highest mean of each measured number and the first run that has it."""
    best = {}
    for name in shown:
        if found := [(number.mean, record) for record in ranked if (number := measured_mean(record, name))]:
            best[name] = max(found, key=itemgetter(0))
    return best


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


def numbers_shown(members: Sequence[RunRecord]) -> dict[str, str]:
    """Return the numbers that a block shows (name → heading), measures before ROUGE.

    Only the CSV has metrics that were requested in addition to the dataset's own.
    """
    first = ranking_score(members[0])
    if first in ROUGE_HEADINGS:
        return ROUGE_HEADINGS
    measured = {name for record in members for name in record.measures}
    shown = {name: heading for name, heading in MEASURE_HEADINGS.items() if name in measured}
    return {**(shown or {first: first}), **{kind: ROUGE_HEADINGS[kind] for kind in _ROUGE_WITH_MEASURES}}


def _row(
    record: RunRecord,
    shown: Iterable[str],
    best: Mapping[str, float],
    tied: Set[tuple[str, str]],
    words: bool,
) -> list[str]:
    oracle = record.oracle and record.model != "oracle"
    variant = (", ".join(split_variant(record.variant)), *remarks(record))
    seen = source_seen(record)
    return [
        f"{record.model} (oracle)" if oracle else record.model,
        "; ".join(text for text in variant if text),
        "" if record.seed is None else str(record.seed),
        *(_cell(record, name, best, tied) for name in shown),
        *([f"{record.outputs.words:.0f}" if record.outputs else ""] if words else []),
        "" if seen is None else f"{seen:.0f} %",
        f"{record.fit.steps:,}" if record.trained else "",
        format_duration(record.fit.seconds) if record.trained else "",
        record.run_id[:SHORT_ID],
    ]


def remarks(record: RunRecord) -> list[str]:
    """Return facts about a run that its variant does not show."""
    averaged = len(record.fit.averaged)
    candidates = {
        "imported": record.imported,
        "not repeatable": not record.repeatable,
        f"mean of {len(record.checkpoints)} checkpoints": record.checkpoints,
        f"weights of {averaged} checkpoints averaged": averaged,
    }
    return [remark for remark, holds in candidates.items() if holds]


def _cell(record: RunRecord, name: str, best: Mapping[str, float], tied: Set[tuple[str, str]]) -> str:
    if (number := measured_mean(record, name)) is None:
        return ""
    cell = f"{number:.1f}"
    if number.mean == best.get(name):
        return Stressed(cell)
    return Tied(cell) if (record.run_id, name) in tied else cell
