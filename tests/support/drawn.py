"""Examples as an analysis sees them, made in memory."""

from collections.abc import Sequence

from longsumbench.core import Document, Example, Section
from longsumbench.runs.record import RunRecord
from longsumbench_reproduction.analysis.sampled import Outputs, Sampled
from support.toys import ToySplit


def example(name: str, *documents: Sequence[str], reference: Sequence[str] = ("a.",)) -> Example:
    """Return an example of documents that are lists of sentences."""
    read = tuple(Document(None, (Section(None, (tuple(one),)),)) for one in documents)
    return Example(name, None, None, read, (tuple(reference),) if reference else ())


def drawn(examples: Sequence[Example], *outputs: tuple[RunRecord, dict[str, str]]) -> Sampled:
    runs = tuple(Outputs(record, summaries) for record, summaries in outputs)
    return Sampled("toys", "f00", ToySplit("test", list(examples)), range(len(examples)), 1, runs)
