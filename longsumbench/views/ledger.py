"""The truncation ledgers of runs: what was not read (by which setting), not learned, not finished."""

from collections.abc import Mapping, Sequence

from longsumbench.formatting import percent
from longsumbench.leaderboards.seed_groups import ResultRow
from longsumbench.runs.record import RunRecord, source_seen
from longsumbench.runs.run_names import describe_run
from longsumbench.views.tables import Block

_NOTE = (
    "Source: the share of tokens (of words, for a system without tokens) that was read, and the share that each "
    "setting dropped. Targets: training references longer than decode_length. Outputs: summaries that hit the length "
    "limit."
)
_NO_VALUE = "–"


def cut_shares(record: RunRecord) -> dict[str, float]:
    """Return cause → the share of the source that it cut, in percent of tokens, the largest first."""
    source = record.ledger.source
    if source is None:
        return {}
    counts = {cut.cause: cut.tokens if source.tokens else cut.words for cut in source.cuts}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {cause: percent(count, source.tokens or source.words) or 0.0 for cause, count in ordered}


def format_share(part: int, total: int) -> str:
    """Format a count and its share: "12 (3.40 %)"; only the count if `total` is 0."""
    share = percent(part, total)
    return f"{part:,}" if share is None else f"{part:,} ({share:.2f} %)"


def ledger_block(
    records: Sequence[RunRecord], places: Mapping[str, tuple[int, ResultRow]]
) -> Block:
    """Return a block with a row for each run; `places` are those of the table (`Table.locate_runs`), or empty."""
    rows = []
    for record in records:
        name = places[record.run_id][1].name if places else None
        rows.append([describe_run(record, name), *_ledger_cells(record)])
    columns = (
        "run",
        "split",
        "source\nread (%)",
        "dropped by (%)",
        "training\ntargets cut",
        "outputs\nat the limit",
    )
    return Block(
        "What was not read, not learned, not finished",
        (),
        columns,
        "llrlll",
        rows,
        optional=("split",),
        footnotes=(_NOTE,),
    )


def _ledger_cells(record: RunRecord) -> list[str]:
    seen, targets = source_seen(record), record.fit.targets
    causes = [f"{cause} {share:.1f}" for cause, share in cut_shares(record).items()]
    # What is unknown has a dash, not a zero
    cut_targets = cut_outputs = _NO_VALUE
    if targets is not None and record.trained:
        share = percent(targets.tokens - targets.tokens_seen, targets.tokens) or 0.0
        cut_examples = format_share(record.fit.targets_cut, record.train_examples)
        cut_targets = f"{cut_examples}, {share:.1f} % of tokens"
    if not record.imported:
        cut_outputs = format_share(record.ledger.outputs_cut, record.num_outputs)
    return [
        record.key.split,
        _NO_VALUE if seen is None else f"{seen:.1f}",
        ", ".join(causes) or _NO_VALUE,
        cut_targets,
        cut_outputs,
    ]
