"""What is read of an example: its paragraphs, how they are found, and how they are cut."""

from longsumbench.core import Cut, Document, Example, Section
from longsumbench.modeling.units import EncodedSentence, Limits, best_paragraphs, split_paragraphs

EXAMPLE = Example(
    "1",
    "a title",
    None,
    (
        Document("a", (Section("one", (("A a.", "B b."), ("C c.",))), Section(None, (("D d.",),)))),
        Document("b", (Section(None, (("E e.",), ("  ",))),)),
    ),
    (("A.",),),
)


def sentence(length: int, words: int | None = None, token: int = 7) -> EncodedSentence:
    """Return so many tokens, of as many words."""
    return EncodedSentence([token] * length, length if words is None else words)


def test_paragraphs_know_their_sentences() -> None:
    """Spans count all sentences of the example, also blank ones, which belong to no paragraph."""
    paragraphs = split_paragraphs(EXAMPLE, "paragraph")
    assert [paragraph.text for paragraph in paragraphs] == ["A a. B b.", "C c.", "D d.", "E e."]
    assert [paragraph.position for paragraph in paragraphs] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert [paragraph.span for paragraph in paragraphs] == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert [one.span for one in split_paragraphs(EXAMPLE, "section")] == [(0, 3), (3, 4), (4, 5)]
    blank_first = Example(
        "2", None, None, (Document(None, (Section(None, ((" ",), ("A.", "", "B."))),)),), (("A.",),)
    )
    assert [one.span for one in split_paragraphs(blank_first, "paragraph")] == [(1, 4)]


def test_the_best_fit_by_hand() -> None:
    """Title 2; of four paragraphs the best three, cut to 4 tokens, in 9 altogether: 2 + 4 + 1 + 2."""
    ranked = [sentence(6), sentence(1), sentence(3), sentence(5)]
    units = best_paragraphs(sentence(2), ranked, [1, 0, 1, 2], Limits(3, 4, 9))
    assert [len(ids) for ids in units.ids] == [2, 4, 1, 2]
    assert units.documents == (1, 1, 0, 1)
    assert units.words == (2, 4, 1, 2)
    assert (units.truncation.tokens, units.truncation.words) == (17, 17)
    cuts = (Cut("num_paragraphs", 5, 5), Cut("paragraph_length", 2, 2), Cut("input_length", 1, 1))
    assert units.truncation.cuts == cuts
    assert units.truncation.tokens_seen == 9
