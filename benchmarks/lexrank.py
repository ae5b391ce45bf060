"""Ranking the paragraphs of a cluster of WikiSum's mean size, beside scikit-learn's tf-idf and networkx's PageRank.

OMP_NUM_THREADS=1 python benchmarks/lexrank.py [--paragraphs 525] [--words 70] [--repeats 20]

Text is made up, with words as frequent as in natural text. Times are of one core, begin with strings and end with
scores; the works take turns, the first of which is left out, and the median is printed.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import networkx
import numpy as np
from measuring import ratio
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity
from tabulate import tabulate

from longsumbench.core import Scores
from longsumbench.modeling.ranking import lexrank, similarities, tfidf_with_title

VOCABULARY = 30_000
TITLE_LENGTH = 5  # words
ASKED = 50.0  # milliseconds, tf-idf and LexRank together
TITLE, SIMILAR, CENTRAL = "tf-idf with the title", "similarities", "LexRank"
PEER_TITLE, PEER_SIMILAR, PEER_CENTRAL = "the same by scikit-learn", "likewise", "… and networkx"
PEERS = {TITLE: PEER_TITLE, SIMILAR: PEER_SIMILAR, CENTRAL: PEER_CENTRAL}


def cluster(paragraphs: int, words: int, seed: int = 1) -> tuple[str, list[str]]:
    """Return a title and paragraphs; the k-th word of the vocabulary is as frequent as 1/k."""
    draw = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, VOCABULARY + 1)
    vocabulary = np.array([f"word{number}" for number in range(VOCABULARY)])
    drawn = vocabulary[draw.choice(VOCABULARY, (paragraphs, words), p=frequency / frequency.sum())]
    texts = [f"{' '.join(row).capitalize()}." for row in drawn]
    return " ".join(texts[0].split()[:TITLE_LENGTH]), texts


def library_title(title: str, paragraphs: list[str]) -> Scores:
    """Score by the library's tf-idf cosine with the title."""
    vectorizer = TfidfVectorizer(smooth_idf=False)
    vectors = vectorizer.fit_transform(paragraphs)
    scores: Scores = cosine_similarity(vectors, vectorizer.transform([title]))[:, 0]
    return scores


def library_similarities(paragraphs: list[str]) -> Scores:
    """Return the library's tf-idf cosines."""
    similar: Scores = cosine_similarity(TfidfVectorizer(smooth_idf=False).fit_transform(paragraphs))
    return similar


def library_lexrank(paragraphs: list[str]) -> Scores:
    """Score by networkx's PageRank of the graph of these cosines."""
    found = networkx.pagerank(networkx.from_numpy_array(library_similarities(paragraphs)))
    return np.array([found[index] for index in range(len(paragraphs))])


def core_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work."""
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    """Print milliseconds beside what is asked, and beside the libraries'."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paragraphs", type=int, default=525, help="WikiSum's mean (Hierarchical Transformer, §4)")
    parser.add_argument("--words", type=int, default=70, help="of each")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    title, texts = cluster(options.paragraphs, options.words)
    works = {
        TITLE: partial(tfidf_with_title, title, texts),
        PEER_TITLE: partial(library_title, title, texts),
        SIMILAR: partial(similarities, texts),
        PEER_SIMILAR: partial(library_similarities, texts),
        CENTRAL: partial(lexrank, texts),
        PEER_CENTRAL: partial(library_lexrank, texts),
    }
    turns = [{name: core_seconds(work) for name, work in works.items()} for _ in range(options.repeats + 1)][1:]
    seconds = {name: [turn[name] for turn in turns] for name in works}
    both = [one + other for one, other in zip(seconds[TITLE], seconds[CENTRAL], strict=True)]
    told = {name: f"{1e3 * statistics.median(found):.1f}" for name, found in [*seconds.items(), ("both", both)]}
    rows = [
        [ours, told[ours], "", theirs, told[theirs], f"{ratio(seconds[ours], seconds[theirs]):.3f}"]
        for ours, theirs in PEERS.items()
    ]
    beside = f"{ASKED:.0f} ms: {1e3 * statistics.median(both) / ASKED:.2f}"
    rows.append([f"{TITLE} and {CENTRAL}", told["both"], beside, "", "", ""])
    print(
        f"{options.paragraphs:,} paragraphs of {options.words} words; ms of one core, median of {options.repeats} turns"
    )
    print(tabulate(rows, headers=["what", "ms", "ratio to asked", "beside", "ms", "ratio"], disable_numparse=True))


if __name__ == "__main__":
    main()
