"""One structure for every text, and the ledger."""

import json

from hypothesis import given, strategies as st

from longsumbench.core import (
    Cut,
    Document,
    Example,
    Section,
    Truncation,
    describe_reading,
    total_truncation,
)

WORDS = st.text("ab \n", max_size=8)
SENTENCES = st.lists(WORDS, max_size=3).map(tuple)
SECTIONS = st.builds(Section, st.none() | WORDS, st.lists(SENTENCES, max_size=2).map(tuple))
DOCUMENTS = st.builds(Document, st.none() | WORDS, st.lists(SECTIONS, max_size=2).map(tuple))
EXAMPLES = st.builds(
    Example,
    WORDS,
    st.none() | WORDS,
    st.none() | WORDS,
    st.lists(DOCUMENTS, min_size=1, max_size=2).map(tuple),
    st.lists(SENTENCES, min_size=1, max_size=2).map(tuple),
)
CUTS = st.lists(
    st.sampled_from(["input_length", "num_snippets", "page_size"]), unique=True, max_size=3
).flatmap(
    lambda causes: st.tuples(
        *[st.builds(Cut, st.just(cause), st.integers(1, 9), st.integers(0, 9)) for cause in causes]
    )
)
LEDGERS = st.lists(
    st.builds(Truncation, st.integers(30, 99), st.integers(30, 99), CUTS), max_size=4
)


@given(EXAMPLES)
def test_an_example_survives_json(example: Example) -> None:
    """Written as plain values, as JSON and read again, an example equals itself."""
    assert Example.from_dict(json.loads(json.dumps(example.to_dict()))) == example


@given(EXAMPLES)
def test_source_words_are_those_of_its_sentences(example: Example) -> None:
    """The word count is that of the sentences joined by blanks; titles and section names are not in it."""
    assert example.source_words() == len(" ".join(example.sentences()).split())


def test_sentences_come_in_reading_order() -> None:
    """Sentences run across paragraphs, sections and documents as they are."""
    one = Document("one", (Section("First", (("a", "b"), ("c",))), Section(None, (("d",),))))
    two = Document(None, (Section(None, ((), ("e",))),))
    sentences = Example("x", "Title", None, (one, two), ()).sentences()
    assert list(sentences) == list("abcde")


@given(LEDGERS)
def test_ledgers_add_up(ledgers: list[Truncation]) -> None:
    """What the sum has seen and cut is what its parts have, and no cause is in it twice."""
    summed = total_truncation(ledgers)
    assert summed.tokens_seen == sum(ledger.tokens_seen for ledger in ledgers)
    assert summed.words_seen == sum(ledger.words_seen for ledger in ledgers)
    causes = [cut.cause for cut in summed.cuts]
    assert len(causes) == len(set(causes))
    assert set(causes) == {cut.cause for ledger in ledgers for cut in ledger.cuts}


def test_worked_ledger() -> None:
    """Of 10 tokens in 8 words, cuts of 3 (2 words) and 1 (1 word) leave 6 tokens in 5 words."""
    ledger = Truncation(10, 8, (Cut("snippet_length", 3, 2), Cut("num_snippets", 1, 1)))
    assert (ledger.tokens_seen, ledger.words_seen) == (6, 5)
    twice = total_truncation([ledger, Truncation(5, 5), ledger])
    assert twice == Truncation(25, 21, (Cut("snippet_length", 6, 4), Cut("num_snippets", 2, 2)))


def test_the_ledger_in_words() -> None:
    """Without a ledger or cuts all was read; else the share in whole percent, rounded down, and what cut the rest."""
    assert describe_reading(None) == "read all of the text"
    assert describe_reading(Truncation(2_000, 1_200)) == "read all of the text, 1,200 words"
    cut = Truncation(
        2_000, 1_800, (Cut("page_size", 900, 601), Cut("max_pages", 9, 1_000)), documents_merged=2
    )
    assert describe_reading(cut) == (
        "read 11 % of the text: page_size cut 601 words, max_pages cut 1,000 words; "
        "2 documents beyond max_documents share the last one's place"
    )
