"""How runs stand beside each other: who may be compared with whom, in what order, at what cost.

From records to blocks of a table; `leaderboard` puts the blocks together.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import groupby
from operator import itemgetter

from longsumbench.formatting import format_count, format_duration
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS, ROUGE_PARTS, describe_difference
from longsumbench.leaderboards.notes import table_notes
from longsumbench.report.tables import Block, Stressed, Tied
from longsumbench.runs.record import (
    RANKED_BY,
    SHORT_ID,
    RunRecord,
    measured_mean,
    ranked_by,
    source_seen,
    split_variant,
)

MEASURE_HEADINGS = {  # what is shown of them; of a metric that is not among these, its first measure
    "fact_recall_single": "single",
    "fact_recall_relayed": "relayed",
    "fact_recall_silent_same": "silent\nsame",
    "fact_recall_silent_other": "silent\nother",
    "fact_recall_plain": "plain",
    "fact_recall_repeated": "repeated",
    "fact_recall_overruled": "over-\nruled",
}
_TYPES_BESIDE_MEASURES = (RANKED_BY,)  # of ROUGE; all of them stand in the CSV


_WHO, _COST = ("model", "variant", "seed"), ("source\nseen", "steps", "train\ntime", "run")
TABLE_COLUMNS = (*_WHO, *ROUGE_HEADINGS.values(), *_COST)
_VIEW_WIDTHS = (("model", 20), ("variant", 30))
_VIEW_WIDTHS_BESIDE_MEASURES = (("model", 13), ("variant", 15))


def run_blocks(
    members: Sequence[RunRecord],
    first: RunRecord,
    tied: Set[tuple[str, str]] = frozenset(),
    tested: str = "",
    part: str = "f",
) -> list[Block]:
    """Return the ranking of comparable runs and, if there are any, their oracles.

    Args:
        members: runs that may be compared, best first.
        first: a run of the table's first group, from which the other groups are told apart.
        tied: the (run id, number) that cannot be told from the best of their column.
        tested: what is said of how that was found out; empty where nothing was tested.
        part: of ROUGE, that is shown: one of `PARTS`.
    """
    heading = f"{members[0].split} split, {format_count(members[0].n, 'example')}"
    if unlike := describe_difference(members[0], first):
        heading += f"; not comparable with the first block: {unlike}"
    ranked = [record for record in members if not record.oracle]
    oracles = [record for record in members if record.oracle]
    shown = numbers_shown(members, part)
    widths = _VIEW_WIDTHS if set(shown) <= set(ROUGE_HEADINGS) else _VIEW_WIDTHS_BESIDE_MEASURES
    words = any(record.outputs for record in members)
    view = (*_WHO, *shown.values(), *(["words"] if words else []), *_COST)
    align = f"ll{'r' * (len(view) - 3)}l"
    best = {}
    if len(ranked) > 1:
        best = {name: mean for name, (mean, _) in best_runs(ranked, shown, part).items()}
    told = (*table_notes(members, part), tested) if tested else table_notes(members, part)
    groups = _groups(shown, part, words)
    rows = [_row(one, shown, best, tied, part, words) for one in ranked]
    blocks = [Block(heading, told, view, align, rows, widths, groups)] if ranked else []
    if oracles:
        heading, told = ("", ()) if ranked else (heading, told)  # which then stand above the ranking
        told = (*told, "Oracles: they saw the references, or their lengths, and are not ranked.")
        rows = [_row(one, shown, {}, frozenset(), part, words) for one in oracles]
        blocks.append(Block(heading, told, view, align, rows, widths, groups))
    return blocks


def best_runs(ranked: Sequence[RunRecord], shown: Iterable[str], part: str = "f") -> dict[str, tuple[float, RunRecord]]:
    """Return for each number that was measured the highest mean and the run that has it, the first of several."""
    best = {}
    for name in shown:
        if found := [(number[0], record) for record in ranked if (number := measured_mean(record, name, part))]:
            best[name] = max(found, key=itemgetter(0))
    return best


def _groups(shown: Iterable[str], part: str, words: bool) -> tuple[tuple[str, int], ...]:
    """Return the headings over the columns of a view: of planted facts, of ROUGE and of training."""
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


def numbers_shown(members: Sequence[RunRecord], part: str = "f") -> dict[str, str]:
    """Return the numbers that a block shows: name → heading; what runs are ranked by beside ROUGE comes first.

    What was asked for beside the metrics of the dataset stands in the CSV alone. Beside precision or recall of ROUGE,
    nothing else is shown.
    """
    first = ranked_by(members[0], part)
    if first in ROUGE_HEADINGS:
        return ROUGE_HEADINGS
    measured = {name for record in members for name in record.measures}
    shown = {name: heading for name, heading in MEASURE_HEADINGS.items() if name in measured}
    return {**(shown or {first: first}), **{kind: ROUGE_HEADINGS[kind] for kind in _TYPES_BESIDE_MEASURES}}


def _row(
    record: RunRecord,
    shown: Iterable[str],
    best: Mapping[str, float],
    tied: Set[tuple[str, str]],
    part: str,
    words: bool,
) -> list[str]:
    oracle = record.oracle and record.model != "oracle"
    told = (", ".join(split_variant(record.variant)), *remarks(record))
    seen, seconds = source_seen(record), record.fit["seconds"]
    return [
        f"{record.model} (oracle)" if oracle else record.model,
        "; ".join(part for part in told if part),
        "" if record.seed is None else str(record.seed),
        *(_cell(record, name, best, tied, part) for name in shown),
        *([f"{record.outputs['words']:.0f}" if "words" in record.outputs else ""] if words else []),
        "" if seen is None else f"{seen:.0f} %",
        f"{record.fit['steps']:,}" if record.fit["steps"] else "",
        format_duration(seconds) if record.fit["steps"] else "",
        record.run_id[:SHORT_ID],
    ]


def remarks(record: RunRecord) -> list[str]:
    """Say of a run what no setting of its variant says."""
    averaged = len(record.fit.get("averaged", ()))
    told = {
        "not repeatable": not record.repeatable,
        f"mean of {len(record.checkpoints)} checkpoints": record.checkpoints,
        f"weights of {averaged} checkpoints averaged": averaged,
    }
    return [remark for remark, holds in told.items() if holds]


def _cell(record: RunRecord, name: str, best: Mapping[str, float], tied: Set[tuple[str, str]], part: str) -> str:
    if (number := measured_mean(record, name, part)) is None:
        return ""
    mean, low, high = number
    cell = f"{mean:.1f}" if low is None or high is None else f"{mean:.1f} ±{(high - low) / 2:.1f}"
    if mean == best.get(name):
        return Stressed(cell)
    return Tied(cell) if (record.run_id, name) in tied else cell
