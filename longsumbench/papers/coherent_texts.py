"""The coherence of references, shuffled references and the outputs of an artifact's rows.

Job, dataset --score_rows--> ScoredTexts: coherence of each text, by row
"""

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from longsumbench.analysis.coherence.coherence import CoherenceFound, score_texts
from longsumbench.analysis.sampled import SampleSettings, sample_dataset
from longsumbench.api import build_settings
from longsumbench.leaderboards.seed_groups import Difference, SeedGroup, difference, estimate_share, latest_per_seed
from longsumbench.metrics.aggregate import BOOTSTRAP_SEED, PERCENT, Estimate
from longsumbench.metrics.coherence import Coherence
from longsumbench.metrics.statistics import bootstrap_interval
from longsumbench.papers.claims import compare_examples
from longsumbench.papers.page import Job, RowRuns
from longsumbench.papers.reachable import ReadableDataset, options_named
from longsumbench.runs.record import RunRecord, run_label

_OUTPUTS = "predictions.jsonl"
_RESAMPLES = 1_000  # of the bootstrap for the 95 % intervals
_COLUMN = "coherence"


@dataclass(frozen=True)
class ScoredTexts:
    """The scores of texts on one dataset.

    Attributes:
        found: scores of references, shuffled references and runs.
        groups: label of a row → its runs with outputs, one per seed.
        lacking: label of a row → why runs or outputs are missing; empty if none are.
    """

    found: CoherenceFound
    groups: Mapping[str, SeedGroup]
    lacking: Mapping[str, str]

    def estimate(self, row: str) -> Estimate | None:
        """Return the mean coherence of a row or of the references, 0–100, with its interval; None without a score.

        Args:
            row: label of a row, or a key of `CoherenceFound.scores`.
        """
        if row in self.groups:
            return estimate_share(self.groups[row].runs, _COLUMN, self._frames())
        values = PERCENT * self._known(row)
        if not len(values):
            return None
        bounds = bootstrap_interval(values, _RESAMPLES, BOOTSTRAP_SEED) if len(values) > 1 else (math.nan, math.nan)
        return Estimate(float(values.mean()), *bounds)

    def compare(self, one: str, other: str) -> Difference | None:
        """Return the difference of two rows, or of two kinds of references; None if it cannot be tested."""
        if one in self.groups and other in self.groups:
            return difference(self.groups[one], self.groups[other], _COLUMN, self._frames())
        if one in self.found.scores and other in self.found.scores:
            return compare_examples(PERCENT * (self.found.scores[one] - self.found.scores[other]))
        return None

    def num_texts(self, row: str) -> int:
        """Return the number of texts with a score, of one run."""
        name = self.groups[row].key if row in self.groups else row
        return len(self._known(name)) if name in self.found.scores else 0

    def _known(self, name: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        scores = self.found.scores.get(name, np.zeros(0))
        return scores[np.isfinite(scores)]

    def _frames(self) -> dict[str, pd.DataFrame]:
        return {name: pd.DataFrame({_COLUMN: scores}) for name, scores in self.found.scores.items()}


def score_rows(job: Job, dataset: ReadableDataset, metric: Coherence) -> ScoredTexts:
    """Score the references of a dataset, and the outputs of the rows on it.

    The option `sample` is the number of examples; null: all that the runs summarized.

    Raises:
        UsageError: a run has read other texts.
        DataError: no example has a reference, or a file is damaged.
    """
    rows = [row for row in job.rows if row.dataset == dataset.name]
    with_outputs = {row.label: [run for run in row.finished if _has_outputs(job, run)] for row in rows}
    groups = {label: latest_per_seed(runs) for label, runs in with_outputs.items() if runs}
    settings = build_settings(SampleSettings, dict(options_named(job, "sample")), "")
    names = ",".join(run.run_id for group in groups.values() for run in group.runs)
    found = score_texts(sample_dataset(dataset.settings, settings, names, job.results), metric)
    return ScoredTexts(found, groups, {row.label: _describe_missing(job, row) for row in rows})


def _has_outputs(job: Job, run: RunRecord) -> bool:
    return (job.results.run_folder(run) / _OUTPUTS).is_file()


def _describe_missing(job: Job, row: RowRuns) -> str:
    """Say which runs or outputs of a row are missing, and what to do; empty if none are."""
    texts = []
    if unfinished := row.records.count(None):
        verb = "run is" if unfinished == 1 else "runs are"
        texts.append(f"{unfinished} {verb} not finished (the command without --no-run makes them)")
    for run in row.finished:
        if not _has_outputs(job, run):
            texts.append(f"the outputs of {run_label(run)} are not in the results folder ({_advise(run)})")
    return "; ".join(texts)


def _advise(run: RunRecord) -> str:
    again = f"`{shlex.join(run.command)}` makes the run again" if run.command else "overwrite=true makes the run again"
    return f"{again}, or copy its {_OUTPUTS}"
