"""Summaries made of the source's best-scored sentences.

    Example, ScoredSpans --chosen_sentences--> chosen sentences, in the order of the source

A span is a sentence, or several that are chosen together (a snippet, a paragraph).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longsumbench.core import (
    Decoding,
    Evidence,
    Example,
    Scores,
    Split,
    Summary,
    Truncation,
    count_words,
    word_pattern,
)
from longsumbench.errors import MissingSplit, UsageError
from longsumbench.modeling.ranking import rank, similarities
from longsumbench.sentences import sentence_key


@dataclass(frozen=True)
class ScoredSpans:
    """Scores of parts of a source."""

    # (first, last + 1) of each part, as indices of `list(example.sentences())`; disjoint, in the order of the source
    spans: Sequence[tuple[int, int]]
    scores: Scores  # one for each span, finite; higher is better
    # what was cut from the source before it was scored; None if nothing was
    truncation: Truncation | None = None


def score_spans(
    spans: Sequence[tuple[int, int]], weights: NDArray[Any], truncation: Truncation
) -> ScoredSpans:
    """Return the mean weights over all steps as scores; 0 without steps. Empty spans are left out.

    `spans` are in any order; `weights` is [spans, steps].
    """
    means = weights.sum(1, dtype=np.float64) / max(1, weights.shape[1])
    indices = [index for index, (first, end) in enumerate(spans) if first < end]
    indices.sort(key=spans.__getitem__)
    return ScoredSpans([spans[index] for index in indices], means[indices], truncation)


def chosen_sentences(
    example: Example, scored: ScoredSpans, length: int, redundancy: float = 0.0
) -> dict[int, str]:
    """Return index → text of the sentences of the best spans, in the order of the source.

    A sentence that equals an earlier choice, except for case and blanks, is skipped. The last choice is cut.

    Args:
        example: the source.
        scored: its spans and their scores; equal scores keep the order of the source.
        length: words to return; fewer if the spans have fewer.
        redundancy: λ, 0–1. If above 0, the next span is the one with the highest (1 − λ) · score − λ · similarity.
            Scores are scaled to 0–1. The similarity is the largest tf-idf cosine with a chosen span (Carbonell &
            Goldstein 1998).
    """
    sentences = list(example.sentences())
    ranked: Iterable[int] = rank(scored.scores)
    if redundancy:
        ranked = _ranked_with_redundancy(sentences, scored, redundancy)
    order = chain.from_iterable(range(*scored.spans[index]) for index in ranked)
    return _within_length(sentences, length, _without_copies(sentences, order))


def _ranked_with_redundancy(
    sentences: Sequence[str], scored: ScoredSpans, redundancy: float
) -> Iterator[int]:
    """Yield the indices of the spans from the best to the worst; each choice lowers the values of similar spans."""
    if not len(scored.scores):
        return
    cosines = similarities([" ".join(sentences[first:end]) for first, end in scored.spans])
    values = scaled_scores(scored.scores, 1 - redundancy)
    closest = np.zeros(len(values))  # cosine with the most similar chosen span
    available = np.ones(len(values), np.bool_)
    while available.any():
        best = int(np.argmax(np.where(available, values - redundancy * closest, -np.inf)))
        yield best
        available[best] = False
        closest = np.maximum(closest, cosines[best])


def scaled_scores(scores: Scores, highest: float) -> Scores:
    """Return scores from 0 to `highest`; equal ones are 0."""
    scaled: Scores = highest * (scores - scores.min()) / (np.ptp(scores) or 1.0)
    return scaled


def _without_copies(sentences: Sequence[str], order: Iterable[int]) -> Iterator[int]:
    """Yield the indices of sentences that have words and differ from all before them."""
    seen = {""}
    for index in order:
        key = sentence_key(sentences[index])
        if key not in seen:
            seen.add(key)
            yield index


def leading_sentences(
    sentences: Sequence[str], length: int, order: Iterable[int] | None = None
) -> list[str]:
    """Return the leading sentences up to `length` words; the last one is cut.

    With `order`, these are the first of some indices, in the order of `sentences`.
    """
    order = range(len(sentences)) if order is None else order
    return list(_within_length(sentences, length, order).values())


def _within_length(sentences: Sequence[str], length: int, order: Iterable[int]) -> dict[int, str]:
    """Return index → text of the first sentences of an order up to `length` words, sorted by index."""
    pattern = word_pattern(" ".join(sentences))
    selected: dict[int, str] = {}
    for index in order:
        if length <= 0:
            break
        sentence = sentences[index]
        words = list(pattern.finditer(sentence))
        if len(words) > length:
            sentence = sentence[: words[length - 1].end()]
        selected[index] = sentence
        length -= len(words)
    return dict(sorted(selected.items()))


def extract_length(
    length: str, example: Example, mean: int | None, setting: str = "decode.extract_length"
) -> int:
    """Return the number of words of an extract.

    `mean` is the mean length of the training targets; None if it is unknown.

    Raises:
        UsageError: the mean is needed, and unknown.
    """
    if length == "reference":
        return count_words(example.references[0])
    if length != "train":
        return int(length)
    if mean is None:
        raise UsageError(
            f"{setting}=train needs the mean length of training targets: choose {setting}=<words>"
        )
    return mean


def mean_target_words(train: Split | None, others: str = "") -> int:
    """Return the mean length of the first references in words, at least 1.

    Raises:
        MissingSplit: there are no training texts. The message names other values of `model.length`.
    """
    if not train:
        advice = f"choose model.length=<words>{others}"
        raise MissingSplit(f"model.length=train needs a train split: {advice}")
    return max(1, round(fmean(train.reference_words)))


def extracts(
    examples: Sequence[Example],
    scored: Iterable[ScoredSpans],
    mean: int | None,
    decoding: Decoding,
    with_evidence: bool,
) -> Iterator[Summary]:
    """Yield the extract of every example; the evidence is the scores, and how many words of a span were copied."""
    for example, scores in zip(examples, scored, strict=True):
        length = extract_length(decoding.extract_length, example, mean)
        selected = chosen_sentences(example, scores, length, decoding.redundancy)
        evidence = _evidence(example, scores, selected) if with_evidence else None
        yield Summary(
            example.id, "\n".join(selected.values()), scores.truncation, evidence=evidence
        )


def _evidence(example: Example, scored: ScoredSpans, selected: Mapping[int, str]) -> Evidence:
    sentences = list(example.sentences())
    texts, words = [], []
    for first, end in scored.spans:
        texts.append(" ".join(sentences[first:end]))
        words.append(count_words(selected.get(index, "") for index in range(first, end)))
    arrays: dict[str, NDArray[Any]] = {
        "scores": np.asarray(scored.scores)[None],
        "selected_words": np.array(words, np.int32)[None],
    }
    return Evidence(arrays, dict.fromkeys(arrays, ("segment", "unit")), {"unit": tuple(texts)})
