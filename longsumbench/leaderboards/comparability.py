"""Decide which runs are comparable, and how they are ordered."""

from collections.abc import Sequence
from pathlib import PurePath

from longsumbench.core import SAME_SYSTEM, DatasetSettings, names_deciding
from longsumbench.formatting import format_plain_value
from longsumbench.metrics.aggregate import Estimate
from longsumbench.metrics.evaluate import DEFAULT_RANKING_SCORE
from longsumbench.runs.record import SHORT_ID, RunRecord

ROUGE_HEADINGS = {"rouge1": "R-1", "rouge2": "R-2", "rougeL": "R-L", "rougeLsum": "R-Lsum"}
PLANTED = "fact_recall"  # percent of the planted facts that a summary states right
SURVIVAL = "fact_survival"  # the same for facts in natural texts
MEASURE_HEADINGS = {  # measures that tables show; other metrics show their first measure
    "fact_recall": "facts",
    "fact_recall_single": "one\nplace",
    "fact_recall_relayed": "two places,\nlink said",
    "fact_recall_silent_same": "link unsaid,\none section",
    "fact_recall_silent_other": "link unsaid,\ntwo sections",
    "fact_survival": "facts\nright",
}
SPLIT_ORDER = ("test", "validation", "train")  # of tables of equal size
ROUGE_STATISTICS = {"f": "F1", "p": "precision", "r": "recall"}  # name in scores → name in tables


def find_heading(name: str) -> str:
    """Return the heading of a measure in tables, on one line."""
    return {**ROUGE_HEADINGS, **MEASURE_HEADINGS}.get(name, name).replace("\n", " ")


def comparison_key(record: RunRecord) -> tuple[str, str, str, str]:
    """Return a key that comparable runs share."""
    return (
        record.key.split,
        record.key.fingerprint,
        record.evaluation.examples,
        record.evaluation.signature,
    )


def shown_measures(members: Sequence[RunRecord]) -> dict[str, str]:
    """Return the measures that tables of comparable runs show (name → heading), those of ROUGE last.

    Only the CSV has metrics that were requested in addition to the dataset's own.
    """
    ranked_by = members[0].evaluation.ranked_by
    if ranked_by in ROUGE_HEADINGS:
        return ROUGE_HEADINGS
    measured = {name for record in members for name in record.evaluation.measures}
    headings = {name: heading for name, heading in MEASURE_HEADINGS.items() if name in measured}
    return {
        **(headings or {ranked_by: ranked_by}),
        DEFAULT_RANKING_SCORE: ROUGE_HEADINGS[DEFAULT_RANKING_SCORE],
    }


def describe_unlike_conditions(first: RunRecord, second: RunRecord) -> str:
    """Describe how the conditions of two runs differ; empty if they do not."""
    parts = []
    if first.key.split != second.key.split:
        parts.append(f"{first.key.split} instead of {second.key.split} split")
    if first.key.fingerprint != second.key.fingerprint:
        hashes = (
            f"{first.key.fingerprint[:SHORT_ID]} instead of {second.key.fingerprint[:SHORT_ID]}"
        )
        parts.append(f"other texts ({_unlike_dataset_settings(first, second) or hashes})")
    if first.evaluation.examples != second.evaluation.examples:
        numbers = (
            f" ({first.evaluation.n} instead of {second.evaluation.n})"
            if first.evaluation.n != second.evaluation.n
            else ""
        )
        parts.append(f"other examples{numbers}")
    pairs = zip(
        first.evaluation.signature.split("|"), second.evaluation.signature.split("|"), strict=False
    )
    unlike = [
        f"{new} instead of {old}" for new, old in pairs if new != old and not new.startswith("n:")
    ]
    if first.evaluation.signature != second.evaluation.signature and not (parts or unlike):
        unlike = ["other signature"]
    return ", ".join(parts + unlike)


def _unlike_dataset_settings(first: RunRecord, second: RunRecord) -> str:
    if first.key.dataset != second.key.dataset:
        return ""
    new, old, parts = _dataset_settings(first), _dataset_settings(second), []
    for key in {**new, **old}:
        if new.get(key) != old.get(key):
            value = f"dataset.{key}={new[key]}" if key in new else f"the default dataset.{key}"
            parts.append(f"{value} instead of {old.get(key, 'the default')}")
    return ", ".join(parts)


def _dataset_settings(record: RunRecord) -> dict[str, str]:
    """Return the `dataset` settings that determine the texts and are not null; paths by their last name."""
    neutral_keys = names_deciding(DatasetSettings, *SAME_SYSTEM)
    settings = {
        key: value for key, value in vars(record.config.dataset).items() if key not in neutral_keys
    }
    path = settings.get("path")
    settings["path"] = path and (PurePath(path).name or path)
    return {key: format_plain_value(value) for key, value in settings.items() if value is not None}


def ranking_key(
    record: RunRecord, score: Estimate | None
) -> tuple[bool, float, str, str, int, str]:
    """Return a sorting key of a run, or of a row with it: best first, oracles last; then by name, variant and seed."""
    return (
        record.oracle,
        -score.mean if score else 0.0,
        record.key.model,
        record.variant,
        record.key.seed or 0,
        record.run_id,
    )
