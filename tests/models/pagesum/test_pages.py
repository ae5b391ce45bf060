"""Cutting a text into pages."""

from collections.abc import Callable
from functools import partial
from itertools import chain

import pytest
from hypothesis import given, strategies as st
from support.hand_texts import numbered_texts, sentence

from longsumbench.core import Cut, Truncation
from longsumbench.modeling.units import EncodedSentence, Units
from longsumbench.models.pagesum.pages import (
    PageText,
    discourse_pages,
    document_pages,
    spatial_pages,
    token_pages,
)

Text = list[EncodedSentence]
LIMITS = st.integers(1, 12)


def named(documents: list[Text], lengths: list[int]) -> list[PageText]:
    """Each document as a section whose name has negative tokens."""
    sections = []
    for index, text in enumerate(documents):
        sections.append(
            PageText(index, text, [-1 - one for one in range(lengths[index % len(lengths)])])
        )
    return sections


def by_section(documents: list[Text], num_pages: int, page_size: int) -> Units:
    return discourse_pages(named(documents, [0, 2, 15]), num_pages, page_size)


def by_token(documents: list[Text], num_pages: int, page_size: int) -> Units:
    return token_pages(documents, page_size + 2, num_pages * (page_size + 2))


SPLITTERS: dict[str, Callable[[list[Text], int, int], Units]] = {
    "spatial": spatial_pages,
    "official": partial(spatial_pages, official=True),
    "discourse": by_section,
    "document": document_pages,
    "tokens": by_token,
}
every_splitter = pytest.mark.parametrize("split", SPLITTERS.values(), ids=SPLITTERS)


def text_of(units: Units) -> list[list[int]]:
    """The source's tokens on each page: the tokens of names are negative."""
    return [[token for token in ids if token >= 0] for ids in units.ids]


@every_splitter
@given(numbered_texts(), LIMITS, LIMITS)
def test_the_ledger_balances(
    split: Callable[[list[Text], int, int], Units], texts: list[Text], most: int, size: int
) -> None:
    """The source is what is on the pages plus what was cut, in tokens and in words; names are in neither."""
    units = split(texts, most, size)
    ledger = units.truncation
    assert ledger.tokens == sum(len(s.ids) for text in texts for s in text)
    assert ledger.words == sum(s.words for text in texts for s in text)
    assert ledger.tokens_seen == sum(map(len, text_of(units)))
    assert ledger.words_seen == sum(units.words)
    assert all(
        cut.tokens >= 0 and cut.words >= 0 and cut.tokens + cut.words > 0 for cut in ledger.cuts
    )
    assert all(words >= 0 for words in units.words)


@every_splitter
@given(numbered_texts(), LIMITS, LIMITS)
def test_pages_keep_the_limits_and_the_order(
    split: Callable[[list[Text], int, int], Units], texts: list[Text], most: int, size: int
) -> None:
    """No page is empty or over-long, there are never too many, each knows where it begins, and no token moves."""
    units = split(texts, most, size)
    assert len(units.ids) == len(units.documents) == len(units.words) <= most
    assert all(0 < len(ids) <= size for ids in units.ids)
    tokens = list(chain.from_iterable(text_of(units)))
    assert tokens == sorted(set(tokens))
    owner = {token: index for index, text in enumerate(texts) for s in text for token in s.ids}
    begins = [
        (index, ids[0]) for index, ids in zip(units.documents, text_of(units), strict=True) if ids
    ]
    assert [owner[token] for _, token in begins] == [index for index, _ in begins]


@every_splitter
@given(numbered_texts(), LIMITS, LIMITS)
def test_the_span_of_a_page_has_the_sentences_that_begin_on_it(
    split: Callable[[list[Text], int, int], Units], texts: list[Text], most: int, size: int
) -> None:
    """Spans are disjoint and in order; a sentence is in one if and only if its first token is read on that page."""
    units, every = split(texts, most, size), [s for text in texts for s in text]
    bounds = list(chain.from_iterable(units.spans))
    assert bounds == sorted(bounds)
    found = [[s.ids[0] for s in every[first:end] if s.ids] for first, end in units.spans]
    begins = {s.ids[0] for s in every if s.ids}
    assert found == [[token for token in page if token in begins] for page in text_of(units)]


def test_worked_page_size() -> None:
    """Of 4, 6 and 5 tokens a page of 8 lacks 2 of the second (⌈5 · 2 / 6⌉ words) and the third, which has no page."""
    units = spatial_pages(
        [[sentence(4, 3), sentence(6, 5), sentence(5, 4)]], num_pages=1, page_size=8
    )
    assert units.ids == ([0, 1, 2, 3, 0, 1, 2, 3],)
    assert units.words == (6,)
    assert units.spans == ((0, 2),)
    assert units.truncation == Truncation(15, 12, (Cut("page_size", 7, 6),))


def test_worked_token_pages() -> None:
    """Words end with tokens 2, 3, 5, 6, 7 and 9, 11: pages of 4 tokens have 2 and 3 of them, the rest is left out."""
    encoded = [[sentence(7, 5)], [sentence(4, 2, first=7)]]
    units = token_pages(encoded, page_size=6, max_input_tokens=13)
    assert units.ids == ([0, 1, 2, 3], [4, 5, 6, 7])
    assert (units.documents, units.words) == ((0, 0), (2, 3))
    assert units.spans == ((0, 1), (1, 2))
    assert units.truncation == Truncation(11, 7, (Cut("max_input_tokens", 3, 2),))
    assert token_pages(encoded, page_size=6, max_input_tokens=18).documents == (0, 0, 1)
