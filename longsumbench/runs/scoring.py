"""Scores of a run: per example, per checkpoint, and their means."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from longsumbench.core import (
    Decoding,
    Example,
    FitReport,
    Metric,
    RunConfig,
    Scoring,
    Split,
    Summary,
    count_words,
    registry,
    total_truncation,
)
from longsumbench.corpora.loading.load import Texts, warn_once
from longsumbench.corpora.loading.text_damage import describe_marks, marks_in
from longsumbench.errors import DataError
from longsumbench.metrics.aggregate import column_means, write_scores
from longsumbench.metrics.evaluate import (
    DEFAULT_RANKING_SCORE,
    CheckpointMeans,
    Evaluation,
    default_metrics,
    evaluate,
)
from longsumbench.metrics.rouge import Rouge
from longsumbench.rouge.tokenizer import dropped_share
from longsumbench.runs.record import Ledger, output_files
from longsumbench.runs.verdicts import write_verdicts

if TYPE_CHECKING:
    import pandas as pd

_SAMPLED_REFERENCES, _MOST = 100, 0.5


def scored_summaries(summaries: Sequence[Summary], decoding: Decoding) -> list[Summary]:
    """Return the summaries that count: with `decode.failed=leave_out`, those with an answer."""
    leaves_out = decoding.failed == "leave_out"
    return [summary for summary in summaries if not (leaves_out and summary.counts.get("failed"))]


def score_run(
    config: RunConfig,
    texts: Texts,
    report: FitReport,
    outputs: Sequence[Sequence[Summary]],
    folder: Path,
) -> Evaluation:
    """Score the summaries of each kept checkpoint, the best first, and write the scores per example.

    Raises:
        DataError: no example has an answer; the same command asks again.
    """
    split = texts.splits[config.dataset.split]
    if outputs[0] and all(summary.counts.get("failed") for summary in outputs[0]):
        (folder / "predictions.jsonl").unlink(missing_ok=True)
        raise DataError(
            "no example has an answer: correct what the warnings name, then run the same command again"
        )
    if config.decode.failed == "leave_out":
        outputs = [scored_summaries(summaries, config.decode) for summaries in outputs]
        split = split.select([summary.id for summary in outputs[0]])
    for summaries in outputs:
        check_summarized(summaries, split)
    rouge = Rouge(config.score)
    metrics: list[Metric] = [
        rouge,
        *(registry.metrics.load(name)(config.score) for name in texts.metrics),
    ]
    ranked_by = metrics[1].columns[0] if metrics[1:] else DEFAULT_RANKING_SCORE
    predictions = [[summary.text for summary in summaries] for summaries in outputs]
    # Systems copy the marks of the texts.
    if "marks" not in texts.metadata:
        marked = [(summary.id, marks_in(summary.text)) for summary in outputs[0]]
        for problem in describe_marks(marked, len(marked), "outputs"):
            warn_once(f"{config.model.name}: {problem}")
    examples = scored_examples(config, split, predictions[0])
    asked_for = requested_metrics(config, texts)
    requested = (
        default_metrics(config.score, [*texts.metrics, *(metric.name for metric in asked_for)])
        + asked_for
    )
    scored = evaluate(
        predictions, examples, metrics, config.score, requested, ranked_by, with_floor=True
    )
    write_each_scores(folder, scored.tables, scored.per_example)
    write_verdicts(folder, scored.sentences)
    if len(outputs) == 1:
        return scored.evaluation
    checkpoints = []
    for (step, loss), table in zip(report.kept, scored.tables, strict=False):
        means = column_means(table, scored.evaluation.units)
        checkpoints.append(CheckpointMeans(step, loss, means))
    return replace(scored.evaluation, checkpoints=tuple(checkpoints))


def copies_sources(config: RunConfig, report: FitReport, checkpoint: str | None) -> bool:
    """Return True if the summaries of a system, whose weights are from `checkpoint`, have words of their sources only."""
    if config.decode.mode == "extract" and "decode" in config.model.decided_by:
        return True
    return not (report.parameters or checkpoint)


def total_ledger(summaries: Sequence[Summary], copies: bool, decoding: Decoding) -> Ledger:
    """Sum what the summaries of a run say about their texts; with `copies` their words are those of the sources."""
    scored = scored_summaries(summaries, decoding)
    truncations = [summary.truncation for summary in scored if summary.truncation is not None]
    source = total_truncation(truncations) if truncations else None
    counts: dict[str, float] = {}
    for summary in summaries:
        for name, count in summary.counts.items():
            counts[name] = counts.get(name, 0) + count
    num_words = sum(count_words([summary.text]) for summary in summaries)
    return Ledger(
        source=source,
        outputs_cut=sum(not summary.complete for summary in summaries),
        words_copied=min(source.words_seen, num_words) if source and copies else None,
        counts=counts,
    )


def scored_examples(
    config: RunConfig, split: Split, predictions: Sequence[str]
) -> Split | list[Example]:
    """Return the examples with the references that predictions are scored against.

    A system that writes a reference is scored against the others.
    """
    if not config.model.capabilities.writes_reference:
        return split
    examples = []
    for example, text in zip(split, predictions, strict=False):
        references = [item for item in example.references if "\n".join(item) != text]
        examples.append(replace(example, references=tuple(references)))
    return examples


def warn_about_dropped_letters(scoring: Scoring, split: Split) -> None:
    """Warn before the training if the tokenizer drops most letters of the first references."""
    examples = (split[index] for index in range(min(len(split), _SAMPLED_REFERENCES)))
    references = chain.from_iterable(example.references[:1] for example in examples)
    dropped = dropped_share(" ".join(chain.from_iterable(references)))
    if scoring.tokenizer == "default" and dropped > _MOST:
        problem = f"score.tokenizer=default drops {100 * dropped:.0f} % of the references' letters and digits"
        warn_once(
            f"{problem}: only a–z and 0–9 can match; score.tokenizer=unicode keeps the others"
        )


def write_each_scores(
    folder: Path, tables: "Sequence[pd.DataFrame]", per_example: "pd.DataFrame"
) -> None:
    """Write the scores of each checkpoint, and the means of several."""
    for (_, name), table in zip(output_files(len(tables)), tables, strict=True):
        write_scores(folder / name, table)
    if tables[1:]:
        write_scores(folder / "scores.csv", per_example)


def requested_metrics(config: RunConfig, texts: Texts) -> list[Metric]:
    """Return the configured metrics, without ROUGE and the dataset's own metrics."""
    names = [
        name
        for name in dict.fromkeys(config.score.metrics)
        if name not in ("rouge", *texts.metrics)
    ]
    return [registry.metrics.load(name)(config.score) for name in names]


def check_summarized(summaries: Sequence[Summary], split: Split) -> None:
    """Check that summaries are those of the first examples of a split, in its order.

    Raises:
        DataError: an example has no summary.
    """
    for summary, name in zip(summaries, split.ids, strict=False):
        if summary.id != name:
            raise DataError(
                f"predictions.jsonl has no prediction for '{name}'; run it again with overwrite=true"
            )
