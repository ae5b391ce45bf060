"""Scores the coherence of references, shuffled references and summaries of runs, and writes it (PageSum, Table 4).

texts of each row --Coherence (PageSum, Eq. 12)--> one score per example --table--> means, intervals, paired tests
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench.core import DatasetSettings, Device, Scoring, Sentences, Text, setting
from longsumbench.core.versions import LOADING_VERSION
from longsumbench.errors import DataError, UsageError
from longsumbench.files import digest
from longsumbench.formatting import format_count, format_p
from longsumbench.leaderboards.seed_groups import compare_examples, seed_matters
from longsumbench.leaderboards.significance import LEVEL, Outcome, correct_differences
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import describe_run
from longsumbench.sentences import split_summary
from longsumbench.views.tables import Block, Tied
from longsumbench_reproduction.analysis.sampled import (
    AnalysisResult,
    Sampled,
    SampleSettings,
    estimate_mean,
    sample_dataset,
)
from longsumbench_reproduction.metrics.coherence import Coherence

REFERENCE, SHUFFLED = "reference", "reference, shuffled"


@dataclass
class CoherenceSettings(SampleSettings):
    """Settings of `longsumbench analyze coherence`."""

    run: Text = setting(
        "", "finished runs on the split, separated by commas; tests compare with the first"
    )
    model: Text | None = setting(None, "folder or hub name of a BERT for next-sentence prediction")
    device: Device = setting("auto", "auto | cpu | cuda | mps")

    def __post_init__(self) -> None:
        if not self.model:
            needed = "coherence needs a BERT trained on next-sentence prediction"
            hub_name = (
                "its name on the Hugging Face hub (model=bert-large-uncased, as in the paper)"
            )
            raise UsageError(f"model= is missing: {needed}; give its folder, or {hub_name}")


class NextSentences(Coherence):
    """The metric `Coherence` with its model from the analysis's setting `model`."""

    setting: ClassVar[str] = "model"


@dataclass(frozen=True)
class CoherenceResult(AnalysisResult):
    """The result of `longsumbench analyze coherence`."""

    analysis: ClassVar[str] = "coherence"
    # row → [E], 0–1; NaN for a text of fewer than two sentences
    scores: dict[str, NDArray[np.float64]]
    labels: dict[str, str]  # row → label in tables
    baseline: str  # the row that the others are tested against
    without: int = 0  # number of examples left out because they have no reference
    one_seed: frozenset[str] = frozenset()  # rows of trained systems

    @property
    def title(self) -> str:
        """Heading of the table."""
        return f"Semantic coherence of summaries, 0–100: {self.dataset}"

    def table(self) -> pd.DataFrame:
        """Return one row per kind of text: mean, 0–100, interval, and test against the baseline."""
        rows, pairs = [], {}
        # each row has its own mean, and its test against the baseline where both have a score
        for name, scores in self.scores.items():
            values = 100 * scores[np.isfinite(scores)]
            mean, low, high = estimate_mean(values) or (np.nan,) * 3
            counts = len(values), len(scores) - len(values)
            rows.append([name, self.labels[name], mean, low, high, *counts])
            one_seed = bool({name, self.baseline} & self.one_seed)
            pair = compare_examples(100 * (scores - self.scores[self.baseline])[:, None], one_seed)
            if name != self.baseline and pair is not None:
                pairs[name] = pair
        columns = ["row", "label", "coherence", "low", "high", "n", "one_sentence_or_none"]
        tests = {}
        for name, judged in correct_differences(pairs).items():
            pair = pairs[name]
            tests[name] = [pair.effect.mean, pair.examples, judged.p, judged.outcome]
        test_columns = ["difference", "tested", "p_holm", "outcome"]
        tested = pd.DataFrame.from_dict(tests, "index", columns=test_columns)
        return pd.DataFrame(rows, columns=columns).join(tested, on="row")

    def notes(self) -> list[str]:
        """Return lines about the examples and the columns."""
        count = self.table()["tested"].count()
        lines = [
            f"{self.sample}; means over summaries of two sentences or more, with the 95 % interval (bootstrap)"
        ]
        if count:
            lines.append(
                f"difference: from '{self.labels[self.baseline]}' on the examples where both have a score; p (Holm): "
                f"paired t test, corrected for the {count} tests"
            )
        if self.one_seed:
            lines.append(
                "trained systems have one seed here: another may differ, so there is no verdict on them"
            )
        if self.without:
            lines.append(f"{format_count(self.without, 'example')} left out: no reference")
        return lines

    def blocks(self) -> list[Block]:
        """Return the table."""
        columns = (
            *("", "coherence", "95 % interval", "n", "of one sentence or none"),
            *("difference", "p (Holm)"),
        )
        rows = []
        for _, row in self.table().iterrows():
            interval = f"{row['low']:.2f} to {row['high']:.2f}" if np.isfinite(row["low"]) else ""
            mean = f"{row['coherence']:.2f}" if row["n"] else "none"
            counts = f"{row['n']:,}", f"{row['one_sentence_or_none']:,}"
            gap = f"{row['difference']:+.2f}" if np.isfinite(row["difference"]) else ""
            if row["outcome"] == Outcome.NOT_SHOWN:
                gap = Tied(gap)
            p = format_p(row["p_holm"]) if np.isfinite(row["p_holm"]) else ""
            rows.append([row["label"], mean, interval, *counts, gap, p])
        tied = f"not distinguishable from '{self.labels[self.baseline]}' (p (Holm) ≥ {LEVEL})"
        return [Block("", tuple(self.notes()), columns, "lrlrrrr", rows, tied=tied)]


