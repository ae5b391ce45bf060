"""Docstrings as text: what is kept, what is dropped, in the three habits of writing them."""

import inspect

import pytest
from hypothesis import given, strategies as st

from longsumbench.corpora.pydoc.docstrings import (
    CODE,
    HEADING,
    ITEM,
    PARAGRAPH,
    parse_docstring,
    strip_markup,
)

NUMPY = """
    Fit the model to data that is
    given here.

    More on it::

        model.fit(x)

    Parameters
    ----------
    x : array_like of shape (n, m)
        The data, see `other`.
    y : int
    **kwargs
        Passed on.

    See Also
    --------
    predict : Use the model.

    Examples
    --------
    >>> fit([1])
    Model()

    .. versionadded:: 1.2
       Long ago.
    .. note:: Slow for
       large data.
"""
GOOGLE = """Read a file (fast).

    Args:
        path (str): where it is,
            even far away.
        mode (`str`, *optional*, defaults to `"r"`): how.
    Returns:
        dict: all of it.

    ```python
    read("x")
    ```
    - one
      more
    - two
"""
FIELDS = """Do it.

:param int size: how
    large
:type size: int
:returns: nothing
:raises ValueError: if not
===== =====
a     b
===== =====
1     2
===== =====

Done.
"""


def test_headings_and_definitions_of_numpy_style_are_read() -> None:
    """Underlined headings, definitions without their types; prompts, literals and version notes go."""
    assert list(parse_docstring(inspect.cleandoc(NUMPY))) == [
        (PARAGRAPH, "Fit the model to data that is given here."),
        (PARAGRAPH, "More on it:"),
        (CODE, ""),
        (HEADING, "Parameters"),
        (ITEM, "x: The data, see other."),
        (ITEM, "kwargs: Passed on."),
        (HEADING, "See Also"),
        (PARAGRAPH, "predict : Use the model."),
        (HEADING, "Examples"),
        (CODE, ""),
        (PARAGRAPH, "Slow for large data."),
    ]


def test_headings_and_items_of_google_style_are_read() -> None:
    """Headings with a colon, "name (type): text" over several lines; fences go, lists are items."""
    assert list(parse_docstring(inspect.cleandoc(GOOGLE))) == [
        (PARAGRAPH, "Read a file (fast)."),
        (HEADING, "Args"),
        (ITEM, "path: where it is, even far away."),
        (ITEM, "mode: how."),
        (HEADING, "Returns"),
        (ITEM, "dict: all of it."),
        (CODE, ""),
        (ITEM, "one more"),
        (ITEM, "two"),
    ]


def test_field_lists_become_items_under_their_headings() -> None:
    """Fields become items under the heading they mean; types and tables go."""
    assert list(parse_docstring(FIELDS)) == [
        (PARAGRAPH, "Do it."),
        (HEADING, "Parameters"),
        (ITEM, "size: how large"),
        (HEADING, "Returns"),
        (ITEM, "nothing"),
        (HEADING, "Raises"),
        (ITEM, "ValueError: if not"),
        (CODE, ""),
        (PARAGRAPH, "Done."),
    ]


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        (":class:`~a.b.Thing` and :func:`text <a.f>`", "Thing and text"),
        ("`a page <https://x.y>`_ and [a link](https://x.y)", "a page and a link"),
        (
            "**bold**, *leaning*, 2*3*4, *args and **kwargs",
            "bold, leaning, 2*3*4, *args and **kwargs",
        ),
        ("As shown [1]_. See <Tip>this</Tip>", "As shown. See this"),
    ],
)
def test_inline_markup_leaves_its_words(marked: str, expected: str) -> None:
    """Roles, literals, links, emphasis and footnotes leave their words behind."""
    assert strip_markup(marked) == expected


MARKS = st.sampled_from(
    [
        "x",
        " ",
        "    ",
        "\n",
        "\n\n",
        "---",
        "Args:",
        ":",
        "::",
        "- ",
        ">>> ",
        ".. ",
        "note:: ",
        "```",
    ]
)


@given(st.one_of(st.text(), st.lists(MARKS).map("".join)))
def test_any_text_is_read_to_its_end(text: str) -> None:
    """No text makes reading fail or run for ever, and no piece is empty but code."""
    assert all(event.text or event.kind == CODE for event in parse_docstring(text))
