"""Texts and records for use in Python."""

from pathlib import Path
from typing import Any

from longsumbench.arguments import public_function
from longsumbench.cache.artifacts import user_cache
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.plan import plan_dataset
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results


@public_function
def load_dataset(name: str, **settings: Any) -> Texts:
    """Read a dataset, or find it in the cache.

        texts = load_dataset("mine", reader="jsonl", path="my_texts", limit=100)
        example = texts.splits["test"][0]

    Args:
        name: a dataset of `longsumbench list datasets`; with `reader`, any name.
        settings: settings of the dataset, without `dataset.` before them.

    Returns:
        The texts. `splits` has a sequence of `Example`s for each split.

    Raises:
        UsageError: the name or a setting is unknown or invalid.
        DataError: a file or a row cannot be used.
        EnvironmentProblem: the dataset is on the hub, which cannot be reached.
    """
    overrides = format_overrides({"dataset": {"name": name, **settings}})
    return load_texts(plan_dataset(overrides), user_cache())


@public_function
def load_run(run: str | Path | RunRecord, results_dir: str | Path = "results") -> RunRecord:
    """Read the record of a finished run.

    Args:
        run: the run's folder, its id, the beginning of its id, or its record.
        results_dir: where ids are looked for.

    Raises:
        UsageError: no run, or several, match.
        DataError: the record is damaged.
    """
    return RunRecord.read(Results.at(results_dir).find(run))
