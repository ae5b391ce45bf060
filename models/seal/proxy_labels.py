"""Proxy labels: how much of the reference, or of a segment of it, a snippet says (SEAL, §3.4, §3.5, Appendix A).

Pure functions over token ids; no torch. Letters: N snippets, S segments.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from longsumbench.rouge.all_pairs import rouge_n
from longsumbench.rouge.selection import sequential_selection


def target_segments(labels: Sequence[int], segment_length: int, end: int) -> list[list[int]]:
    """Cut a target into segments, without the end token (SEAL, §3.5).

    The end token takes a place: if it is alone in the last segment, that segment is empty. If `segment_length` is at
    least the target's length, there is one segment, the whole summary, as EA's labels need.

    Args:
        labels: the target's ids, the end token last.
        segment_length: tokens of a segment, with the end token.
        end: the id of the end token.

    Raises:
        ValueError: the target does not end with the end token.
    """
    if not len(labels) or labels[-1] != end:
        raise ValueError(f"the target does not end with the end token {end}")
    starts = range(0, len(labels), segment_length)
    return [[token for token in labels[start : start + segment_length] if token != end] for start in starts]


def proxy_labels(
    snippets: Sequence[Sequence[int]],
    segments: Sequence[Sequence[int]],
    ngram: int = 2,
    measure: str = "f1",
    sequential: bool = False,
) -> NDArray[np.float32]:
    """Label every snippet with its ROUGE-n against every segment of the reference (SEAL, Table 3).

    The count of a shared n-gram is the smaller of its two counts. N-grams cross neither snippets nor segments. Snippets
    and segments of fewer than n tokens have label 0.

    Args:
        snippets: token ids, without special tokens.
        segments: token ids of the reference's segments; the whole reference is one segment for EA.
        ngram: n.
        measure: "f1", "precision" (over the snippet's n-grams) or "recall" (over the segment's).
        sequential: labels are 1 for the snippets that `sequential_selection` selects for the segment, 0 for others.

    Returns:
        [S, N], 0–1.
    """
    if not sequential:
        return rouge_n(snippets, segments, ngram)[measure].astype(np.float32)
    labels = np.zeros((len(segments), len(snippets)), np.float32)
    for row, indices in zip(labels, sequential_selection(snippets, segments, ngram, measure), strict=True):
        row[indices] = 1
    return labels
