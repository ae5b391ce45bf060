"""The truncation ledgers of finished runs as a table.

It shows source tokens seen, or dropped by cause; training targets cut; outputs that reached the length limit.
"""

from collections.abc import Sequence

from longsumbench.formatting import percent
from longsumbench.report.tables import Block
from longsumbench.runs.record import RunRecord, reads_all, run_label, source_seen

_HEADING = "What was not read, not learned, not finished"
_NOTE = (
    "Source: the share of tokens (of words, for a system without tokens) that was read, and the share that each "
    "setting dropped. Targets: training references longer than decode_length. Outputs: summaries that hit the length "
    "limit."
)
_ABSENT = "–"
PREFIX = "cut_"  # of the CSV columns with the shares by cause


def cut_shares(record: RunRecord) -> dict[str, float]:
    """Return cause → the share of the source that it cut, in percent of tokens, the largest first."""
    source = record.source
    if source is None or reads_all(record):
        return {}
    counts = {cut.cause: cut.tokens if source.tokens else cut.words for cut in source.cuts}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {cause: percent(count, source.tokens or source.words) or 0.0 for cause, count in ordered}


def ledger_columns(records: Sequence[RunRecord]) -> list[str]:
    """Return the names of the CSV columns with the shares that any of the runs cut, by cause."""
    return [f"{PREFIX}{cause}" for cause in sorted({cause for record in records for cause in cut_shares(record)})]


def ledger_block(records: Sequence[RunRecord]) -> Block:
    """Return a block with a row for each run."""
    columns = ("run", "split", "source\nread (%)", "dropped by (%)", "training\ntargets cut", "outputs\nat the limit")
    rows = [_row(record) for record in records]
    return Block(_HEADING, (), columns, "llrlll", rows, optional=("split",), footnotes=(_NOTE,))


def _row(record: RunRecord) -> list[str]:
    seen, shares = source_seen(record), cut_shares(record)
    return [
        run_label(record),
        record.split,
        _ABSENT if seen is None else f"{seen:.1f}",
        ", ".join(f"{cause} {share:.1f}" for cause, share in shares.items()) or _ABSENT,
        _targets(record),
        _ABSENT if record.imported else format_share(record.outputs_cut, record.num_outputs),
    ]


def _targets(record: RunRecord) -> str:
    """Describe how many training targets were cut, and the share of their tokens."""
    targets = record.fit.targets
    if targets is None or not record.trained:
        return _ABSENT
    share = percent(targets.tokens - targets.tokens_seen, targets.tokens) or 0.0
    return f"{format_share(record.fit.targets_cut, record.train_examples)}, {share:.1f} % of tokens"


def format_share(part: int, whole: int) -> str:
    """Format a count and its share: "12 (3.40 %)"; only the count if `whole` is 0."""
    share = percent(part, whole)
    return f"{part:,}" if share is None else f"{part:,} ({share:.2f} %)"
