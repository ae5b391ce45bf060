"""Rankers of paragraphs, by similarity with the title or with one another (LexRank); the order in which a system reads.

A ranker is a function (title, paragraphs) → one score per paragraph, higher is better. A learned one is a class: it is
fitted once for the same texts and settings, cached as the stage "ranker", and then called like a function. `rank` turns
scores into an order. `longsumbench.core.registry.rankers` lists rankers by name. Imports no torch.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from longsumbench import core
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.errors import UsageError

_WORD_PATTERN = re.compile(r"\w+")  # words of one letter count too
# ASCII characters between words
_BLANKS = {code: " " for code in range(128) if not _WORD_PATTERN.match(chr(code))}
_DAMPING = 0.85  # Erkan & Radev 2004, as in PageRank
_BM25_K1, _BM25_B = 1.2, 0.75  # as in Lucene
_TOLERANCE = 1e-12  # LexRank stops when a step changes the scores (sum 1) by at most this in total
_DIGITS = 10  # decimals of LexRank's scores: rounding makes scores equal that differ by floating-point error only


def tfidf_with_title(title: str | None, paragraphs: Sequence[str]) -> core.Scores:
    """Score paragraphs by the cosine of their tf-idf vectors with the title's (Hierarchical Transformer, Eq. 25).

    Word weights are those of `tfidf` over the paragraphs without the title. A title word in no paragraph weighs
    nothing: it would divide every score by the same number. Scores are 0–1; a text without words, or with words of
    weight 0 only, scores 0.

    Raises:
        UsageError: the title is None.
    """
    counts = _counts_with_title(title, paragraphs)
    return _cosine_with_first(_weighted(counts, among=counts[1:]))


def title_similarity(title: str | None, paragraphs: Sequence[str]) -> core.Scores:
    """Score paragraphs by the cosine of their word counts with the title's; all words have equal weight.

    Unlike tf-idf, a score depends on no other paragraph, and words that are in every paragraph count. Scores are 0–1; a
    text without words scores 0.

    Raises:
        UsageError: the title is None.
    """
    return _cosine_with_first(_counts_with_title(title, paragraphs))


def bm25(title: str | None, paragraphs: Sequence[str]) -> core.Scores:
    """Score paragraphs by BM25 with the words of the title or the query (Trotman et al. 2014, ATIRE's variant).

    A score is the sum over these words of ln(N_d / N_dw) · (k₁ + 1) · n / (n + k₁ · (1 − b + b · L)): n counts the word
    in the paragraph, and L is the paragraph's length divided by the mean. N_d and N_dw are those of `tfidf`.

    Raises:
        UsageError: the title is None.
    """
    counts = _counts_with_title(title, paragraphs)
    texts = counts[1:]
    lengths = np.repeat(texts.sum(axis=1).A1, np.diff(texts.indptr)) * len(paragraphs) / texts.sum()
    query = _weighted(counts, among=texts)[:1]
    texts.data *= (_BM25_K1 + 1) / (texts.data + _BM25_K1 * (1 - _BM25_B + _BM25_B * lengths))
    scores: core.Scores = (texts @ query.T).toarray()[:, 0]
    return scores


def centrality(title: str | None, paragraphs: Sequence[str]) -> core.Scores:
    """Score paragraphs by LexRank and ignore the title: the ranker `lexrank`."""
    return lexrank(paragraphs)


def lexrank(paragraphs: Sequence[str], damping: float = _DAMPING) -> core.Scores:
    """Score paragraphs by continuous LexRank (Erkan & Radev 2004): their similarity to other central paragraphs.

    The scores p solve p = d · Mᵀp + (1 − d) / n, where M is `similarities` with rows divided by their sums, without a
    threshold. Power iteration from equal scores stops when a step changes them by at most `_TOLERANCE` in total. The
    error is then at most d / (1 − d) times that; scores are rounded to `_DIGITS`. M is never formed: time and memory
    grow with the words, not with the pairs of paragraphs. The damping d is from 0 to below 1; 0 gives equal scores.
    Scores are positive, with sum 1 up to rounding.
    """
    vectors = tfidf_vectors(paragraphs)
    by_word = vectors.T.tocsr()
    is_zero = np.diff(vectors.indptr) == 0

    def multiply(scores: core.Scores) -> core.Scores:
        # A zero vector is similar to itself only.
        product: core.Scores = vectors @ (by_word @ scores) + is_zero * scores
        return product

    return _central_scores(multiply, len(paragraphs), damping)


def score_vectors_by_lexrank(vectors: NDArray[np.float64]) -> core.Scores:
    """Score texts by LexRank, as `lexrank`, over the cosines of their vectors; negative cosines count as 0.

    Time and memory grow with the pairs of texts.

    Args:
        vectors: of length 1, or 0, which is similar to itself only: [texts, dimensions].
    """
    cosines = np.maximum(vectors @ vectors.T, 0)
    np.fill_diagonal(cosines, 1)
    return _central_scores(cosines.__matmul__, len(vectors))


def _central_scores(
    multiply: Callable[[core.Scores], core.Scores], size: int, damping: float = _DAMPING
) -> core.Scores:
    """Return the solution p of LexRank's equation; `multiply` is the product with the similarities of `size` texts."""
    if not size:
        return np.zeros(0)
    sums = multiply(np.ones(size))
    scores, change = np.full(size, 1 / size), 1.0
    while change > _TOLERANCE:  # a step's change is at most d times that of the previous step
        stepped = damping * multiply(scores / sums) + (1 - damping) / size
        scores, change = stepped, float(np.abs(stepped - scores).sum())
    return scores.round(_DIGITS)


def similarities(paragraphs: Sequence[str]) -> NDArray[np.float64]:
    """Return the cosines of the paragraphs' `tfidf` vectors.

    The matrix is symmetric, each value 0–1. The diagonal is 1, also for a zero vector.
    """
    vectors = tfidf_vectors(paragraphs)
    # rounding errors can exceed 1
    cosines: NDArray[np.float64] = np.minimum((vectors @ vectors.T).toarray(), 1)
    np.fill_diagonal(cosines, 1)
    return cosines


def tfidf(paragraphs: Sequence[str]) -> Any:
    """Return the tf-idf weights of the words of paragraphs (Hierarchical Transformer, Eq. 25).

    A word's weight is N_w · ln(N_d / N_dw): N_w its count in the paragraph, N_d the number of paragraphs, N_dw the
    number of paragraphs with the word. Words are lower-cased, without a stop list. A word in all paragraphs weighs 0.
    The matrix is sparse: [paragraphs, words], the words in alphabetical order; only weights above 0 are stored.
    """
    counts = _count_words(paragraphs)
    return _weighted(counts, among=counts)


def tfidf_vectors(paragraphs: Sequence[str]) -> Any:
    """Return the `tfidf` weights of each paragraph as a vector of length 1, or of zeros."""
    return _normalized(tfidf(paragraphs))


def rank(scores: Sequence[float] | core.Scores) -> list[int]:
    """Return the indices from the best score to the worst; ties keep their order."""
    order: list[int] = np.argsort(-np.asarray(scores, np.float64), kind="stable").tolist()
    return order


def _counts_with_title(title: str | None, paragraphs: Sequence[str]) -> Any:
    return _count_words([check_title(title), *paragraphs])


def check_title(title: str | None) -> str:
    """Return the title that a ranker needs.

    Raises:
        UsageError: the title is None.
    """
    if title is None:
        raise UsageError(
            "this ranker compares paragraphs with the title, and the example has none: choose another"
        )
    return title


def _count_words(texts: Sequence[str]) -> Any:
    """As scikit-learn's CountVectorizer, in less than half its time."""
    # A sentence of a script without blanks would be one word, and like no other.
    split = core.LETTERS.findall if core.counts_letters(" ".join(texts)) else _split_words
    words = [split(text.lower()) for text in texts]
    columns = {word: index for index, word in enumerate(sorted(set(chain.from_iterable(words))))}
    indices = np.fromiter(map(columns.__getitem__, chain.from_iterable(words)), np.int32)
    ends = np.cumsum([0, *map(len, words)])
    counts = csr_matrix((np.ones(len(indices)), indices, ends), shape=(len(texts), len(columns)))
    counts.sum_duplicates()
    return counts


def _split_words(text: str) -> list[str]:
    # Most paragraphs are ASCII, for which `translate` takes a third of the time.
    return text.translate(_BLANKS).split() if text.isascii() else _WORD_PATTERN.findall(text)


def _weighted(counts: Any, among: Any) -> Any:
    """Return counts times ln(N_d / N_dw), N_d and N_dw being the rows of `among`; zeros are not stored."""
    num_texts = np.bincount(among.indices, minlength=counts.shape[1])
    weights = np.log(max(1, among.shape[0]) / np.maximum(num_texts, 1)) * (num_texts > 0)
    weighted = counts.copy()
    weighted.data *= weights[weighted.indices]
    weighted.eliminate_zeros()
    return weighted


def _normalized(vectors: Any) -> Any:
    """Return vectors with length 1; zero vectors stay zero."""
    squares, normalized = vectors.copy(), vectors.copy()
    squares.data **= 2
    lengths = np.sqrt(squares.sum(axis=1)).A1
    normalized.data /= np.repeat(lengths, np.diff(vectors.indptr))
    return normalized


def _cosine_with_first(vectors: Any) -> core.Scores:
    """Return the cosine of the first row with each of the others; 0 for a zero vector."""
    vectors = _normalized(vectors)
    cosines: core.Scores = (vectors[1:] @ vectors[:1].T).toarray()[:, 0]
    return cosines


def find_ranker(
    name: str,
    train: core.Split | None,
    validation: core.Split | None,
    settings: core.RankerSettings,
    cache: ArtifactCache,
) -> core.Ranker:
    """Return a registered ranker by name; a learned one is fitted first, with the other arguments.

    Raises:
        UnknownName: no ranker has this name.
        DataError: the ranker is learned, and there is no training split.
    """
    if kind := core.learned_ranker(name):
        return kind.fitted(train, validation, settings, cache)
    return _ready_ranker(name, settings)


def _ready_ranker(name: str, settings: core.RankerSettings) -> core.Ranker:
    """Return a registered ranker that does not learn."""
    if kind := core.encoder_ranker(name):
        return kind(settings)
    ranker: core.Ranker = core.registry.rankers.load(name)
    return ranker


def score_by(
    ranker: core.Ranker, example: core.Example, texts: Sequence[str], setting: str
) -> core.Scores:
    """Return the scores of an example's texts.

    `setting` is the one that chose the ranker, for messages ("model.rank=tfidf").

    Raises:
        UsageError: the ranker needs a title or a query, and the example has neither.
    """
    try:
        return ranker(example.topic, texts)
    except UsageError as problem:
        if example.topic is not None:
            raise
        missing = f"example '{example.id}' has no title and no query, and {setting} needs one"
        name = setting.partition("=")[0]
        unranked = "" if name == "model.selector" else f"{core.UNRANKED}, "
        choices = f"choose {name}={unranked}lexrank, embedding_lexrank or lstm, or give it a title"
        raise UsageError(f"{missing}: {choices}") from problem


class Ranking:
    """The order of an example's texts by the setting `rank`; with "none", the order of the source.

    `ranker_settings` returns the settings of the ranker, with its encoder (`rank_checkpoint`). A learned ranker is
    fitted by `prepare`, and saved in the checkpoint's folder `ranker/`.
    """

    def __init__(
        self,
        name: str,
        ranker_settings: Callable[[], core.RankerSettings],
        setting: str = "model.rank",
    ) -> None:
        self.name, self.ranker_settings = name, ranker_settings  # "none", or a registered ranker
        # the one that chose the ranker, for messages
        self.setting = setting
        # set by `prepare` and `load`; one that does not learn also by its first use
        self.ranker: core.Ranker | None = None

    @property
    def network(self) -> core.NetworkRanker | None:
        """The ranker if it has a network, else None."""
        return self.ranker if isinstance(self.ranker, core.NetworkRanker) else None

    def check_examples(self, examples: Iterable[core.Example]) -> None:
        """Check that every example has the title or query that a plain ranker needs.

        Raises:
            UsageError: an example has neither.
        """
        if self.name != core.UNRANKED and not core.learned_ranker(self.name):
            for example in examples:
                if example.topic is None:
                    self.order(example, ["any text"])
                    break  # others can be ranked, too

    def prepare(self, context: core.FitContext) -> None:
        """Load the ranker; fit a learned one."""
        if self.name != core.UNRANKED:
            settings = self.settings(context)
            self.ranker = find_ranker(
                self.name, context.train, context.validation, settings, context.cache
            )

    def settings(self, context: core.FitContext) -> core.RankerSettings:
        """Return the settings of a learned ranker, with the seed, the device and the words of a run."""
        words = core.settings_deciding(context.scoring, "words")
        recipe = context.recipe
        return replace(self.ranker_settings(), seed=recipe.seed, device=recipe.device, score=words)

    def order(self, example: core.Example, texts: Sequence[str]) -> list[int]:
        """Return the indices of an example's texts from the best to the worst.

        Raises:
            UsageError: the ranker needs a title or a query, and the example has neither.
        """
        return rank(self.scores(example, texts))

    def scores(self, example: core.Example, texts: Sequence[str]) -> core.Scores:
        """Return the scores of an example's texts: [texts], higher is better; errors are those of `order`."""
        if self.name == core.UNRANKED:
            return -np.arange(len(texts), dtype=np.float64)
        if self.ranker is None:
            self.ranker = _ready_ranker(self.name, self.ranker_settings())
        return score_by(self.ranker, example, texts, f"{self.setting}={self.name}")

    def use_device(self, device: str) -> None:
        """Set where a ranker with a network runs ("auto", "cpu", "cuda")."""
        if self.network:
            self.network.device = device

    def metadata(self) -> dict[str, Any]:
        """Return what a ranker with an encoder counted, for the record."""
        return self.ranker.metadata() if isinstance(self.ranker, core.EncoderRanker) else {}

    def fitted_identity(self) -> dict[str, Any]:
        """Return the identity of a ranker with a network that is ready."""
        return {"ranker": self.network.identity} if self.network else {}

    def save(self, folder: Path) -> None:
        """Save a learned ranker in the folder `ranker/` of a checkpoint."""
        if isinstance(self.ranker, core.LearnedRanker):
            (folder / "ranker").mkdir(exist_ok=True)
            self.ranker.save(folder / "ranker")

    def load(self, folder: Path) -> None:
        """Load what `save` wrote.

        Raises:
            DataError: a file is damaged or missing.
        """
        if kind := core.learned_ranker(self.name):
            self.ranker = kind.load(folder / "ranker")
