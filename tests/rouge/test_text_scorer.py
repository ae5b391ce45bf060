"""The drop-in for rouge_score: every score is the library's to the last bit, on any texts."""

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from rouge_score import rouge_scorer
from rouge_score.tokenizers import Tokenizer
from support.imports import modules_after
from support.paths import ROOT
from support.punkt import read_punkt_from, write_punkt
from support.toys import refuses

from longsumbench.errors import EnvironmentProblem
from longsumbench.rouge import RougeScorer

TYPES = [*(f"rouge{n}" for n in range(1, 10)), "rougeL", "rougeLsum"]
WORDS = st.sampled_from(
    [
        *["a", "b", "dogs", "running", "1,000", "3.5", "K", "İb", "…", "x-y", "日本", "."],
        "\n",
        "\n\n",
    ]
)
TEXTS = st.lists(WORDS, max_size=40).map(" ".join) | st.text(max_size=60)
ANY_TYPES = st.lists(st.sampled_from(TYPES), min_size=1, max_size=4)


class Letters(Tokenizer):
    """Every character is a token, also the period, which marks the end of a sentence inside the suite."""

    def tokenize(self, text: str) -> list[str]:
        """Return the characters."""
        return list(text)


class Pairs(Tokenizer):
    """Pairs of words: the tokens of a text are not those of its sentences."""

    def tokenize(self, text: str) -> list[tuple[str, str]]:
        """Return the pairs of neighbours."""
        return list(pairwise(text.split()))


CUSTOM = (None, Letters(), Pairs())


@cache
def both(types: tuple[str, ...], stem: bool, tokenizer: Tokenizer | None) -> tuple[Any, Any]:
    arguments = list(types), stem, False, tokenizer
    return RougeScorer(*arguments), rouge_scorer.RougeScorer(*arguments)


@given(
    st.lists(TEXTS, min_size=1, max_size=4),
    TEXTS,
    ANY_TYPES,
    st.booleans(),
    st.sampled_from(CUSTOM),
)
def test_scores_equal_rouge_score(
    targets: list[str], prediction: str, types: list[str], stem: bool, tokenizer: Tokenizer | None
) -> None:
    """Any types, texts and tokenizers have the library's precision, recall and F, in its order and by its names.

    Of several targets the first with the best F counts, for each type.
    """
    scorer, library = both(tuple(types), stem, tokenizer)
    scores, expected = (each.score(targets[0], prediction) for each in (scorer, library))
    assert list(scores.items()) == list(expected.items())
    assert [score._asdict() for score in scores.values()] == [
        score._asdict() for score in expected.values()
    ]
    assert scorer.score_multi(targets, prediction) == library.score_multi(targets, prediction)


@pytest.mark.parametrize("kind", ["rouge0", "rouge10", "rougeX", "rougel", "bleu", ""])
def test_an_invalid_type_is_the_same_error(kind: str) -> None:
    """An invalid type raises the library's ValueError, with its words."""
    messages = []
    for made in (RougeScorer, rouge_scorer.RougeScorer):
        with pytest.raises(ValueError, match=r"^(Invalid rouge|rougen requires)") as raised:
            made([kind]).score("a", "a")
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


def test_split_summaries_splits_as_nltk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Punkt splits both sides, so abbreviations matter to R-Lsum; line breaks then end no sentence."""
    write_punkt(tmp_path, monkeypatch)
    target, prediction = (
        "We saw Dr. Who. He left\nearly. It rained.",
        "He left. Dr. Who saw us. It\nrained early.",
    )
    arguments = TYPES, True, True
    scores = RougeScorer(*arguments).score(target, prediction)
    assert scores == rouge_scorer.RougeScorer(*arguments).score(target, prediction)
    assert scores["rougeLsum"] != RougeScorer(TYPES, True).score(target, prediction)["rougeLsum"]


def test_missing_data_of_nltk_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nltk's data are missing, one line says which and how to install them; other types do without."""
    read_punkt_from(tmp_path, monkeypatch)
    with refuses(r"punkt_tab.*nltk.downloader", EnvironmentProblem):
        RougeScorer(["rougeLsum"], split_summaries=True).score("a b.", "a. b.")
    scores = RougeScorer(["rouge1"], split_summaries=True).score("a b.", "a. b.")
    assert scores["rouge1"] == (1, 1, 1)


def test_threads_and_processes_may_share_a_scorer() -> None:
    """A scorer gives the same scores in many threads at once, and after pickling."""
    chance = random.Random(5)
    texts = [" ".join(f"w{chance.randrange(40)}" for _ in range(80)) for _ in range(60)]
    scorer = RougeScorer(TYPES, use_stemmer=True)
    expected = [scorer.score(texts[place - 1], text) for place, text in enumerate(texts)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(scorer.score, [texts[-1], *texts[:-1]], texts)) == expected
    copied = pickle.loads(pickle.dumps(scorer))  # noqa: S301 - written here
    assert copied.score(texts[-1], texts[0]) == expected[0]


def test_importing_needs_neither_torch_nor_nltk() -> None:
    """`import longsumbench.rouge` is light: no torch, no nltk, no numba, no rouge_score, no pandas."""
    loaded = modules_after("import longsumbench.rouge")
    assert not {"torch", "nltk", "numba", "rouge_score", "pandas"} & loaded


def test_the_page_on_rouge_shows_a_drop_in(capsys: pytest.CaptureFixture[str]) -> None:
    """The example of docs/concepts/rouge.md runs, and its comment says what it prints."""
    page = (ROOT / "docs" / "concepts" / "rouge.md").read_text(encoding="utf-8")
    example = page.split("```python\n")[1].split("```")[0]
    exec(example, {})  # noqa: S102 - the page is ours
    assert f"# {capsys.readouterr().out.strip()}" in example
