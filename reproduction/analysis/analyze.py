"""The analyses by name, for `longsumbench analyze`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from longsumbench.analysis.plan import build_command_settings, split_settings
from longsumbench.arguments import public_function
from longsumbench.errors import UnknownName, UsageError
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.results import Results
from longsumbench_reproduction.analysis.coherence import CoherenceSettings, analyze_coherence
from longsumbench_reproduction.analysis.fusion import FusionSettings, analyze_fusion
from longsumbench_reproduction.analysis.locality import LocalitySettings, analyze_locality
from longsumbench_reproduction.analysis.sampled import AnalysisResult, SampleSettings


class Analysis(NamedTuple):
    """The dataclass of an analysis's settings, and settings of the dataset, these settings, results → its result."""

    settings: type[SampleSettings]
    find: Callable[..., AnalysisResult]


# Another analysis is one more line here.
ANALYSES: Mapping[str, Analysis] = {
    "locality": Analysis(LocalitySettings, analyze_locality),
    "fusion": Analysis(FusionSettings, analyze_fusion),
    "coherence": Analysis(CoherenceSettings, analyze_coherence),
}


@public_function
def analyze(
    analysis: str, words: Sequence[str] = (), results_dir: str | Path = "results", **settings: Any
) -> AnalysisResult:
    """Analyze the texts of a dataset or the summaries of runs, as `longsumbench analyze` does; nothing is written.

        analyze("locality", dataset="aclsum", sample=50).table()

    Args:
        analysis: "locality", "fusion" or "coherence".
        words: settings as typed ("dataset=elife").
        results_dir: where ids of runs are looked for.
        settings: the same as arguments; a list is several values.

    Returns:
        Numbers in `table()`, of fusion in `bars()` and `by_run()`; docs/how-to/analyze.md has their units.

    Raises:
        UsageError: the analysis or a setting is unknown or invalid, or a run has read other texts.
        DataError: the texts cannot be used.
    """
    if analysis not in ANALYSES:
        raise UnknownName("analysis", analysis, ANALYSES)
    texts, values = split_settings([*words, *format_overrides(settings, swept=True)], "analyze")
    if "run" in values and analysis == "locality":
        raise UsageError("run= has no meaning for locality, which reads only sources: leave it out")
    planned = build_command_settings(ANALYSES[analysis].settings, values)
    return ANALYSES[analysis].find(texts, planned, Results.at(results_dir))
