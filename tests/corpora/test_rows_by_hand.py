"""What the smallest row of a dataset becomes, worked by hand."""

from typing import Any

import pytest
from support.dataset_rows import ROWS, chapter_row, release_row

from longsumbench.core import Example, registry
from longsumbench.corpora.loading.fields import BadRow
from longsumbench.corpora.loading.rows import thinned_examples
from longsumbench.corpora.openstax import BARE, openstax_example

REVIEWS = "\n".join(f"  'review {n}'\n    None: Review {n}. | Good." for n in range(1, 9))
# Of each example: its id, title and query; its documents and their sections; its references. A bar separates sentences,
# two separate paragraphs.
EXPECTED = {
    "proposals": """
x_1, 'On cells', None
  'https://a.org'
    'Introduction': Cells are small.
    'Results': They grew.
  = Cells grow. | We show how.
""",
    "newts": """
x_1-218, None, 'snow'
  'e2be'
    None: It snowed. | She left.
  = It was cold.
x_1-62, None, 'island'
  'e2be'
    None: It snowed. | She left.
  = A rescue.
""",
    "cnn_dailymail": """
x_1, None, None
  None
    None: It snowed. | She || left.
  = It snowed . | She left .
""",
    "squality": """
x_1-1, None, 'What happened?'
  'x_1'
    None: It rained. || She left.
  = She left.
  = It rained.
""",
    "fewsum": f"""
amazon/x_1, None, None
{REVIEWS}
  = Summary 1.
  = Summary 2.
  = Summary 3.
""",
    "opinosis": """
x_1, 'x 1', None
  None
    None: It lasts . || Long
  = Good. | OK
  = Good.
""",
    "openstax": """
x_1, 'Voting', None
  'Part 1'
    None: One.
    'A': Two.
  'Part 2'
    None: One.
    'A': Two.
  = In short. | In short.
""",
    "openstax_modules": """
x_1/m1, 'Part 1', None
  'Voting'
    None: One.
    'A': Two.
  = In short.
x_1/m2, 'Part 2', None
  'Voting'
    None: One.
    'A': Two.
  = In short.
""",
    "wiki_sections": """
x_1, 'Sheep', None
  'https://en.wikipedia.org/?curid=x_1'
    'History': They were wild. | Then they were kept. || They stayed.
  = Sheep are kept for wool.
""",
}


def outline(example: Example) -> str:
    """Return the lines of an example, which has nothing else."""
    lines = [f"\n{example.id}, {example.title!r}, {example.query!r}"]
    for document in example.documents:
        lines.append(f"  {document.source!r}")
        for section in document.sections:
            text = " || ".join(map(" | ".join, section.paragraphs))
            lines.append(f"    {section.name!r}: {text}")
    lines += [f"  = {' | '.join(reference)}" for reference in example.references]
    named = (example.id, example.title, example.query, example.documents, example.references)
    assert example == Example(*named)
    return "\n".join(lines)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_row_by_hand(name: str) -> None:
    """Ids, titles, queries, sources, section names, paragraphs and references are where they belong."""
    from_row: Any = registry.corpora.load(name).from_file_row
    items = thinned_examples(from_row(ROWS[name][0]("x_1")))
    assert "".join(outline(item.example) for item in items) == EXPECTED[name].rstrip()
    assert not any(item.left_out.get(BARE) for item in items)


@pytest.mark.parametrize("name", ["sumpubmed", "elife"])
def test_other_papers_in_the_layout_of_the_release(name: str) -> None:
    """They are read as arXiv's release, and have no address."""
    from_row: Any = registry.corpora.load(name).from_file_row
    paper = EXPECTED["proposals"].replace("'https://a.org'", "None")
    assert outline(from_row(release_row("x_1"))) == paper.rstrip()


def test_an_empty_module_is_no_document() -> None:
    """Its summary is in the reference, and its heading is counted; a chapter of nothing else is an error."""
    row = chapter_row("b/m0")
    first, second = row["modules"]
    first["paragraphs"] = ["# Heading", " "]
    example, left_out = openstax_example(row)
    assert [document.source for document in example.documents] == ["Part 2"]
    assert example.references == (("In short.", "In short."),)
    assert left_out == {BARE: 1}
    second["paragraphs"] = []
    with pytest.raises(BadRow, match="no module with text"):
        openstax_example(row)
