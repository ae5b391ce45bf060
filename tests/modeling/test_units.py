"""Packing sentences into units."""

from hypothesis import given, strategies as st
from support.hand_texts import numbered_texts, sentence

from longsumbench.core import Cut, Truncation
from longsumbench.modeling.units import EncodedSentence, Units, join_units, split_snippets

limits = st.integers(1, 15)


def balances(units: Units, texts: list[list[EncodedSentence]]) -> bool:
    ledger = units.truncation
    whole = (sum(len(s.ids) for d in texts for s in d), sum(s.words for d in texts for s in d))
    return (
        (ledger.tokens, ledger.words) == whole
        and ledger.tokens_seen == sum(map(len, units.ids))
        and all(cut.tokens > 0 and cut.words >= 0 for cut in ledger.cuts)
        and 0 <= ledger.words_seen <= ledger.words
    )


@given(numbered_texts(), limits, limits)
def test_the_ledger_balances(encoded: list[list[EncodedSentence]], length: int, most: int) -> None:
    """Tokens in the snippets plus tokens in the ledger's cuts are all tokens, for every text and limits."""
    units = split_snippets(encoded, length, most)
    assert balances(units, encoded)
    assert balances(join_units(units, most), encoded)


@given(numbered_texts(), limits, limits)
def test_snippets_keep_the_limits(
    encoded: list[list[EncodedSentence]], length: int, most: int
) -> None:
    """No snippet is empty or over-long, there are never too many, and each knows its document."""
    units = split_snippets(encoded, length, most)
    assert len(units.ids) == len(units.documents) == len(units.words) <= most
    assert all(0 < len(ids) <= length for ids in units.ids)
    owner = {
        token: index for index, document in enumerate(encoded) for s in document for token in s.ids
    }
    assert [{owner[token] for token in ids} for ids in units.ids] == [
        {index} for index in units.documents
    ]


def test_worked_example() -> None:
    """Sentences of 3, 3, 12 tokens and a second document of 2, 9 in snippets of 8: 6, 8 (4 cut), 2, 8 (1 cut)."""
    encoded = [[sentence(3, 2), sentence(3, 3), sentence(12, 6)], [sentence(2, 2), sentence(9, 8)]]
    units = split_snippets(encoded, snippet_length=8, num_snippets=4)
    assert [len(ids) for ids in units.ids] == [6, 8, 2, 8]
    assert units.documents == (0, 0, 1, 1)
    assert units.words == (
        5,
        4,
        2,
        7,
    )  # 6 words in 12 tokens: 4 tokens are 2 words; 8 in 9: 1 token is 1 word
    assert units.truncation == Truncation(29, 21, (Cut("snippet_length", 5, 3),))


def test_worked_join() -> None:
    """Snippets of 6 and 8 tokens (6 and 4 words) cut at 9: 5 tokens go, and ⌈4 · 5 / 8⌉ = 3 words."""
    units = split_snippets([[sentence(6, 6), sentence(8, 4)]], snippet_length=8, num_snippets=4)
    joined = join_units(units, input_length=9)
    assert joined.ids == ([0, 1, 2, 3, 4, 5, 0, 1, 2],)
    assert (joined.words, joined.documents) == ((7,), (0,))
    assert joined.truncation == Truncation(14, 10, (Cut("input_length", 5, 3),))
