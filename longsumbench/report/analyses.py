"""What `longsumbench analyze` can look at, by name: what finds it, and what writes it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from longsumbench.analysis.coherence import coherence
from longsumbench.analysis.fusion import fusion
from longsumbench.analysis.locality import locality
from longsumbench.report import coherence as of_coherence
from longsumbench.report import fusion as of_fusion
from longsumbench.report import locality as of_locality


class Analysis(NamedTuple):
    """One of them.

    Attributes:
        find: settings of the dataset, of the analysis, where runs are → what was found, which `render` draws.
        write: what was found, a folder → the files written there.
    """

    find: Callable[..., Any]
    write: Callable[[Any, Path], list[Path]]


ANALYSES: Mapping[str, Analysis] = {
    "locality": Analysis(locality, of_locality.write),
    "fusion": Analysis(fusion, of_fusion.write),
    "coherence": Analysis(coherence, of_coherence.write),
}
