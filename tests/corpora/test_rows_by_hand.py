"""What the smallest row of a dataset becomes, worked by hand."""

from typing import Any

import pytest
from support.dataset_rows import ROWS, release_row

from longsumbench.core import Document, Example, Section, registry
from longsumbench.corpora.loading.rows import thinned_examples
from longsumbench.corpora.openstax import BARE

Paragraphs = tuple[tuple[str, ...], ...]


def document(source: str | None, **sections: Paragraphs) -> Document:
    """Return a document; the section `_` has no name."""
    named = [Section(None if name == "_" else name, text) for name, text in sections.items()]
    return Document(source, tuple(named))


def paper(source: str | None) -> Example:
    """Return the paper of `release_row`."""
    article = document(source, Introduction=(("Cells are small.",),), Results=(("They grew.",),))
    return Example("x_1", "On cells", None, (article,), (("Cells grow.", "We show how."),))


STORY = (document("e2be", _=(("It snowed.", "She left."),)),)
MODULE: dict[str, Paragraphs] = {"_": (("One.",),), "A": (("Two.",),)}
EXPECTED: dict[str, list[Example]] = {
    "proposals": [paper("https://a.org")],
    "newts": [
        Example("x_1-218", None, "snow", STORY, (("It was cold.",),)),
        Example("x_1-62", None, "island", STORY, (("A rescue.",),)),
    ],
    "squality": [
        Example(
            "x_1-1",
            None,
            "What happened?",
            (document("x_1", _=(("It rained.",), ("She left.",))),),
            (("She left.",), ("It rained.",)),
        )
    ],
    "fewsum": [
        Example(
            "amazon/x_1",
            None,
            None,
            tuple(document(f"review {n}", _=((f"Review {n}.", "Good."),)) for n in range(1, 9)),
            (("Summary 1.",), ("Summary 2.",), ("Summary 3.",)),
        )
    ],
    "opinosis": [
        Example(
            "x_1",
            "x 1",
            None,
            (document(None, _=(("It lasts .",), ("Long",))),),
            (("Good.", "OK"), ("Good.",)),
        )
    ],
    "openstax": [
        Example(
            "x_1",
            "Voting",
            None,
            (document("Part 1", **MODULE), document("Part 2", **MODULE)),
            (("In short.", "In short."),),
        )
    ],
    "openstax_modules": [
        Example(f"x_1/m{n}", f"Part {n}", None, (document("Voting", **MODULE),), (("In short.",),))
        for n in (1, 2)
    ],
    "wiki_sections": [
        Example(
            "x_1",
            "Sheep",
            None,
            (
                document(
                    "https://en.wikipedia.org/?curid=x_1",
                    History=(("They were wild.", "Then they were kept."), ("They stayed.",)),
                ),
            ),
            (("Sheep are kept for wool.",),),
        )
    ],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_row_by_hand(name: str) -> None:
    """Ids, titles, queries, sources, section names, paragraphs and references are where they belong."""
    from_row: Any = registry.corpora.load(name).from_file_row
    items = thinned_examples(from_row(ROWS[name][0]("x_1")))
    assert [item.example for item in items] == EXPECTED[name]
    assert not any(item.left_out.get(BARE) for item in items)


@pytest.mark.parametrize("name", ["sumpubmed", "elife"])
def test_other_papers_in_the_layout_of_the_release(name: str) -> None:
    """They are read as arXiv's release, and have no address."""
    from_row: Any = registry.corpora.load(name).from_file_row
    assert from_row(release_row("x_1")) == paper(None)
