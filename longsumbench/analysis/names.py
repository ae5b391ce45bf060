"""What `longsumbench analyze` can look at, by name: what finds it, and what writes it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from longsumbench.analysis.coherence import plot as of_coherence
from longsumbench.analysis.coherence.coherence import analyze_coherence
from longsumbench.analysis.fusion import page as of_fusion
from longsumbench.analysis.fusion.fusion import analyze_fusion
from longsumbench.analysis.locality import plot as of_locality
from longsumbench.analysis.locality.locality import analyze_locality


class Analysis(NamedTuple):
    """One of them.

    Attributes:
        find: settings of the dataset, of the analysis, where runs are → what was found, which `render` draws.
        write: what was found, a folder → the files written there.
    """

    find: Callable[..., Any]
    write: Callable[[Any, Path], list[Path]]


ANALYSES: Mapping[str, Analysis] = {
    "locality": Analysis(analyze_locality, of_locality.write_locality),
    "fusion": Analysis(analyze_fusion, of_fusion.write_fusion),
    "coherence": Analysis(analyze_coherence, of_coherence.write_coherence),
}