# Begin to read here: the command calls it.
def analyze_coherence(
    dataset: DatasetSettings, settings: CoherenceSettings, results: Results | None = None
) -> CoherenceResult:
    """Score references, shuffled references and summaries of runs.

    Raises:
        UsageError: the model is missing or not a next-sentence model, or a run has read other texts.
        EnvironmentProblem: the model cannot be downloaded.
        DataError: no example has a reference, or a file is damaged.
    """
    metric = NextSentences(Scoring(coherence_model=settings.model, device=settings.device))
    metric.check()
    return score_texts(sample_dataset(dataset, settings, settings.run, results), metric)


def score_texts(sampled: Sampled, metric: Coherence) -> CoherenceResult:
    """Score first references, shuffled first references and summaries of runs.

    Raises:
        DataError: no example has a reference.
    """
    labels = {REFERENCE: REFERENCE, SHUFFLED: SHUFFLED}
    labels |= {run.record.run_id: describe_run(run.record) for run in sampled.runs}
    rows, without = [], 0
    for example in sampled.examples("scoring neighbours"):
        if not any(example.references):
            without += 1
            continue
        reference = split_summary("\n".join(example.references[0]))
        # the seed and the id decide the order, so a sample of other examples changes nothing
        mixed = shuffled(reference, f"{sampled.seed}:{example.id}")
        texts = ["\n".join(reference), "\n".join(mixed)]
        texts += [run.summaries[example.id] for run in sampled.runs]
        rows.append([metric.score(text, example)[metric.name] for text in texts])
    if not rows:
        raise DataError(
            f"no example of split '{sampled.split.name}' has a reference: there is nothing to score"
        )
    metric_signature = metric.signature(len(rows)).replace("|", ",")
    trained = [run.record.run_id for run in sampled.runs if seed_matters(run.record)]
    return CoherenceResult(
        dataset=sampled.dataset,
        sample=sampled.describe(),
        signature=sampled.signature("analyze-coherence", LOADING_VERSION, metric=metric_signature),
        scores=dict(zip(labels, np.array(rows, np.float64).T, strict=True)),
        labels=labels,
        baseline=sampled.runs[0].record.run_id if sampled.runs else REFERENCE,
        without=without,
        one_seed=frozenset(trained),
    )


def shuffled(reference: Sequence[str], seed: str) -> Sentences:
    """Return a reference's sentences in another order, drawn by the seed; unchanged if there is no other order."""
    order = np.random.default_rng(int(digest(seed)[:16], 16))
    mixed = tuple(reference)
    # a permutation can be the order of the reference
    while len(set(reference)) > 1 and mixed == tuple(reference):
        mixed = tuple(reference[place] for place in order.permutation(len(reference)))
    return mixed
