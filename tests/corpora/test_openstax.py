"""OpenStax: headings and modules without text."""

import pytest
from support.dataset_rows import chapter_row

from longsumbench.corpora.loading.fields import BadRow
from longsumbench.corpora.openstax import BARE, openstax_example


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
