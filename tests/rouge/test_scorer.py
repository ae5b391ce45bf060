"""ROUGE equals rouge_score bit for bit and ROUGE-1.5.5 to its five digits, with numba and without."""

import builtins
import pickle
import random
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given, strategies as st
from rouge_score import rouge_scorer
from support.json_files import read_rows
from support.paths import SHARED
from support.requirements import SHARED_FOLDER, WORDNET_LISTS

from longsumbench.core import Scoring
from longsumbench.errors import EnvironmentProblem
from longsumbench.metrics.rouge import Rouge
from longsumbench.rouge import tokenizer
from longsumbench.rouge.scorer import ROUGE_TYPES, Score, SuiteScorer
from longsumbench.rouge.stemmers import NO_WORDNET, read_exceptions

REFERENCE = SHARED / "reference"
KERNELS = ("python", "auto")  # auto: numba, which the tests have

Text = tuple[str, ...]
WORDS = st.sampled_from(
    ["a", "b", "dogs", "dog", "running", "run", "agreement", "Skies", "K", "İb", "…", "x-y", "日本"]
)
TEXTS = st.lists(st.lists(WORDS, max_size=12).map(" ".join), max_size=5).map(tuple)
RANDOM_TEXTS = st.builds(lambda seed: made_up(random.Random(seed), 70), st.integers(0, 2**32))


def made_up(chance: random.Random, longest: int) -> Text:
    """Return sentences of few distinct words, so that much is tied; some are longer than the 64 bits of a word."""
    words = [f"w{number}" for number in range(chance.choice([1, 2, 5, 30]))]
    lengths = [
        chance.randrange(longest) if chance.random() < 0.3 else chance.randrange(8)
        for _ in range(8)
    ]
    return tuple(
        " ".join(chance.choices(words, k=length)) for length in lengths[: chance.randrange(9)]
    )


@cache
def scorer(kernels: str = "auto", **options: Any) -> SuiteScorer:
    return SuiteScorer(Scoring(**options), kernels)


def peer(prediction: Text, references: Sequence[Text], stem: bool) -> dict[str, Score]:
    """Score with rouge_score, one sentence a line."""
    library = rouge_scorer.RougeScorer(list(ROUGE_TYPES), use_stemmer=stem)
    scores = library.score_multi(
        ["\n".join(reference) for reference in references], "\n".join(prediction)
    )
    return {kind: Score(*score) for kind, score in scores.items()}


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    """Compile before a test measures its time: that takes long where numba's cache is empty."""
    assert find_spec("numba")
    scorer(kernels="auto").score(("a b",), [("b a",)])


def pairs() -> list[Any]:
    if not REFERENCE.is_dir():
        pytest.skip(SHARED_FOLDER)
    return read_rows(REFERENCE / "rouge_pairs.jsonl")


def need_wordnet() -> None:
    try:
        read_exceptions()
    except EnvironmentProblem:
        pytest.skip(WORDNET_LISTS)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("name", ["stemmed", "unstemmed"])
def test_recorded_perl_scores(name: str, kernels: str) -> None:
    """Every recorded pair gets the five digits that ROUGE-1.5.5 printed; its ROUGE-L is the union LCS."""
    if name == "stemmed":
        need_wordnet()
    rouge = scorer(mode="perl", stem=name == "stemmed", kernels=kernels)
    for row in pairs():
        scores = rouge.score(row["candidate"], [row["reference"]])
        for kind, score in row["scores"][name].items():
            printed = scores["rougeLsum" if kind == "rougeL" else kind]
            assert printed == tuple(map(score.get, "prf")), (row["id"], kind)


@given(TEXTS | RANDOM_TEXTS, st.lists(TEXTS | RANDOM_TEXTS, min_size=1, max_size=3), st.booleans())
def test_equals_rouge_score(prediction: Text, references: list[Text], stem: bool) -> None:
    """One and several references score as rouge_score's score_multi scores them, with either kernel."""
    expected = peer(prediction, references, stem)
    for kernels in KERNELS:
        assert scorer(stem=stem, kernels=kernels).score(prediction, references) == expected


