"""`longsumbench score`: outputs of any system against their references.

files --scored_files--> pairs --split--> two Sides --RougeScorer--> a row an example --aggregate--> Report
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import pandas as pd
import psutil

from longsumbench import sentences
from longsumbench.analysis.score.files import PairedTexts, RawText, ScoredPair, first_ids, read_pairs
from longsumbench.analysis.score.warnings import TextTable, find_warnings
from longsumbench.api.documents import Sentences
from longsumbench.api.metric import Scored
from longsumbench.errors import EnvironmentProblem
from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS as HEADINGS
from longsumbench.metrics.aggregate import aggregate, write_scores
from longsumbench.metrics.output_facts import describe_outputs, output_warnings
from longsumbench.metrics.rouge import Rouge
from longsumbench.progress import Progress, print_line
from longsumbench.report.tables import Block, terminal
from longsumbench.rouge.scorer import ROUGE_TYPES, RougeScorer
from longsumbench.rouge.signature import signature

_PERL_DECIMALS = 5
_LONG_PAIR = 10**10  # characters of one text × characters of the other; shorter pairs fit into any memory
_GIVEN = "given"  # in a signature: the texts came as lists of sentences


@dataclass(frozen=True)
class Report:
    """What came out.

    Attributes:
        scores: type → {"p", "r", "f", "f_lo", "f_hi"}, 0–100.
        scored: the examples' own scores, and what of them was empty.
        mode: whose ROUGE it is.
        signature: how the scores were computed.
        warnings: what seems to be wrong with the texts.
        left_out: "empty_references", "only_predicted" and "only_referenced" → ids that are in no mean.
        outputs: what the predictions are like, from `describe_outputs`.
    """

    scores: Mapping[str, Mapping[str, float]]
    scored: Scored
    mode: str
    signature: str
    warnings: tuple[str, ...]
    left_out: Mapping[str, tuple[str, ...]]
    outputs: Mapping[str, float]

    def render(self) -> str:
        """Draw the table, with what was counted and the signature."""
        counts = [format_count(len(self.scored.per_example), "example")]
        counts += [f"{len(ids):,} left out ({why.replace('_', ' ')})" for why, ids in self.left_out.items() if ids]
        if self.scored.empty_predictions:
            counts.append(f"{self.scored.empty_predictions:,} of them with an empty prediction, which scores 0")
        counts.append(
            f"{self.outputs['words']:.0f} words a prediction, {self.outputs['reference_words']:.0f} a reference"
        )
        rows = [
            (HEADINGS[kind], f"{score['p']:.2f}", f"{score['r']:.2f}", f"{score['f']:.2f} ±{_half(score):.2f}")
            for kind, score in self.scores.items()
        ]
        block = Block("", (), ("", "P", "R", "F"), "lrrr", rows)
        return terminal("; ".join(counts), [block]) + f"\n\n{self.signature}"

    def to_json(self) -> str:
        """Return everything but the examples' own scores as a JSON object on one line."""
        values = {
            **self.scores,
            "n": len(self.scored.per_example),
            "signature": self.signature,
            "warnings": self.warnings,
            "left_out": self.left_out,
            "empty_predictions": self.scored.empty_predictions,
            "outputs": self.outputs,
        }
        return json.dumps(values, ensure_ascii=False, allow_nan=False)

    def write_per_example(self, path: Path) -> None:
        """Write the examples' own scores as CSV, 0–1: in full precision, in perl mode with its five digits."""
        write_scores(path, self.scored.per_example, _PERL_DECIMALS if self.mode == "perl" else None)


def score_files(
    predictions: Path,
    references: Path | None,
    scorer: RougeScorer,
    resamples: int = 1_000,
    intersect: bool = False,
    perl_resampling: bool = False,
    zero_for_empty: bool = False,
) -> Report:
    """Score files of any system; what seems wrong with them is told on stderr, before they are scored.

    Args:
        predictions: as `read_pairs` takes it; so are `references` and `intersect`.
        references: None: they stand beside the predictions.
        scorer: how.
        resamples: of the bootstrap behind the 95 % intervals.
        intersect: whether to go on without the ids that only one side has.
        perl_resampling: whether the intervals are ROUGE-1.5.5's own.
        zero_for_empty: whether an example whose references hold no word scores 0; False: it is left out of the means.

    Raises:
        SuiteError: something the user can act on.
    """
    paired = read_pairs(predictions, references, intersect)
    sides = split_sides(paired.pairs)
    predicted, referenced = sides
    outputs = describe_outputs([" ".join(text) for text in predicted.split], [[text] for text in referenced.split])
    warnings = [*_passed_over(paired), *find_warnings(*sides, drops=scorer.tokenizer == "default")]
    warnings += output_warnings(outputs)
    _tell(warnings)
    scored = score_sides(scorer, paired.pairs, *sides, zero_for_empty)
    if scored.empty_references:
        share = f"{len(scored.empty_references):,} of {len(paired.pairs):,} examples"
        reason = f"no reference holds a word that the tokenizer keeps ({first_ids(scored.empty_references)})"
        warnings.append(f"left out of the means: {share}, for {reason}")
        _tell(warnings[-1:])
    scores = aggregate(scored.per_example, resamples, perl_resampling=perl_resampling)
    signed = signature(scorer, len(scored.per_example), _splitting(*sides), zero_for_empty)
    left_out = {
        "empty_references": scored.empty_references,
        "only_predicted": paired.only_predicted,
        "only_referenced": paired.only_referenced,
    }
    return Report(scores, scored, scorer.mode, signed, tuple(warnings), left_out, outputs)


