"""All-pairs ROUGE at full size, beside scoring pair by pair: proxy labels, and the search for fused sentences.

OMP_NUM_THREADS=1 python benchmarks/rouge_pairs.py

Texts are eLife articles and abstracts where the release lies in ../shared/data, joined until they are long enough; else
made up, with words as frequent as in natural text. Times are of one core and begin with words: stemmed ones, or ids.
"""

import gzip
import json
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, combinations
from math import comb
from pathlib import Path

from proxy_labels import SEGMENT_LENGTH, SEGMENTS, SNIPPET_LENGTH, SNIPPETS, measured, ngrams
from rouge_score.rouge_scorer import RougeScorer as Library
from rouge_score.tokenizers import Tokenizer
from tabulate import tabulate

from longsumbench.core import Scoring
from longsumbench.rouge.all_pairs import PAIR_MEASURES, number_words, rouge_n
from longsumbench.rouge.fusion import FUSION_TYPES, best_pairs
from longsumbench.rouge.scorer import SuiteScorer

Texts = list[list[str]]  # their words

ARTICLES = Path(__file__).resolve().parents[2] / "shared" / "data" / "elife" / "test.jsonl.gz"
SENTENCES, SUMMARY_SENTENCES = 1_000, 20
VOCABULARY, SENTENCE_LENGTH = 20_000, 25  # of made-up text
DOCUMENTS = 5
REPEATS = 3
SAMPLE = 12  # source sentences of the sample whose pairs are scored one by one
LABELS_ASKED, SEARCH_ASKED = 5.0, 50.0  # milliseconds a document
HEADERS = ["what", "asked, ms", "measured, ms", "ratio", "beside", "ms, by a sample", "ratio"]


class Blanks(Tokenizer):
    """Splits at blanks."""

    def tokenize(self, text: str) -> list[str]:
        """Return the words."""
        return text.split()


def real_documents() -> list[tuple[Texts, Texts]]:
    """Return source and summary sentences of joined articles."""
    words = SuiteScorer(Scoring()).words
    documents: list[tuple[Texts, Texts]] = []
    source: Texts = []
    summary: Texts = []
    with gzip.open(ARTICLES, "rt", encoding="utf-8") as lines:
        for line in lines:
            article = json.loads(line)
            source += map(words, article["article_text"])
            summary += (
                words(one.replace("<S>", "").replace("</S>", ""))
                for one in article["abstract_text"]
            )
            if len(source) >= SENTENCES and len(summary) >= SUMMARY_SENTENCES:
                documents.append((source[:SENTENCES], summary[:SUMMARY_SENTENCES]))
                source, summary = [], []
            if len(documents) == DOCUMENTS:
                break
    return documents


def made_up_document(seed: int) -> tuple[Texts, Texts]:
    """Return sentences of ids as frequent as words are (the k-th one ∝ 1/k); a summary sentence joins two halves."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    weights = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    words = list(map(str, range(VOCABULARY)))
    source = [
        chance.choices(words, cum_weights=weights, k=chance.randint(5, 2 * SENTENCE_LENGTH))
        for _ in range(SENTENCES)
    ]
    halves = [one[: len(one) // 2] for one in chance.sample(source, 2 * SUMMARY_SENTENCES)]
    return source, [halves[2 * i] + halves[2 * i + 1] for i in range(SUMMARY_SENTENCES)]


def milliseconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work, the least of a few times: others may use the machine."""
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return 1e3 * min(seconds)


def as_snippets(source: Texts, summary: Texts) -> list[list[list[int]]]:
    """Cut a document as SEAL does, into snippets and segments of ids; the text is repeated where it is short."""
    cut = []
    for texts, number, length in (
        (source, SNIPPETS, SNIPPET_LENGTH),
        (summary, SEGMENTS, SEGMENT_LENGTH),
    ):
        words = [word for text in texts for word in text]
        words *= -(-number * length // len(words))
        cut.append([words[start : start + length] for start in range(0, number * length, length)])
    return number_words(*cut)


def label_one_by_one(snippets: Sequence[Sequence[int]], segments: Sequence[Sequence[int]]) -> None:
    """Score with Counter, a pair at a time, all measures."""
    held = [ngrams(list(ids), 2) for ids in snippets]
    for wanted in [ngrams(list(ids), 2) for ids in segments]:
        for one in held:
            common = (one & wanted).total()
            for measure in PAIR_MEASURES:
                measured(common, one.total(), wanted.total(), measure)


def search_one_by_one(source: Texts, summary: Texts, kind: str) -> None:
    """Score every pair of sentences with rouge_score."""
    library = Library([kind], tokenizer=Blanks())
    pairs = [" ".join([*one, *other]) for one, other in combinations(source, 2)]
    for sentence in map(" ".join, summary):
        max(pairs, key=lambda pair: library.score(sentence, pair)[kind].recall)


def row(what: str, asked: float, fast: float, beside: str, slow: float) -> list[str]:
    """Return a line of the table from milliseconds."""
    return [
        what,
        f"{asked:.0f}",
        f"{fast:.1f}",
        f"{fast / asked:.2f}",
        beside,
        f"{slow:,.0f}",
        f"{fast / slow:.2g}",
    ]


def rows() -> list[list[str]]:
    """Measure both; return the table's lines."""
    documents = (
        real_documents()
        if ARTICLES.is_file()
        else [made_up_document(seed) for seed in range(DOCUMENTS)]
    )
    cut = [as_snippets(*document) for document in documents]
    fast = sum(milliseconds(partial(rouge_n, ids[0], ids[1], 2)) for ids in cut) / len(cut)
    slow = sum(milliseconds(partial(label_one_by_one, *ids)) for ids in cut) / len(cut)
    what = f"proxy labels, {SNIPPETS} snippets × {SEGMENTS} segments, ROUGE-2 P, R and F"
    lines = [row(what, LABELS_ASKED, fast, "Counter", slow)]
    source, summary = documents[0]
    sample = random.Random(1).sample(source, SAMPLE)  # noqa: S311 - not for secrets
    for kind in FUSION_TYPES:
        fast = sum(milliseconds(partial(best_pairs, *document, kind)) for document in documents)
        slow = milliseconds(partial(search_one_by_one, sample, summary, kind))
        what = f"best of {comb(SENTENCES, 2):,} pairs for each of {SUMMARY_SENTENCES} sentences, {kind} recall"
        all_pairs = slow * comb(SENTENCES, 2) / comb(SAMPLE, 2)
        lines.append(row(what, SEARCH_ASKED, fast / len(documents), "rouge_score", all_pairs))
    return lines


def main() -> None:
    """Print milliseconds of one core a document."""
    print(
        f"{'eLife' if ARTICLES.is_file() else 'made-up text'}; milliseconds of one core a document"
    )
    print(tabulate(rows(), headers=HEADERS))


if __name__ == "__main__":
    main()