@pytest.mark.parametrize("length", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_long_texts_score_as_rouge_score_scores_them(length: int) -> None:
    """Long texts score as rouge_score scores them: sentences of all lengths, words as frequent as in prose."""
    chance = random.Random(length)
    texts: list[list[str]] = [[], []]
    for sentences in texts:
        for size in chance.choices([3, 20, 30, 200], k=length // 60):
            numbers = [int(chance.paretovariate(0.6)) % 5_000 for _ in range(size)]
            sentences.append(" ".join(map("w{}".format, numbers)))
    prediction, reference = map(tuple, texts)
    expected = peer(prediction, [reference], stem=False)
    for kernels in KERNELS:
        assert scorer(stem=False, kernels=kernels).score(prediction, [reference]) == expected


@given(
    TEXTS | RANDOM_TEXTS,
    st.lists(TEXTS | RANDOM_TEXTS, min_size=1, max_size=3),
    st.sampled_from(["default", "unicode"]),
)
def test_kernels_agree(prediction: Text, references: list[Text], tokenizer: str) -> None:
    """Perl mode and the unicode tokenizer score the same in plain Python and with numba."""
    options = {"mode": "perl", "wordnet": NO_WORDNET, "tokenizer": tokenizer}
    python, compiled = (scorer(kernels=kernels, **options) for kernels in KERNELS)
    assert python.score(prediction, references) == compiled.score(prediction, references)


def test_all_types_by_hand() -> None:
    """Two sentences in the other order: all words, 2 of 3 bigrams, half as one sequence, all of it as sentences."""
    scores: Any = scorer().score(("a b", "c d"), [("c d", "a b")])
    assert scores["rouge1"] == (1, 1, 1)
    assert scores["rouge2"] == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert scores["rougeL"] == (0.5, 0.5, 0.5)
    assert scores["rougeLsum"] == (1, 1, 1)


def test_jackknife_by_hand() -> None:
    """Recalls of 1/3, 2/3 and 1/3, best without each: (2/3 + 2/3 + 1/3) / 3, in perl mode of and to five digits."""
    texts = (("a b",), [("a x y",), ("a b y",), ("b x y",)])
    google, perl = (
        scorer(mode=mode, stem=False, references="jackknife").score(*texts)
        for mode in ("google", "perl")
    )
    assert google["rouge1"].recall == pytest.approx(5 / 9)
    assert perl["rouge1"] == (0.83333, 0.55556, 0.66667)


@pytest.mark.parametrize("texts", [("a b", [("a b",)]), (("a b",), ["a b"]), (("a b",), "a b")])
def test_strings_are_no_texts(texts: Any) -> None:
    """A string in place of sentences is refused: its letters would be scored as sentences."""
    with pytest.raises(TypeError, match="list of its sentences"):
        scorer().score(*texts)


def test_a_sentence_has_words_if_the_tokenizer_keeps_some() -> None:
    """A sentence has words when the tokenizer keeps something of it."""
    assert scorer().has_words(("—", "a"))
    assert not scorer().has_words(("—", " \n", "日本"))
    assert scorer(tokenizer="unicode").has_words(("日本",))


def test_what_changes_scores_changes_the_signature() -> None:
    """Whatever changes scores changes the signature."""
    made: list[dict[str, Any]] = [
        {},
        {"stem": False},
        {"tokenizer": "unicode"},
        {"references": "jackknife"},
        {"mode": "perl", "stem": False},
        {"mode": "perl", "wordnet": NO_WORDNET},
    ]
    signatures = {Rouge(Scoring(**options)).signature(5) for options in made}
    first = Rouge(Scoring()).signature(6)
    assert len(signatures - {first}) == len(made)
    assert first.startswith("rouge:longsumbench-1|mode:google|stemmer:porter|tokenizer:default|")


def test_forgetting_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vocabulary that is full forgets all words between two pairs, and no score changes."""
    monkeypatch.setattr(tokenizer, "_MAX_WORDS", 3)
    forgetful = SuiteScorer(Scoring())
    for texts in (("a b c", "c b"), ("d e f", "f e"), ("a d", "d a")):
        assert forgetful.score(texts[:1], [texts[1:]]) == scorer().score(texts[:1], [texts[1:]])


@pytest.mark.parametrize(
    "problem", [ImportError("Numba needs NumPy 2.2"), RuntimeError("no locator available")]
)
def test_numba_that_cannot_be_loaded(problem: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scoring does without a numba that is installed and does not work."""

    def fails(name: str, *rest: Any) -> Any:
        if name == "longsumbench.rouge.kernels":
            raise problem
        return importing(name, *rest)

    importing = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", fails)
    assert SuiteScorer(Scoring()).score(("a",), [("a",)])["rouge1"] == (1, 1, 1)


def test_a_scorer_travels() -> None:
    """Another process can be handed a scorer, used or not: it scores the same there."""
    scorer = SuiteScorer(Scoring("perl", stem=False, references="best"))
    expected = scorer.score(["a cat sat"], [["the cat sat"], ["a dog"]])
    copied = pickle.loads(pickle.dumps(scorer))  # noqa: S301 - our own bytes
    assert copied.score(["a cat sat"], [["the cat sat"], ["a dog"]]) == expected
