"""Decide which runs are comparable, and how they are ordered."""

from pathlib import PurePath

from longsumbench.api import SAME_SYSTEM, DatasetSettings, names_deciding
from longsumbench.formatting import format_plain_value
from longsumbench.runs.record import SHORT_ID, RunRecord, measured_mean, ranking_score

ROUGE_HEADINGS = {"rouge1": "R-1", "rouge2": "R-2", "rougeL": "R-L", "rougeLsum": "R-Lsum"}
MEASURE_HEADINGS = {  # measures that tables show; other metrics show their first measure
    "fact_recall_single": "single",
    "fact_recall_relayed": "relayed",
    "fact_recall_silent_same": "silent\nsame",
    "fact_recall_silent_other": "silent\nother",
    "fact_recall_plain": "plain",
    "fact_recall_repeated": "repeated",
    "fact_recall_overruled": "over-\nruled",
}
ROUGE_PARTS = {"f": "F1", "p": "precision", "r": "recall"}  # name in scores → name in tables


def comparison_key(record: RunRecord) -> tuple[str, str, str, str]:
    """Return a key that comparable runs share."""
    return record.split, record.fingerprint, record.examples, record.signature


def describe_difference(one: RunRecord, other: RunRecord) -> str:
    """Describe how the conditions of two runs differ; empty if they do not."""
    parts = []
    if one.split != other.split:
        parts.append(f"{one.split} instead of {other.split} split")
    if one.fingerprint != other.fingerprint:
        hashes = f"{one.fingerprint[:SHORT_ID]} instead of {other.fingerprint[:SHORT_ID]}"
        parts.append(f"other texts ({_unlike_dataset_settings(one, other) or hashes})")
    if one.examples != other.examples:
        numbers = f" ({one.n} instead of {other.n})" if one.n != other.n else ""
        parts.append(f"other examples{numbers}")
    pairs = zip(one.signature.split("|"), other.signature.split("|"), strict=False)
    unlike = [f"{new} instead of {old}" for new, old in pairs if new != old and not new.startswith("n:")]
    if one.signature != other.signature and not (parts or unlike):
        unlike = ["other signature"]
    return ", ".join(parts + unlike)


def _unlike_dataset_settings(one: RunRecord, other: RunRecord) -> str:
    """Describe the `dataset` settings that differ between two runs; empty if none does."""
    if one.dataset != other.dataset:
        return ""
    new, old = _dataset_settings(one), _dataset_settings(other)
    keys = [key for key in {**new, **old} if new.get(key, "null") != old.get(key, "null")]
    return ", ".join(f"dataset.{key}={new.get(key, 'null')} instead of {old.get(key, 'null')}" for key in keys)


def _dataset_settings(record: RunRecord) -> dict[str, str]:
    """Return the `dataset` settings that determine the texts; paths are reduced to their last name."""
    other = names_deciding(DatasetSettings, *SAME_SYSTEM)
    settings = {key: value for key, value in record.config["dataset"].items() if key not in other}
    settings["reader"] = settings.get("reader") or settings.get("name")  # old records have none
    path = settings.get("path")
    settings["path"] = path and (PurePath(path).name or path)
    return {key: format_plain_value(value) for key, value in settings.items()}


def ranking_key(record: RunRecord) -> tuple[bool, float, str, str, int, str]:
    """Return a sorting key: best first, oracles last; ties are sorted by name, variant and seed."""
    score = measured_mean(record, ranking_score(record))
    return record.oracle, -score.mean if score else 0.0, record.model, record.variant, record.seed or 0, record.run_id
