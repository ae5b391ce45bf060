"""The page of an example without evidence: nearest sentences by hand, marks, and texts that stay texts."""

from support.run_records import record

from longsumbench.core import Document, Example, Section, Summary
from longsumbench.outputs.inspection import Inspection, nearest_sentences, overlap_page


def page(output: str, source: tuple[str, ...], reference: str, read: str | None = None) -> str:
    """Return the page of an output."""
    document = Document("A <source>", (Section("Intro & more", (source,)),))
    example = Example("e-1", "Title", None, (document,), ((reference,),))
    facts = Inspection(
        record("theirs", 30),
        0,
        Summary("e-1", output),
        None,
        {},
        example,
        "no evidence was kept",
        read,
    )
    return overlap_page(facts)


def test_nearest_sentences_by_hand() -> None:
    """Equal sentences have 100; two of three words and one of two bigrams (2/3 + 1/2) / 2; no word in common, none."""
    source = ["Dogs bark loudly.", "Red cats sleep.", "Red cats sleep."]
    shared = 50 * (2 / 3 + 1 / 2)
    found = nearest_sentences(["Red cats sleep.", "Red cats run.", "Nothing."], source)
    assert found == [(1, 100.0), (1, shared), (None, 0.0)]
    assert nearest_sentences([], source) == []
    assert nearest_sentences(["A."], []) == [(None, 0.0)]


def test_words_are_marked_by_who_shares_them() -> None:
    """A word of the output is marked as in the source, in a reference, or in both; others are not."""
    text = page(
        "Cats sleeping under purple tables.",
        ("Cats slept; sleep under roofs.",),
        "Cats near tables.",
    )
    assert (
        '<mark class="both">Cats</mark> <mark class="one">sleeping</mark> <mark class="one">under</mark>'
        in text
    )
    assert ' purple <mark class="other">tables</mark>.' in text
    assert "no evidence was kept" in text
