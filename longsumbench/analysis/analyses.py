"""The analyses of `longsumbench analyze`, by name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from longsumbench.analysis.coherence import plot as coherence_plot
from longsumbench.analysis.coherence.coherence import CoherenceFound, CoherenceSettings, analyze_coherence
from longsumbench.analysis.fusion import page as fusion_page
from longsumbench.analysis.fusion.fusion import FusionSettings, FusionsFound, analyze_fusion
from longsumbench.analysis.locality import plot as locality_plot
from longsumbench.analysis.locality.locality import Locality, LocalitySettings, analyze_locality
from longsumbench.analysis.sampled import SampleSettings

Finding = Locality | FusionsFound | CoherenceFound


class Analysis(NamedTuple):
    """An analysis.

    Attributes:
        settings: dataclass of its settings.
        find: settings of the dataset, settings of the analysis, results → what was found.
        write: that object, a folder → the files written.
    """

    settings: type[SampleSettings]
    find: Callable[..., Finding]
    write: Callable[[Any, Path], list[Path]]


ANALYSES: Mapping[str, Analysis] = {
    "locality": Analysis(LocalitySettings, analyze_locality, locality_plot.write_locality),
    "fusion": Analysis(FusionSettings, analyze_fusion, fusion_page.write_fusion),
    "coherence": Analysis(CoherenceSettings, analyze_coherence, coherence_plot.write_coherence),
}
