"""Scores the coherence of references, shuffled references and summaries of runs, and writes it (PageSum, Table 4).

texts of each row --Coherence (PageSum, Eq. 12)--> one score per example --table--> means, intervals, paired tests
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench.analysis.sampled import AnalysisResult, Sampled, SampleSettings, sample_dataset
from longsumbench.core import DatasetSettings, Device, Scoring, Sentences, Text, setting
from longsumbench.core.versions import READING_VERSION
from longsumbench.errors import DataError, UsageError
from longsumbench.files import digest
from longsumbench.formatting import format_count, format_p
from longsumbench.leaderboards.seed_groups import compare_examples, seed_matters
from longsumbench.leaderboards.significance import LEVEL, UNDISTINGUISHED, judge_differences
from longsumbench.metrics.aggregate import MEAN_RESAMPLES, Estimate
from longsumbench.metrics.coherence import Coherence
from longsumbench.metrics.statistics import bootstrap_interval
from longsumbench.render.figures import (
    GREY,
    add_title_and_notes,
    draw_intervals,
    render_picture,
    system_styles,
)
from longsumbench.render.tables import Block, Tied
from longsumbench.runs.results import Results
from longsumbench.sentences import split_summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
class CoherenceFound(AnalysisResult):
    """The result of `longsumbench analyze coherence`."""

    analysis: ClassVar[str] = "coherence"
    scores: dict[
        str, NDArray[np.float64]
    ]  # row → [E], 0–1; NaN for a text of fewer than two sentences
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
        for name, scores in self.scores.items():
            values = 100 * scores[np.isfinite(scores)]
            low, high = (
                bootstrap_interval(values, MEAN_RESAMPLES, 1)
                if len(values) > 1
                else (np.nan, np.nan)
            )
            row: dict[str, Any] = {"row": name, "label": self.labels[name]}
            row |= {
                "coherence": values.mean() if len(values) else np.nan,
                "low": low,
                "high": high,
                "n": len(values),
            }
            row |= {"one_sentence_or_none": len(scores) - len(values)}
            one_seed = bool({name, self.baseline} & self.one_seed)
            pair = compare_examples(100 * (scores - self.scores[self.baseline])[:, None], one_seed)
            if name != self.baseline and pair is not None:
                row |= {"difference": pair.effect.mean, "tested": pair.examples}
                pairs[name] = pair
            rows.append(row)
        judged = judge_differences(pairs)
        columns = (
            "row",
            "label",
            "coherence",
            "low",
            "high",
            "n",
            "one_sentence_or_none",
            "difference",
            "tested",
        )
        table = pd.DataFrame(rows).reindex(columns=columns)
        names = table["row"]
        p_values = {name: test.p for name, test in judged.items()}
        outcomes = {name: test.outcome for name, test in judged.items()}
        return table.assign(p_holm=names.map(p_values).astype(float), outcome=names.map(outcomes))

    def notes(self) -> list[str]:
        """Return lines about the examples and the columns."""
        count = int(self.table()["tested"].notna().sum())
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
        view = (
            "",
            "coherence",
            "95 % interval",
            "n",
            "of one sentence or none",
            "difference",
            "p (Holm)",
        )
        rows = []
        for _, row in self.table().iterrows():
            interval = f"{row['low']:.2f} to {row['high']:.2f}" if np.isfinite(row["low"]) else ""
            mean = f"{row['coherence']:.2f}" if row["n"] else "none"
            cells = [
                row["label"],
                mean,
                interval,
                f"{row['n']:,}",
                f"{row['one_sentence_or_none']:,}",
            ]
            rows.append([*cells, *_tested(row)])
        tied = f"not distinguishable from '{self.labels[self.baseline]}' (p (Holm) ≥ {LEVEL})"
        return [Block("", tuple(self.notes()), view, "lrlrrrr", rows, tied=tied)]

    def pictures(self) -> dict[str, bytes]:
        """Draw each mean with its interval; return "png" and "svg" → bytes."""
        return render_picture(
            (_WIDTH, _REST + _ROW * len(self.scores)), lambda figure: _draw_rows(figure, self)
        )


def _tested(row: Any) -> list[str]:
    if not np.isfinite(row["difference"]):
        return ["", ""]
    gap = f"{row['difference']:+.2f}"
    if row["outcome"] == UNDISTINGUISHED:
        gap = Tied(gap)
    return [gap, format_p(row["p_holm"]) if np.isfinite(row["p_holm"]) else ""]


def analyze_coherence(
    dataset: DatasetSettings, settings: CoherenceSettings, results: Results | None = None
) -> CoherenceFound:
    """Score references, shuffled references and summaries of runs.

    Raises:
        UsageError: the model is missing or not a next-sentence model, or a run has read other texts.
        EnvironmentProblem: the model cannot be downloaded.
        DataError: no example has a reference, or a file is damaged.
    """
    metric = NextSentences(Scoring(coherence_model=settings.model, device=settings.device))
    metric.check()
    return score_texts(sample_dataset(dataset, settings, settings.run, results), metric)


def score_texts(sampled: Sampled, metric: Coherence) -> CoherenceFound:
    """Score first references, shuffled first references and summaries of runs.

    Raises:
        DataError: no example has a reference.
    """
    names = [REFERENCE, SHUFFLED, *(run.record.run_id for run in sampled.runs)]
    rows, without = [], 0
    for example in sampled.examples("scoring neighbours"):
        if not any(example.references):
            without += 1
            continue
        reference = split_summary("\n".join(example.references[0]))
        mixed = shuffled(reference, f"{sampled.seed}:{example.id}")
        texts = [
            "\n".join(reference),
            "\n".join(mixed),
            *(run.summaries[example.id] for run in sampled.runs),
        ]
        rows.append([metric.score(text, example)[metric.name] for text in texts])
    if not rows:
        raise DataError(
            f"no example of split '{sampled.split.name}' has a reference: there is nothing to score"
        )
    columns = dict(zip(names, np.array(rows, np.float64).T, strict=True))
    metric_signature = metric.signature(len(rows)).replace("|", ",")
    trained = [run.record.run_id for run in sampled.runs if seed_matters(run.record)]
    return CoherenceFound(
        dataset=sampled.dataset,
        sample=sampled.describe(),
        signature=sampled.signature("analyze-coherence", READING_VERSION, metric=metric_signature),
        scores=columns,
        labels={REFERENCE: REFERENCE, SHUFFLED: SHUFFLED}
        | {run.record.run_id: run.label for run in sampled.runs},
        baseline=names[2] if sampled.runs else REFERENCE,
        without=without,
        one_seed=frozenset(trained),
    )


def shuffled(reference: Sequence[str], seed: str) -> Sentences:
    """Return a reference's sentences in another order, drawn by the seed; unchanged if there is no other order."""
    order, mixed = np.random.default_rng(int(digest(seed)[:16], 16)), list(reference)
    while len(set(reference)) > 1 and mixed == list(reference):
        mixed = [reference[place] for place in order.permutation(len(reference))]
    return tuple(mixed)