def split_sides(pairs: Sequence[ScoredPair]) -> tuple[TextTable, TextTable]:
    """Split all running text into sentences, both sides alike; lists of sentences stay as they are."""
    ids = [pair.id for pair in pairs]
    predictions = [pair.prediction for pair in pairs]
    owners = [pair.id for pair in pairs for _ in pair.references]
    references = list(chain.from_iterable(pair.references for pair in pairs))
    return (
        TextTable("predictions", ids, predictions, list(map(_sentences, predictions))),
        TextTable("references", owners, references, list(map(_sentences, references))),
    )


def score_sides(
    scorer: RougeScorer,
    pairs: Sequence[ScoredPair],
    predictions: TextTable,
    references: TextTable,
    zero_for_empty: bool = False,
) -> Scored:
    """Score each prediction against its references.

    Args:
        scorer: how.
        pairs: what belongs together.
        predictions: the sentences of each pair's prediction.
        references: those of their references, of one pair after the other.
        zero_for_empty: as in `score_files`.

    Raises:
        EnvironmentProblem: a pair is too long for this machine's memory.
    """
    rows: dict[str, list[float]] = {}
    unusable, empty = [], 0
    remaining = iter(references.split)
    with Progress("scoring", len(pairs)) as progress:
        for pair, prediction in zip(pairs, predictions.split, strict=True):
            targets = list(islice(remaining, len(pair.references)))
            words = (scorer.has_words((sentence,)) for sentence in chain.from_iterable(targets))
            if (zero_for_empty and targets) or any(words):  # mostly the first one
                _check_memory(pair.id, prediction, targets)
                scores = scorer.score(prediction, targets)
                rows[pair.id] = [value for kind in ROUGE_TYPES for value in scores[kind]]
                empty += not prediction
            else:
                unusable.append(pair.id)
            progress.advance()
    index = pd.Index(list(rows), name="id", dtype=object)
    table = pd.DataFrame(list(rows.values()), index=index, columns=list(Rouge.columns), dtype=float)
    return Scored(table, tuple(unusable), empty)


def _check_memory(name: str, prediction: Sentences, references: Sequence[Sentences]) -> None:
    """Check that a pair of very long texts can be matched: a bit for each word here and each there, at the most."""
    length = sum(map(len, prediction))
    for reference in references:
        if length * sum(map(len, reference)) < _LONG_PAIR:
            continue
        words = sum(len(sentence.split()) for sentence in prediction)
        against = [sentence.lower().split() for sentence in reference]
        rows = max(map(len, against)) + len(set(chain.from_iterable(against)))  # of its longest sentence, of its words
        needed, free = words * rows / 8 / 1e9, psutil.virtual_memory().available / 1e9
        if needed > free:
            sizes = f"{words:,} words against {sum(map(len, against)):,}, {max(map(len, against)):,} in one sentence"
            raise EnvironmentProblem(
                f"example {name!r} ({sizes}) needs up to {needed:.0f} GB of memory, {free:.0f} are free; "
                "is it one text? split its sentences, or leave it out"
            )


def _splitting(predictions: TextTable, references: TextTable) -> str:
    """Name for the signature who split the texts into sentences."""
    ways = [
        "+".join(sorted({_GIVEN if isinstance(text, tuple) else sentences.SPLITTER_NAME for text in side.texts}))
        for side in (predictions, references)
    ]
    return ways[0] if ways[0] == ways[1] else f"predictions={ways[0]},references={ways[1]}"


def _sentences(text: RawText) -> tuple[str, ...]:
    return sentences.split_summary(text) if isinstance(text, str) else text


def _half(score: Mapping[str, float]) -> float:
    """Return half the width of the interval."""
    return (score["f_hi"] - score["f_lo"]) / 2


def _passed_over(paired: PairedTexts) -> Iterator[str]:
    """Tell of what `--intersect` passed over."""
    told = (
        ("prediction", "without references left out", paired.only_predicted),
        ("reference", "without a prediction left out", paired.only_referenced),
        ("id", "found twice with the same texts, each counted once", paired.repeated),
    )
    yield from (f"{format_count(len(ids), noun)} {what} ({first_ids(ids)})" for noun, what, ids in told if ids)


def _tell(warnings: Sequence[str]) -> None:
    for line in warnings:
        print_line(f"warning: {line}")
