"""The oracle's greedy search."""

from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from longsumbench.models.baselines.greedy import LEAST_RISE, StemmedWords, greedy_selection

WORDS = ["alpha", "running", "runs", "cat", "the", "a", "dogs", "!!"]
SENTENCES = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), max_size=7)
SCORER = RougeScorer(["rouge1", "rouge2"], use_stemmer=True)


def score(sentences: list[str], references: list[list[str]], selected: list[int]) -> float:
    """The mean of ROUGE-1 and ROUGE-2 F1 that rouge_score gives the selected sentences."""
    text = "\n".join(sentences[index] for index in sorted(selected))
    found = SCORER.score_multi(["\n".join(reference) for reference in references], text)
    return float(found["rouge1"].fmeasure + found["rouge2"].fmeasure) / 2


def slow_selection(sentences: list[str], references: list[list[str]]) -> list[int]:
    """The definition: score every candidate text with the library, take the best, while it rises."""
    selected: list[int] = []
    best = 0.0
    while len(selected) < len(sentences):
        rest = [index for index in range(len(sentences)) if index not in selected]
        scores = {index: score(sentences, references, [*selected, index]) for index in rest}
        top = max(scores.values())
        if top <= best + LEAST_RISE:
            break
        best = top
        selected.append(min(index for index in rest if scores[index] >= top - LEAST_RISE))
    return sorted(selected)


def select(sentences: list[str], references: list[list[str]]) -> list[int]:
    words = StemmedWords()
    return greedy_selection([words.of(s) for s in sentences], [words.of("\n".join(r)) for r in references])


@settings(deadline=None)
@given(SENTENCES, st.lists(SENTENCES, min_size=1, max_size=2))
def test_equals_scoring_every_candidate_with_the_library(sentences: list[str], references: list[list[str]]) -> None:
    """The fast search selects what a search that calls rouge_score for every candidate selects."""
    assert select(sentences, references) == slow_selection(sentences, references)


@settings(deadline=None)
@given(SENTENCES, SENTENCES)
def test_never_worse_than_any_single_sentence(sentences: list[str], reference: list[str]) -> None:
    """The selected text scores at least as high as every sentence alone."""
    got = score(sentences, [reference], select(sentences, [reference]))
    assert all(got >= score(sentences, [reference], [index]) - 1e-9 for index in range(len(sentences)))


def test_worked_example() -> None:
    """Of "a b", "x y", "c d", "a b" for "a b c d": the first, then "c d"; a second "a b" would only lower it."""
    assert select(["a b", "x y", "c d", "a b"], [["a b c d"]]) == [0, 2]
    assert select(["x", "y"], [["a b c d"]]) == []
    assert select(["c d", "a b"], [["a b", "c d"]]) == [0, 1]


def test_several_references_count_the_best() -> None:
    """A text that equals one of two references is found, whatever the other says."""
    assert select(["x y z", "a b c"], [["p q r s t"], ["a b c"]]) == [1]


@given(st.text())
def test_words_are_the_scorers(text: str) -> None:
    """Stemming every distinct word once gives the tokens that rouge_score makes."""
    assert StemmedWords().of(text) == SCORER._tokenizer.tokenize(text)
