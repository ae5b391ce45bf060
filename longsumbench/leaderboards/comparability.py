"""Which runs may be compared, and in what order."""

from pathlib import PurePath

from longsumbench.runs.record import SHORT_ID, RunRecord, measured_mean, ranked_by

ROUGE_HEADINGS = {"rouge1": "R-1", "rouge2": "R-2", "rougeL": "R-L", "rougeLsum": "R-Lsum"}


ROUGE_PARTS = {"f": "F1", "p": "precision", "r": "recall"}  # of ROUGE: as scores name them → as tables do


_DECIDES_NO_TEXT = ("name", "split", "workers")  # of the dataset settings


def comparison_key(record: RunRecord) -> tuple[str, str, str, str]:
    """Return what must agree before two runs may be ranked together."""
    return record.split, record.fingerprint, record.examples, record.signature


def describe_difference(one: RunRecord, other: RunRecord) -> str:
    """Say in what the conditions of two runs differ, from the first one's side; nothing when they agree."""
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
    unlike = [f"{mine} instead of {its}" for mine, its in pairs if mine != its and not mine.startswith("n:")]
    if one.signature != other.signature and not (parts or unlike):
        unlike = ["other signature"]
    return ", ".join(parts + unlike)


def _unlike_dataset_settings(one: RunRecord, other: RunRecord) -> str:
    """Name the `dataset` settings that explain why two runs read other texts; empty if none does."""
    if one.dataset != other.dataset:
        return ""
    mine, its = _dataset_settings(one), _dataset_settings(other)
    keys = [key for key in {**mine, **its} if mine.get(key, "null") != its.get(key, "null")]
    return ", ".join(f"dataset.{key}={mine.get(key, 'null')} instead of {its.get(key, 'null')}" for key in keys)


def _dataset_settings(record: RunRecord) -> dict[str, str]:
    """Return the `dataset` settings that decide which texts are read; of a path only the last name."""
    settings = {key: value for key, value in record.config["dataset"].items() if key not in _DECIDES_NO_TEXT}
    path = settings.get("path")
    settings["path"] = path and (PurePath(path).name or path)
    settings["strict"] = settings.get("strict") is not False  # null, the default today, is what true was in old records
    return {key: _plain(value) for key, value in settings.items()}


def ranking_key(record: RunRecord, part: str = "f") -> tuple[bool, float, str, str, int, str]:
    """Return a sorting key by a part of ROUGE: best first, oracles last; ties by name, variant and seed."""
    score = measured_mean(record, ranked_by(record, part), part)
    assert score is not None
    return record.oracle, -score[0], record.model, record.variant, record.seed or 0, record.run_id


def _plain(value: object) -> str:
    """Write a setting's value as on the command line."""
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value))
