"""What a finished run wrote, as a table with a row for each example."""

from pathlib import Path

import pandas as pd

from longsumbench.arguments import public_function
from longsumbench.core import count_words
from longsumbench.outputs.compare import open_run
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
        for place, name in enumerate(split.ids):
            if name in opened.predictions:
                texts[name] = [" ".join(sentences) for sentences in split[place].references]
    rows = {
        name: (text, count_words([text]), texts.get(name))
        for name, text in opened.predictions.items()
    }
    outputs = pd.DataFrame.from_dict(rows, "index", columns=["prediction", "words", "references"])
    return outputs.join(opened.scores.frame(), how="right")
