"""`longsumbench score`: scores the outputs of any system.

files --read_pairs--> pairs --split_sides--> two TextTables --score_sides--> a row per example --aggregate--> Report
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path

import pandas as pd
import psutil

from longsumbench.core import Scored, Scoring, Sentences, bounds_of, check_value
from longsumbench.errors import EnvironmentProblem, UsageError, suite_errors
from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS as HEADINGS
from longsumbench.metrics.aggregate import RougeMeans, aggregate, write_scores
from longsumbench.metrics.output_facts import OutputFacts, describe_outputs, output_warnings
from longsumbench.metrics.rouge import Rouge
from longsumbench.outputs.files import PairedTexts, ScoredPair, first_ids, pair_texts, read_pairs
from longsumbench.outputs.warnings import TextTable, find_warnings, split_sides, splitting_of
from longsumbench.progress import Progress
from longsumbench.render.tables import Block, ShownInNotebooks, terminal
from longsumbench.rouge.scorer import ROUGE_TYPES, RougeScorer, signature

_log = logging.getLogger(__name__)

_PERL_DECIMALS = 5
_LARGE_PAIR = 10**10  # characters of one text × characters of the other; shorter pairs fit into memory


@dataclass(frozen=True)
class Report(ShownInNotebooks):
    """The result of `longsumbench score`.

    Attributes:
        scores: type of ROUGE → its means.
        scored: per-example scores, and the number of empty texts.
        mode: "google" or "perl".
        signature: how the scores were computed.
        warnings: probable errors in the texts.
        left_out: "empty_references", "only_predicted" and "only_referenced" → ids that are in no mean.
        outputs: statistics of the predictions, from `describe_outputs`.
    """

    scores: Mapping[str, RougeMeans]
    scored: Scored
    mode: str
    signature: str
    warnings: tuple[str, ...]
    left_out: Mapping[str, tuple[str, ...]]
    outputs: OutputFacts

    @property
    def f1(self) -> dict[str, float]:
        """F1 by type ("rouge1", "rouge2", "rougeL", "rougeLsum"), 0–100."""
        return {kind: score.f for kind, score in self.scores.items()}

    def render(self) -> str:
        """Return the table for the terminal, with counts and the signature."""
        counts = [format_count(len(self.scored.per_example), "example")]
        counts += [f"{len(ids):,} left out ({why.replace('_', ' ')})" for why, ids in self.left_out.items() if ids]
        if self.scored.empty_predictions:
            counts.append(f"{self.scored.empty_predictions:,} of them with an empty prediction, which scores 0")
        words, reference_words = self.outputs.words, self.outputs.reference_words or 0
        counts.append(f"{words:.0f} words a prediction, {reference_words:.0f} a reference")
        rows = [
            (HEADINGS[kind], f"{mean.p:.2f}", f"{mean.r:.2f}", f"{mean.f1:.2f}") for kind, mean in self.scores.items()
        ]
        block = Block("", (), ("", "P", "R", "F"), "lrrr", rows)
        return terminal("; ".join(counts), [block]) + f"\n\n{self.signature}"

    def to_json(self) -> str:
        """Return everything except per-example scores as a JSON object on one line."""
        values = {
            **{kind: asdict(score) for kind, score in self.scores.items()},
            "n": len(self.scored.per_example),
            "signature": self.signature,
            "warnings": self.warnings,
            "left_out": self.left_out,
            "empty_predictions": self.scored.empty_predictions,
            "outputs": asdict(self.outputs),
        }
        return json.dumps(values, ensure_ascii=False, allow_nan=False)

    def write_per_example(self, path: Path) -> None:
        """Write per-example scores as CSV, 0–1: in full precision, or with five digits in perl mode."""
        write_scores(path, self.scored.per_example, _PERL_DECIMALS if self.mode == "perl" else None)


@dataclass
class ScoreOptions:
    """How texts are scored: the options of `longsumbench score`, as `score` explains them."""

    mode: str = "google"
    stem: bool = True
    tokenizer: str = "default"
    wordnet: str | None = None
    resamples: int = 1_000
    resampling: str = "percentile"
    empty_references: str = "skip"

    def __post_init__(self) -> None:
        for name in ("resamples", "resampling", "empty_references"):
            check_value(f"--{name.replace('_', '-')}", getattr(self, name), bounds_of(Scoring)[name])
        if self.resampling == "perl" and self.mode != "perl":
            raise UsageError("--resampling perl needs --mode perl: it computes the intervals of ROUGE-1.5.5")
        self.scorer = RougeScorer(self.mode, self.stem, self.tokenizer, self.wordnet)


@suite_errors()
def score(
    predictions: Sequence[str | Sequence[str]] | Mapping[str, str | Sequence[str]],
    references: Sequence[str | Sequence[str | Sequence[str]]] | Mapping[str, str | Sequence[str | Sequence[str]]],
    *,
    mode: str = "google",
    stem: bool = True,
    tokenizer: str = "default",
    wordnet: str | None = None,
    resamples: int = 1_000,
    resampling: str = "percentile",
    empty_references: str = "skip",
) -> Report:
    """Compute the ROUGE of any texts, as `longsumbench score` does for files.

        score(["The cat sat."], ["A cat sat down."]).f1["rouge1"]

    Args:
        predictions: for each example, a text or a list of its sentences; a list, or a dictionary by id.
        references: for each example, a text or a list of references; each of these a text or a list of its sentences.
            A dictionary if `predictions` is one, with the same ids in any order.
        mode: "google", as rouge_score, or "perl", as ROUGE-1.5.5.
        stem: whether words are reduced to stems.
        tokenizer: "default" (a-z and 0-9) or "unicode" (the letters of all scripts).
        wordnet: the folder of WordNet's exception lists, for perl mode; "none": without them.
        resamples: of the bootstrap for the 95 % intervals.
        resampling: "percentile", or "perl" for the intervals of ROUGE-1.5.5.
        empty_references: "skip" leaves out an example whose references hold no word, "zero" scores it 0.

    Returns:
        The scores, 0-100, with intervals, the scores of each example and the signature.

    Raises:
        UsageError: an option is invalid.
        DataError: the two sides differ in length or ids, or an item is neither text nor a list of texts.
    """
    options = ScoreOptions(mode, stem, tokenizer, wordnet, resamples, resampling, empty_references)
    return _score_pairs(pair_texts(predictions, references), options)


def score_files(predictions: Path, references: Path | None, options: ScoreOptions, intersect: bool = False) -> Report:
    """Score files of any system; print warnings about the texts on stderr before scoring.

    Args:
        predictions: see `read_pairs`, as for `references` and `intersect`.
        references: None if they are in the predictions' file or folder.
        options: how they are scored.
        intersect: leave out ids that only one side has.

    Raises:
        SuiteError: a file, an option or the environment is invalid.
    """
    return _score_pairs(read_pairs(predictions, references, intersect), options)


def _score_pairs(paired: PairedTexts, options: ScoreOptions) -> Report:
    """Score texts; what seems wrong with them is reported on stderr, before they are scored."""
    scorer, zero_for_empty = options.scorer, options.empty_references == "zero"
    sides = split_sides(paired.pairs)
    predicted, referenced = sides
    outputs = describe_outputs([" ".join(text) for text in predicted.split], [[text] for text in referenced.split])
    warnings = [*_describe_left_out(paired), *find_warnings(*sides, drops=scorer.tokenizer == "default")]
    warnings += output_warnings(outputs)
    _print_warnings(warnings)
    scored = score_sides(scorer, paired.pairs, *sides, zero_for_empty)
    if scored.empty_references:
        share = f"{len(scored.empty_references):,} of {len(paired.pairs):,} examples"
        reason = f"no reference has a word that the tokenizer keeps ({first_ids(scored.empty_references)})"
        warnings.append(f"left out of the means: {share}, because {reason}")
        _print_warnings(warnings[-1:])
    scores = aggregate(scored.per_example, options.resamples, perl_resampling=options.resampling == "perl")
    signed = signature(scorer, len(scored.per_example), splitting_of(*sides), zero_for_empty)
    left_out = {
        "empty_references": scored.empty_references,
        "only_predicted": paired.only_predicted,
        "only_referenced": paired.only_referenced,
    }
    return Report(scores, scored, scorer.mode, signed, tuple(warnings), left_out, outputs)


def score_sides(
    scorer: RougeScorer,
    pairs: Sequence[ScoredPair],
    predictions: TextTable,
    references: TextTable,
    zero_for_empty: bool = False,
) -> Scored:
    """Score each prediction against its references; `predictions` and `references` are from `split_sides(pairs)`.

    Raises:
        EnvironmentProblem: a pair does not fit into this machine's memory.
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
    """Raise EnvironmentProblem if a pair of very long texts does not fit into memory, at one bit per pair of words."""
    length = sum(map(len, prediction))
    for reference in references:
        if length * sum(map(len, reference)) < _LARGE_PAIR:
            continue
        words = sum(len(sentence.split()) for sentence in prediction)
        against = [sentence.lower().split() for sentence in reference]
        rows = max(map(len, against)) + len(set(chain.from_iterable(against)))  # longest sentence + distinct words
        required, free = words * rows / 8 / 1e9, psutil.virtual_memory().available / 1e9
        if required > free:
            sizes = f"{words:,} words against {sum(map(len, against)):,}, {max(map(len, against)):,} in one sentence"
            raise EnvironmentProblem(
                f"example {name!r} ({sizes}) needs up to {required:.0f} GB of memory, {free:.0f} are free; "
                "is it one text? split its sentences, or leave it out"
            )


def _describe_left_out(paired: PairedTexts) -> Iterator[str]:
    """Yield a line for each kind of id that `--intersect` left out."""
    if ids := paired.only_predicted:
        yield f"{format_count(len(ids), 'prediction')} without references left out ({first_ids(ids)})"
    if ids := paired.only_referenced:
        yield f"{format_count(len(ids), 'reference')} without a prediction left out ({first_ids(ids)})"


def _print_warnings(warnings: Sequence[str]) -> None:
    for line in warnings:
        _log.warning(f"warning: {line}")
