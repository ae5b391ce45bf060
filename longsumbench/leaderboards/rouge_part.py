"""Tables of ROUGE's precision or recall: their means take the place of F1."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pandas as pd

from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.metrics.aggregate import intervals_of
from longsumbench.runs.record import RunRecord


def take_part_as_f(
    records: Iterable[RunRecord], part: str, scores: Mapping[str, pd.DataFrame]
) -> tuple[list[RunRecord], dict[str, pd.DataFrame]]:
    """Return records and scores with a part of ROUGE in the place of F1.

    Runs do not store the intervals of precision and recall: they come from the per-example scores, if these exist.

    Args:
        records: of some runs.
        part: "p" (precision) or "r" (recall).
        scores: run id → per-example scores, 0–1, of the runs that have them.
    """
    columns = {kind: f"{kind}_{part}" for kind in ROUGE_HEADINGS}
    taken = {
        run: table.assign(**{f"{kind}_f": table[name] for kind, name in columns.items()})
        for run, table in scores.items()
    }
    return [_with_part_as_f(record, part, taken.get(record.run_id)) for record in records], taken


def _with_part_as_f(record: RunRecord, part: str, scores: pd.DataFrame | None) -> RunRecord:
    bounds: Mapping[str, tuple[float, float]] = {}
    if scores is not None:
        scoring = record.settings.score
        columns = scores[[f"{kind}_f" for kind in ROUGE_HEADINGS]]
        bounds = intervals_of(columns, scoring.resamples, perl_resampling=scoring.resampling == "perl")
    means = {}
    for kind, score in record.scores.items():
        low, high = bounds.get(f"{kind}_f", (math.nan, math.nan))
        means[kind] = replace(score, f=getattr(score, part), f_lo=low, f_hi=high)
    return replace(record, scores=means)
