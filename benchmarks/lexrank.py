"""LexRank next to other implementations: its speed, and with --data the sentences that it chooses.

    OMP_NUM_THREADS=1 python benchmarks/lexrank.py [--paragraphs 525] [--words 70] [--repeats 20]
    python benchmarks/lexrank.py --data ../shared/data [--examples 40]    needs `pip install sumy lexrank`

The first ranks the paragraphs of a cluster of WikiSum's mean size, by this suite and by scikit-learn's tf-idf and
networkx's PageRank. Text is made up, with words as frequent as in natural text. Times are of one core, begin with
strings and end with scores; the works take turns, the first of which is left out, and the median is printed.

The second ranks the sentences of the first test texts of some datasets, by this suite, by sumy and by the package
`lexrank` (continuous, as here). sumy counts similarities above 0.1 as equal, ignores others, and stops early. It prints
which of the ten best sentences are the suite's, the rank correlation with its scores, and the R-1 of the ten best in
the order of the source. Lead and a random choice are next to them.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx
import numpy as np
from measuring import ratio
from rouge_score.rouge_scorer import RougeScorer
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity
from tabulate import tabulate

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import DatasetSettings, Example, Scores, texts_to_rank
from longsumbench.corpora.reading.load import load_texts
from longsumbench.modeling.ranking import lexrank, rank, similarities, tfidf_with_title

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


CORPORA = {
    "wiki_sections": "wiki_sections",
    "peer_reviews": "neurips_metareview",
    "sumpubmed": "sumpubmed",
}
CHOSEN = 10  # sentences


def peer_scores(name: str, documents: Sequence[Sequence[str]]) -> Callable[[list[str]], Scores]:
    """Return the scorer of a public implementation; the package `lexrank` weighs words by some documents."""
    if name == "lexrank (package)":
        folder = Path(__file__).parent  # where Python would take this file for the package
        sys.path[:] = [path for path in sys.path if Path(path).resolve() != folder]
        from lexrank import LexRank  # type: ignore[attr-defined] # no dependency; mypy takes this file for it

        package = LexRank(documents)
        return lambda texts: np.asarray(package.rank_sentences(texts, threshold=None))
    from sumy.summarizers.lex_rank import LexRankSummarizer  # type: ignore[import-not-found] # no dependency

    summarizer: Any = LexRankSummarizer()

    def rate(texts: list[str]) -> Scores:
        words = [summarizer._to_words_set(SimpleNamespace(words=text.split())) for text in texts]
        counts, weights = summarizer._compute_tf(words), summarizer._compute_idf(words)
        matrix = summarizer._create_matrix(words, summarizer.threshold, counts, weights)
        return np.asarray(summarizer.power_method(matrix, summarizer.epsilon))

    return rate


def extract_score(
    rouge: RougeScorer, example: Example, texts: Sequence[str], scores: Scores
) -> float:
    """Return the R-1 of the best sentences in the order of the source, 0–100."""
    best = sorted(rank(scores)[:CHOSEN])
    summary = " ".join(texts[index] for index in best)
    references = [" ".join(reference) for reference in example.references]
    return 100 * float(rouge.score_multi(references, summary)["rouge1"].fmeasure)


def compare_choices(data: Path, examples: int) -> None:
    """Print how the implementations agree on the texts of some datasets."""
    rows, rouge = [], RougeScorer(["rouge1"], use_stemmer=True)
    for dataset, folder in CORPORA.items():
        split = load_texts(DatasetSettings(dataset, str(data / folder)), user_cache()).splits[
            "test"
        ]
        tested = [
            example
            for example in split[: 2 * examples]
            if len(texts_to_rank(example, "sentence")) > CHOSEN
        ]
        tested = tested[:examples]
        documents = [texts_to_rank(example, "sentence") for example in tested]
        ours = [lexrank(texts) for texts in documents]
        draw = np.random.default_rng(1)
        others: dict[str, list[Scores]] = {
            "lexrank (package)": list(map(peer_scores("lexrank (package)", documents), documents)),
            "sumy": list(map(peer_scores("sumy", documents), documents)),
            "lead": [-np.arange(len(texts), dtype=float) for texts in documents],
            "random": [draw.random(len(texts)) for texts in documents],
        }
        for name, scores in {"this suite": ours, **others}.items():
            pairs = list(zip(ours, scores, strict=True))
            common = [
                len({*rank(one)[:CHOSEN]} & {*rank(other)[:CHOSEN]}) / CHOSEN
                for one, other in pairs
            ]
            correlations = [spearmanr(one, other).statistic for one, other in pairs]
            rouges = [
                extract_score(rouge, *case) for case in zip(tested, documents, scores, strict=True)
            ]
            numbers = (
                f"{np.mean(common):.2f}",
                f"{np.nanmean(correlations):.2f}",
                f"{np.mean(rouges):.1f}",
            )
            rows.append([dataset, len(tested), name, *numbers])
    headings = ["texts", "n", "by", f"of the best {CHOSEN} in common", "rank correlation", "R-1"]
    print(tabulate(rows, headers=headings, disable_numparse=True))


def core_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work."""
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    """Print milliseconds beside what is asked, and beside the libraries'."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--paragraphs", type=int, default=525, help="WikiSum's mean (Hierarchical Transformer, §4)"
    )
    parser.add_argument("--words", type=int, default=70, help="of each")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument(
        "--data", type=Path, help="folder of the datasets: compares the chosen sentences"
    )
    parser.add_argument("--examples", type=int, default=40, help="texts of each dataset")
    options = parser.parse_args()
    if options.data:
        compare_choices(options.data, options.examples)
        return
    title, texts = cluster(options.paragraphs, options.words)
    works = {
        TITLE: partial(tfidf_with_title, title, texts),
        PEER_TITLE: partial(library_title, title, texts),
        SIMILAR: partial(similarities, texts),
        PEER_SIMILAR: partial(library_similarities, texts),
        CENTRAL: partial(lexrank, texts),
        PEER_CENTRAL: partial(library_lexrank, texts),
    }
    turns = [
        {name: core_seconds(work) for name, work in works.items()}
        for _ in range(options.repeats + 1)
    ][1:]
    seconds = {name: [turn[name] for turn in turns] for name in works}
    both = [one + other for one, other in zip(seconds[TITLE], seconds[CENTRAL], strict=True)]
    told = {
        name: f"{1e3 * statistics.median(found):.1f}"
        for name, found in [*seconds.items(), ("both", both)]
    }
    rows = [
        [ours, told[ours], "", theirs, told[theirs], f"{ratio(seconds[ours], seconds[theirs]):.3f}"]
        for ours, theirs in PEERS.items()
    ]
    beside = f"{ASKED:.0f} ms: {1e3 * statistics.median(both) / ASKED:.2f}"
    rows.append([f"{TITLE} and {CENTRAL}", told["both"], beside, "", "", ""])
    print(
        f"{options.paragraphs:,} paragraphs of {options.words} words; ms of one core, median of {options.repeats} turns"
    )
    print(
        tabulate(
            rows,
            headers=["what", "ms", "ratio to asked", "beside", "ms", "ratio"],
            disable_numparse=True,
        )
    )


if __name__ == "__main__":
    main()
