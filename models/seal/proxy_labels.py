"""Proxy labels: how much of the gold summary, or of a segment of it, a snippet says (SEAL, §3.4, §3.5, Appendix A).

Pure functions over token ids; no torch. Letters: N snippets, S segments.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from longsumbench.api.config import check_choice, check_minimum
from longsumbench.rouge.all_pairs import PAIR_MEASURES, rouge_n
from longsumbench.rouge.selection import sequential_selection


def target_segments(labels: Sequence[int], segment_length: int, end: int) -> list[list[int]]:
    """Cut a target into the stretches that are decoded one after another, without the end token (SEAL, §3.5).

    The end token takes a place: a target whose end begins a stretch of its own has an empty last segment. With
    `segment_length` at the target's length or above there is one segment: the whole summary, which EA's labels want.

    Args:
        labels: the target's ids, the end token last.
        segment_length: tokens of a segment, the end token's place counted.
        end: the id of the end token.

    Raises:
        UsageError: the length is below 1.
        ValueError: the target does not end with the end token.
    """
    check_minimum("segment_length", segment_length, 1)
    if not len(labels) or labels[-1] != end:
        raise ValueError(f"the target does not end with the end token {end}")
    starts = range(0, len(labels), segment_length)
    return [[one for one in labels[start : start + segment_length] if one != end] for start in starts]


def proxy_labels(
    snippets: Sequence[Sequence[int]],
    segments: Sequence[Sequence[int]],
    ngram: int = 2,
    measure: str = "f1",
    sequential: bool = False,
) -> NDArray[np.float32]:
    """Label every snippet by its ROUGE-n against every gold segment (SEAL, Table 3).

    An n-gram counts as often as it stands in both, and crosses neither snippets nor segments. What is shorter than n
    tokens, a snippet or a segment, has label 0.

    Args:
        snippets: token ids, without special tokens.
        segments: the same for the gold segments; the whole summary is one segment.
        ngram: n.
        measure: "f1", "precision" (over the snippet's n-grams) or "recall" (over the segment's).
        sequential: labels of 1 and 0 instead: for each segment, of the snippets that `sequential_selection` chooses.

    Returns:
        [S, N], 0–1.

    Raises:
        UsageError: an unknown measure, or n below 1.
    """
    check_choice("measure", measure, PAIR_MEASURES)
    if not sequential:
        return rouge_n(snippets, segments, ngram)[measure].astype(np.float32)
    labels = np.zeros((len(segments), len(snippets)), np.float32)
    for row, chosen in zip(labels, sequential_selection(snippets, segments, ngram, measure), strict=True):
        row[chosen] = 1
    return labels
