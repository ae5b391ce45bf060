"""Texts, records and outputs of runs for use in Python."""

from pathlib import Path
from typing import Any

import pandas as pd

from longsumbench.arguments import public_function
from longsumbench.cache.artifacts import user_cache
from longsumbench.core import count_words
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.outputs.compare import open_run
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.plan import plan_dataset
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results, split_read_by


@public_function
def load_outputs(run: str | Path | RunRecord, results_dir: str | Path = "results") -> pd.DataFrame:
    """Read what a finished run wrote for each example.

    Args:
        run: its folder, its id, the beginning of its id, or its record.
        results_dir: where ids are looked for.

    Returns:
        A row for each scored example, indexed by id: `prediction`, `words` (its length), `references` (a list of
        texts; None if the texts are not on this machine), then its scores (ROUGE from 0 to 1).

    Raises:
        UsageError: no run, or several, match.
        DataError: a file of the run is missing or damaged.
    """
    opened = open_run(run, Results.at(results_dir))
    split = split_read_by(opened.folder, opened.record)
    texts = {}
    if split is not None:
        for index, name in enumerate(split.ids):
            if name in opened.predictions:
                texts[name] = [" ".join(sentences) for sentences in split[index].references]
    rows = {
        name: (text, count_words([text]), texts.get(name))
        for name, text in opened.predictions.items()
    }
    outputs = pd.DataFrame.from_dict(rows, "index", columns=["prediction", "words", "references"])
    return outputs.join(opened.scores.frame(), how="right")


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
