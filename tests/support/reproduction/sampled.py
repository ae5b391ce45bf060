"""Examples as an analysis sees them, made in memory."""

from collections.abc import Sequence

from support.toys import ToySplit

from longsumbench.core import Example
from longsumbench.runs.record import RunRecord
from longsumbench_reproduction.analysis.sampled import Outputs, Sampled


def drawn(examples: Sequence[Example], *outputs: tuple[RunRecord, dict[str, str]]) -> Sampled:
    runs = tuple(Outputs(record, summaries) for record, summaries in outputs)
    return Sampled("toys", "f00", ToySplit("test", list(examples)), range(len(examples)), 1, runs)
