"""Search2Wiki: articles with their search results, as JSON lines, and which pages are clones."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from longsumbench.core import Document, Example, Section
from longsumbench.corpora.loading.fields import BadRow
from longsumbench_reproduction.corpora.clones import PAGE_RULES, PageRule
from longsumbench_reproduction.corpora.search2wiki import MOST_RESULTS, RULES, search2wiki_example

LEAD = "Sheep are kept for wool by many people."
HISTORY = "They were wild once upon a time. Then they were tamed."
COPY = f"Buy now! {HISTORY} Sale."
LEFT_OUT = "search results beyond the first 75", "empty search results", "clone search results"


def page(text: str, number: int = 1, **changes: Any) -> dict[str, Any]:
    return {"url": f"https://{number}.org", "title": f"Page {number}", "text": text, **changes}


def article(*results: Any, **changes: Any) -> dict[str, Any]:
    sections = [{"title": "History", "paragraphs": [HISTORY]}]
    return {
        "id": "7",
        "title": "Sheep",
        "lead": [LEAD],
        "sections": sections,
        "results": list(results),
        **changes,
    }


def kept(*results: Any, **changes: Any) -> list[str | None]:
    """The sources of the pages that stay."""
    return [
        document.source
        for document in search2wiki_example(article(*results, **changes)).example.documents
    ]


def test_the_whole_article_is_the_reference_and_a_result_a_document() -> None:
    """The whole article is the reference, a result a document with its address, its title and its paragraphs."""
    row = article(
        page("One. Two.\n\nThree."),
        {"source": "s", "paragraphs": ["Four.\n\nFive.", " "]},
        {"text": "Six."},
    )
    documents = (
        Document("https://1.org", (Section("Page 1", (("One.", "Two."), ("Three.",))),)),
        Document("s", (Section(None, (("Four.", "Five."),)),)),
        Document(None, (Section(None, (("Six.",),)),)),
    )
    reference = (LEAD, "They were wild once upon a time.", "Then they were tamed.")
    assert search2wiki_example(row) == (
        Example("7", "Sheep", None, documents, (reference,)),
        dict.fromkeys(LEFT_OUT, 0),
    )


def test_the_first_75_are_used() -> None:
    """They stay in their order; what is beyond, and what is empty, is counted."""
    results = [page(" " if number == 3 else f"Word {number}.", number) for number in range(80)]
    example, left_out = search2wiki_example(article(*results))
    assert [document.source for document in example.documents] == [
        f"https://{number}.org" for number in range(MOST_RESULTS) if number != 3
    ]
    assert left_out == dict(zip(LEFT_OUT, (5, 1, 0), strict=True))


def test_the_row_chooses_the_rule() -> None:
    """Words in any order are a clone by WikiSum's rule alone; by none nothing is."""
    shuffled = page("Time, tamed: wild, once they were, upon a …", 1)
    results = shuffled, page(COPY, 2), page("Wool is warm.", 3)
    assert (
        kept(*results, clones=None)
        == kept(*results, clones="search2wiki")
        == ["https://1.org", "https://3.org"]
    )
    assert kept(*results, clones="wikisum") == ["https://3.org"]
    assert kept(*results, clones="none") == ["https://1.org", "https://2.org", "https://3.org"]
    with pytest.raises(BadRow, match="all search results are clones of the article"):
        kept(page(COPY))


def test_thresholds_are_strict() -> None:
    """A fifth of the 6-grams, or half of the words, is no clone yet; one more is."""
    ten = " ".join(f"w{number}" for number in range(10))  # five 6-grams
    assert PAGE_RULES["search2wiki"].clones(
        [(ten,)], [("w0 w1 w2 w3 w4 w5",), ("w0 w1 w2 w3 w4 w5 w6",)]
    ) == [
        False,
        True,
    ]
    assert PAGE_RULES["wikisum"].clones(
        [(ten,)], [("w9 w7 w5 w3 w1",), ("w9 w7 w5 w3 w1 w0",)]
    ) == [False, True]
    assert PAGE_RULES == {"search2wiki": (6, 0.2), "wikisum": (1, 0.5)}
    assert RULES == ("search2wiki", "wikisum", "none")


WORDS = st.lists(st.sampled_from("abc"), max_size=12)


@given(WORDS, st.lists(WORDS, max_size=4), st.integers(1, 4))
def test_section_recall_equals_a_plain_count(
    text: list[str], sections: list[list[str]], length: int
) -> None:
    """It agrees with a search for each n-gram of each section in the page's words."""

    def stands(gram: list[str]) -> bool:
        return any(text[at : at + length] == gram for at in range(len(text)))

    shares = []
    for words in sections:
        grams = [words[at : at + length] for at in range(len(words) - length + 1)]
        distinct = [gram for at, gram in enumerate(grams) if gram not in grams[:at]]
        shares += [sum(map(stands, distinct)) / len(distinct)] if distinct else []
    given_sections: list[tuple[str, ...]] = [(" ".join(words),) for words in sections]
    (recall,) = PageRule(length, 0).recalls(given_sections, [(" ".join(text),)])
    assert recall == max(shares, default=0)
