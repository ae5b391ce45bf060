"""Proxy labels of a document of the arXiv size, beside counting with Counter: time for all variants of SEAL's Table 3.

python benchmarks/proxy_labels.py
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from longsumbench.models.seal.readers import proxy_labels
from longsumbench.rouge.all_pairs import PAIR_MEASURES

SNIPPETS, SNIPPET_LENGTH, SEGMENTS, SEGMENT_LENGTH = 224, 128, 8, 96  # SEAL, Table 4: arXiv
VOCABULARY = 32_776
ASKED = 5.0  # milliseconds a document, not sequential
DOCUMENTS = 20

Document = tuple[list[list[int]], list[list[int]]]  # snippets, segments
Labels = NDArray[np.float32]


def document(seed: int) -> Document:
    """Return snippets and segments of made-up text: ids as frequent as words are (the k-th one ∝ 1/k)."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    weights = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    snippets = [
        chance.choices(range(VOCABULARY), cum_weights=weights, k=SNIPPET_LENGTH)
        for _ in range(SNIPPETS)
    ]
    said = [
        snippets[chance.randrange(SNIPPETS)][:48] for _ in range(2 * SEGMENTS)
    ]  # half a snippet each
    return snippets, [said[2 * i] + said[2 * i + 1] for i in range(SEGMENTS)]


def ngrams(ids: list[int], n: int) -> Counter[tuple[int, ...]]:
    """Count the n-grams of a text."""
    return Counter(zip(*(ids[start:] for start in range(n)), strict=False))


def measured(common: int, snippet: int, segment: int, measure: str) -> float:
    """Return the measure from counts of n-grams."""
    numerator, denominator = {
        "f1": (2 * common, snippet + segment),
        "precision": (common, snippet),
        "recall": (common, segment),
    }[measure]
    return numerator / max(1, denominator)


def plain(
    snippets: list[list[int]], segments: list[list[int]], n: int, measure: str, sequential: bool
) -> Labels:
    """Label with Counter, a pair at a time."""
    labels = np.zeros((len(segments), len(snippets)), np.float32)
    counted = [ngrams(ids, n) for ids in snippets]
    sizes = [one.total() for one in counted]
    for row, ids in zip(labels, segments, strict=True):
        wanted = ngrams(ids, n)
        size = wanted.total()
        if not sequential:
            row[:] = [
                measured((one & wanted).total(), own, size, measure)
                for one, own in zip(counted, sizes, strict=True)
            ]
            continue
        best, common, taken = 0.0, 0, 0
        while True:
            scores = [
                0.0
                if row[i]
                else measured(common + (one & wanted).total(), taken + sizes[i], size, measure)
                for i, one in enumerate(counted)
            ]
            place = int(np.argmax(scores))
            if scores[place] <= best:
                break
            best, common, taken = (
                scores[place],
                common + (counted[place] & wanted).total(),
                taken + sizes[place],
            )
            wanted = wanted - counted[place]
            row[place] = 1
    return labels


def milliseconds(label: Callable[..., Labels], documents: list[Document], *variant: Any) -> float:
    """Return the processor time a document takes."""
    started = time.process_time()
    for snippets, segments in documents:
        label(snippets, segments, *variant)
    return 1e3 * (time.process_time() - started) / len(documents)


def main() -> None:
    """Print milliseconds of one core a document."""
    documents = [document(seed) for seed in range(DOCUMENTS)]
    print(
        f"{SNIPPETS} snippets of {SNIPPET_LENGTH} tokens, {SEGMENTS} segments of {SEGMENT_LENGTH}; ms of one core"
    )
    rows = []
    for sequential, n, measure in product((False, True), (1, 2), PAIR_MEASURES):
        slow = milliseconds(plain, documents, n, measure, sequential)
        fast = milliseconds(proxy_labels, documents, n, measure, sequential)
        beside = "" if sequential else f"{fast / ASKED:.2f}"
        rows.append(
            [
                n,
                measure,
                "yes" if sequential else "",
                f"{fast:.1f}",
                beside,
                f"{slow:.0f}",
                f"{fast / slow:.2f}",
            ]
        )
    headers = [
        "n",
        "measure",
        "sequential",
        "ms",
        f"ratio to {ASKED:.0f} ms",
        "Counter, ms",
        "ratio to Counter",
    ]
    print(tabulate(rows, headers=headers))


if __name__ == "__main__":
    main()
