"""Examples of a few sentences, made in memory."""

from collections.abc import Sequence

from longsumbench.core import Document, Example, Section


def example(name: str, *documents: Sequence[str], reference: Sequence[str] = ("a.",)) -> Example:
    """Return an example of documents that are lists of sentences."""
    read = tuple(Document(None, (Section(None, (tuple(one),)),)) for one in documents)
    return Example(name, None, None, read, (tuple(reference),) if reference else ())
