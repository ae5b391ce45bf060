"""Scoring pair by pair, compared with rouge_score, in one process: every ROUGE type, stemmed; the drop-in.

OMP_NUM_THREADS=1 python benchmarks/rouge.py

Pairs are those of ../shared/reference where that folder is; else they are made up, with words as frequent as in natural
text. A cold vocabulary is a new scorer's, which has yet to stem every word of the pairs; a warm one has met them all.
"""

import json
import random
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path

from rouge_score.rouge_scorer import RougeScorer as Library
from tabulate import tabulate

from longsumbench.core import Scoring
from longsumbench.rouge import RougeScorer
from longsumbench.rouge.scorer import ROUGE_TYPES, SuiteScorer

Pair = tuple[list[str], list[str]]  # sentences of the candidate and of the reference

STORED = Path(__file__).resolve().parents[2] / "shared" / "reference" / "rouge_pairs.jsonl"
NAMES = {200: "arxiv200", 680: "govreport680"}  # ids of stored pairs, by their tokens
ASKED = {
    ("python", 200): (20, 20),
    ("python", 680): (25, 25),
    ("auto", 200): (100, 250),
    ("auto", 680): (200, 500),
}
MADE_UP = 16  # pairs of each length
REPEATS = 5
HEADERS = [
    "tokens",
    "kernels",
    "vocabulary",
    "µs a pair",
    "rouge_score, ms a pair",
    "times as fast",
    "asked",
    "aim",
]
DROP_IN_HEADERS = ["tokens", "the drop-in", "µs a pair", "rouge_score, ms a pair", "times as fast"]


def stored_pairs(tokens: int) -> list[Pair]:
    """Return the stored pairs of about that many tokens."""
    rows = map(json.loads, STORED.read_text(encoding="utf-8").splitlines())
    return [
        (row["candidate"], row["reference"]) for row in rows if row["id"].startswith(NAMES[tokens])
    ]


def made_up_pair(tokens: int, seed: int) -> Pair:
    """Return texts of made-up words as frequent as words are (the k-th one ∝ 1/k), of sentences of 20 words."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    words = [
        "".join(chance.choices("etaoinshr", k=chance.randint(2, 9))) for _ in range(10 * tokens)
    ]
    weights = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))
    sentences = [
        " ".join(chance.choices(words, cum_weights=weights, k=20)) for _ in range(tokens // 10)
    ]
    return sentences[::2], sentences[1::2]


def seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the processor time of some work, the least of a few times: others may use the machine."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def score_cold(kernels: str, pairs: list[Pair]) -> None:
    """Score all pairs with a new scorer."""
    score_all(SuiteScorer(Scoring(), kernels), pairs)


def score_all(scorer: SuiteScorer, pairs: list[Pair]) -> None:
    """Score every pair."""
    for candidate, reference in pairs:
        scorer.score(candidate, [reference])


def compile_kernels() -> float:
    """Return the seconds that the first score takes; those to compile, where numba's cache is empty."""
    start = time.perf_counter()
    SuiteScorer(Scoring()).score(("a b",), [("b a",)])
    return time.perf_counter() - start


def rows_of(tokens: int, pairs: list[Pair], kernels: list[str]) -> list[list[object]]:
    """Measure the pairs of one length: each kernel, with a cold and with a warm vocabulary."""
    library = Library(list(ROUGE_TYPES), use_stemmer=True)
    lines = [("\n".join(reference), "\n".join(candidate)) for candidate, reference in pairs]
    beside = seconds(lambda: [library.score(*one) for one in lines], repeats=3)
    rows: list[list[object]] = []
    for kernel in kernels:
        warm = SuiteScorer(Scoring(), kernel)
        score_all(warm, pairs)
        works: dict[str, Callable[[], object]] = {
            "cold": partial(score_cold, kernel, pairs),
            "warm": partial(score_all, warm, pairs),
        }
        for vocabulary, work in works.items():
            took = seconds(work)
            figures = [
                f"{1e6 * took / len(pairs):,.0f}",
                f"{1e3 * beside / len(pairs):.1f}",
                f"{beside / took:.0f}",
            ]
            rows.append([tokens, kernel, vocabulary, *figures, *ASKED[kernel, tokens]])
    return rows


def drop_in_rows(tokens: int, pairs: list[Pair]) -> list[list[object]]:
    """Measure the drop-in: a new scorer for each pair, one for all pairs, and one prediction against all references."""
    lines = [("\n".join(reference), "\n".join(candidate)) for candidate, reference in pairs]
    targets = [target for target, _ in lines]
    rows, figures = [], []
    for make in (RougeScorer, Library):
        scorer = make(list(ROUGE_TYPES), use_stemmer=True)
        works: dict[str, Callable[[], object]] = {
            "a new scorer for each pair": partial(score_alone, make, lines),
            "one scorer for all pairs": partial(score_lines, scorer, lines),
            "score_multi, all references": partial(scorer.score_multi, targets, lines[0][1]),
        }
        figures.append(
            {work: 1e3 * seconds(what, repeats=3) / len(lines) for work, what in works.items()}
        )
    for work, fast in figures[0].items():
        slow = figures[1][work]
        rows.append([tokens, work, f"{1e3 * fast:,.0f}", f"{slow:.1f}", f"{slow / fast:.0f}"])
    return rows


def score_alone(make: type[RougeScorer] | type[Library], lines: list[tuple[str, str]]) -> None:
    """Score each pair with a new scorer."""
    for target, prediction in lines:
        make(list(ROUGE_TYPES), use_stemmer=True).score(target, prediction)


def score_lines(scorer: RougeScorer | Library, lines: list[tuple[str, str]]) -> None:
    """Score every pair."""
    for target, prediction in lines:
        scorer.score(target, prediction)


def main() -> None:
    """Print the tables."""
    kernels = ["python"]
    if find_spec("numba"):
        kernels.append("auto")
        print(f"the first score with numba: {compile_kernels():.1f} s\n")
    rows, of_drop_in = [], []
    for tokens in NAMES:
        pairs = (
            stored_pairs(tokens)
            if STORED.is_file()
            else [made_up_pair(tokens, seed) for seed in range(MADE_UP)]
        )
        rows += rows_of(tokens, pairs, kernels)
        of_drop_in += drop_in_rows(tokens, pairs)
    print(tabulate(rows, HEADERS, tablefmt="github"), end="\n\n")
    print(tabulate(of_drop_in, DROP_IN_HEADERS, tablefmt="github"), end="\n\n")


if __name__ == "__main__":
    main()
