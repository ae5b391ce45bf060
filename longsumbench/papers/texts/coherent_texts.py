"""The coherence of references, shuffled references and the outputs of an artifact's rows.

Job, dataset --score_rows--> ScoredTexts: coherence of each text, by row
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench.analysis.coherence.coherence import CoherenceFound, NextSentences, score_texts
from longsumbench.analysis.sampled import SampleSettings, sample_dataset
from longsumbench.api import Scoring, build_settings
from longsumbench.errors import UsageError
from longsumbench.formatting import format_count
from longsumbench.leaderboards.seed_groups import SeedGroup, estimate_share, latest_per_seed
from longsumbench.metrics.aggregate import PERCENT, Estimate, estimate_mean
from longsumbench.papers.page import Job, RowRuns
from longsumbench.papers.texts.reachable import ReadableDataset, options_named
from longsumbench.runs.record import RunRecord

_OUTPUTS = "predictions.jsonl"
_COLUMN = "coherence"


class MissingTexts(NamedTuple):
    """Which runs or outputs of a row are missing, and what to do; empty if none are."""

    what: str
    advice: str


@dataclass(frozen=True)
class ScoredTexts:
    """The scores of texts on one dataset.

    Attributes:
        found: scores of references, shuffled references and runs.
        groups: label of a row → its runs with outputs, one per seed.
        missing: label of a row → its missing runs and outputs.
    """

    found: CoherenceFound
    groups: Mapping[str, SeedGroup]
    missing: Mapping[str, MissingTexts]

    def estimate(self, row: str) -> Estimate | None:
        """Return the mean coherence of a row or of the references, 0–100, with its interval; None without a score.

        Args:
            row: label of a row, or a key of `CoherenceFound.scores`.
        """
        if row in self.groups:
            return estimate_share(self.groups[row].runs, _COLUMN, self.frames())
        return estimate_mean(PERCENT * self._known(row))

    def num_texts(self, row: str) -> int:
        """Return the number of texts with a score, of one run."""
        name = self.groups[row].key if row in self.groups else row
        return len(self._known(name)) if name in self.found.scores else 0

    def _known(self, name: str) -> NDArray[np.float64]:
        scores = self.found.scores.get(name, np.zeros(0))
        return scores[np.isfinite(scores)]

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return run id → its scores of each example, 0–1, in the column "coherence"."""
        return {name: pd.DataFrame({_COLUMN: scores}) for name, scores in self.found.scores.items()}


class _NextSentencesOfOption(NextSentences):
    """The metric with its model from the option `bert`."""

    setting: ClassVar[str] = "bert"


def load_next_sentence_model(job: Job) -> NextSentences:
    """Return the metric with the BERT that the option `bert` names.

    Raises:
        UsageError: the option is missing, or the model is not a next-sentence model.
        EnvironmentProblem: the model is not on this machine, and the hub cannot be reached.
        DataError: its files are damaged.
    """
    bert, device = job.options.get("bert"), job.options.get("device") or "auto"
    if not bert:
        advice = "add bert=FOLDER or a hub name"
        raise UsageError(f"{job.artifact.name} needs a BERT for next-sentence prediction: {advice}")
    metric = _NextSentencesOfOption(Scoring(coherence_model=str(bert), device=str(device)))
    metric.check()
    return metric


def score_rows(job: Job, dataset: ReadableDataset, metric: NextSentences) -> ScoredTexts:
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
    return ScoredTexts(found, groups, {row.label: _find_missing(job, row) for row in rows})


def _has_outputs(job: Job, run: RunRecord) -> bool:
    return (job.results.run_folder(run) / _OUTPUTS).is_file()


def _find_missing(job: Job, row: RowRuns) -> MissingTexts:
    texts, advice = [], []
    if unfinished := row.records.count(None):
        texts.append(f"{format_count(unfinished, 'run')} not finished")
        advice.append("the command without --no-run continues")
    without = [run for run in row.finished if not _has_outputs(job, run)]
    if without:
        texts.append(f"outputs of {format_count(len(without), 'run')} missing")
        commands = dict.fromkeys(shlex.join(run.command) for run in without if run.command)
        again = " and ".join(f"`{command}`" for command in commands) or "the command of each"
        advice.append(f"{again} with overwrite=true makes the missing {_OUTPUTS}")
    return MissingTexts("; ".join(texts), "; ".join(advice))
