"""The CSV of a leaderboard: a row for each run, with everything that was measured."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

import pandas as pd

from longsumbench.formatting import percent
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.truncation import PREFIX, cut_shares, ledger_columns
from longsumbench.report.tables import rounded_frame, with_bounds
from longsumbench.runs.record import RunRecord, length_ratio, source_copied, source_seen

_TRAINING_COLUMNS = ("steps", "examples", "source_tokens", "target_tokens", "seconds")
_COLUMNS = (
    *("model", "variant", "dataset", "split", "n"),
    *(f"{kind}{bound}" for kind in ROUGE_HEADINGS for bound in ("", "_lo", "_hi")),
    *("source_seen", "targets_cut", "outputs_cut", "parameters"),
    *(f"train_{name}" for name in _TRAINING_COLUMNS),
    *("tokens_per_second", "peak_memory_gb", "seed", "signature", "run_id"),
    *(f"{kind}_{part}" for kind in ROUGE_HEADINGS for part in "pr"),
    *("path", "fingerprint", "train_split"),
)
_SYSTEM_COLUMNS = (  # left out if no record has facts about its system
    *("trained", "checkpoint", "revision", "weights", "context", "engine"),
    *("prompt", "prompt_hash", "released", "release_order", "length_ratio"),
)
_OUTPUT_COLUMNS = {  # column → fact in the record; left out if no record has any
    "output_words": "words",
    "reference_words": "reference_words",
    "outputs_compared": "compared",
    "outputs_distinct": "distinct",
    "outputs_repetitive": "repetitive",
}


def runs_frame(records: Sequence[RunRecord]) -> pd.DataFrame:
    """Return a row per run: the common columns, then other measures, truncation by cause, and facts of some runs."""
    measured = dict.fromkeys(name for record in records for name in record.measures)
    columns = [*_COLUMNS, *(f"{name}{bound}" for name in measured for bound in ("", "_lo", "_hi"))]
    columns += ["source_copied"] if any(source_copied(record) is not None for record in records) else []
    columns += ledger_columns(records)
    columns += ["measured_by"] if any(record.measured_by for record in records) else []
    columns += _OUTPUT_COLUMNS if any(record.outputs for record in records) else []
    columns += ["checkpoints"] if any(record.checkpoints for record in records) else []
    columns += ["imported_from"] if any(record.imported for record in records) else []
    columns += _SYSTEM_COLUMNS if any(record.system for record in records) else []
    columns += dict.fromkeys(name for record in records for name in record.counts)
    return rounded_frame(map(_row, records), columns)


def _row(record: RunRecord) -> dict[str, Any]:
    """Return a run's row of the CSV: ROUGE F1, precision (`_p`) and recall (`_r`) are 0–100, shares in percent."""
    fit = record.fit
    values: dict[str, Any] = {name: getattr(record, name) for name in ("model", "variant", "dataset", "split", "n")}
    for kind in ROUGE_HEADINGS:
        score = record.scores[kind]
        values |= with_bounds(kind, score.f1) | {f"{kind}_p": score.p, f"{kind}_r": score.r}
    values |= {
        "source_seen": source_seen(record),
        "source_copied": source_copied(record),
        "targets_cut": percent(fit.targets_cut, record.train_examples) if record.trained else None,
        "outputs_cut": percent(record.outputs_cut, record.num_outputs),
        "parameters": record.parameters,
        **{f"train_{name}": getattr(fit, name) for name in _TRAINING_COLUMNS},
        "tokens_per_second": record.decode_tokens_per_second,
        **{name: getattr(record, name) for name in ("peak_memory_gb", "seed", "signature", "run_id", "fingerprint")},
        "path": (path := record.settings.dataset.path) and PurePath(path).name,
        "train_split": record.train_examples,
    }
    for name, measure in record.measures.items():
        values |= with_bounds(name, measure.estimate)
    values |= {f"{PREFIX}{cause}": share for cause, share in cut_shares(record).items()}
    values |= {name: getattr(record.outputs, fact, None) for name, fact in _OUTPUT_COLUMNS.items()}
    values["measured_by"] = "; ".join(record.measured_by.values())
    values["checkpoints"] = len(record.checkpoints) or 1
    facts = {**asdict(record.facts), "release_order": record.release_order}
    facts |= {"trained": record.trained_here, "length_ratio": length_ratio(record)}
    values |= {name: facts[name] for name in _SYSTEM_COLUMNS}
    values |= record.counts
    if record.imported:  # how it was trained and decoded is unknown
        values |= dict.fromkeys(("outputs_cut", "parameters", *(f"train_{name}" for name in _TRAINING_COLUMNS)))
        values["imported_from"] = record.imported.origin or record.imported.file
    return values