_WIDTH, _ROW, _REST = (
    7.4,
    0.42,
    1.55,
)  # inches: the figure's width, a row's height, the margins' height
_NUMBER: dict[str, Any] = {
    "xytext": (7, 0),
    "textcoords": "offset points",
    "va": "center",
    "fontsize": 9,
}
_TICK_LABEL_WIDTH, _TITLE_WIDTH, _NOTE_WIDTH = 30, 60, 105  # characters


def _draw_rows(figure: "Figure", result: CoherenceFound) -> None:
    table = result.table()
    caption = f"{result.sample}. Bars: 95 % intervals over summaries of two sentences or more (n)."
    add_title_and_notes(
        figure, textwrap.fill(result.title, _TITLE_WIDTH), textwrap.fill(caption, _NOTE_WIDTH)
    )
    plot, rows = figure.subplots(), []
    numbers = [
        Estimate(*bounds)
        for bounds in table[["coherence", "low", "high"]].to_numpy(np.float64).tolist()
    ]
    styles = system_styles([label.split()[0] for label in table["label"]])
    for row, style, number in zip(table.itertuples(), styles, numbers, strict=True):
        label = textwrap.fill(f"{row.label}, n = {row.n:,}", _TICK_LABEL_WIDTH)
        rows.append((label, number, {"color": GREY} if row.row in (REFERENCE, SHUFFLED) else style))
    draw_intervals(plot, rows)
    for place, number in enumerate(numbers):
        if np.isfinite(number.mean):
            right = number.high if np.isfinite(number.high) else number.mean
            plot.annotate(f"{number.mean:.2f}", (right, place), **_NUMBER)
    plot.margins(x=0.12)
    plot.set_xlabel(
        "coherence, 0–100: how likely each sentence follows the one before", fontsize=9.5
    )
