"""Interfaces of systems, corpora, metrics and rankers, their settings, and the registry of their names.

What plug-ins need can be imported from here: `from longsumbench.api import Example, Summary, System`. Start with
`system.py` to add a model, `corpus.py` to add a dataset, and `config.py` for the settings.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longsumbench.api.config import Decoding, Recipe, Scoring
    from longsumbench.api.corpus import BuiltIn, Corpus, Hub, Row
    from longsumbench.api.documents import Document, Example, Section, Truncation
    from longsumbench.api.metric import Metric
    from longsumbench.api.ranker import LearnedRanker, Ranker
    from longsumbench.api.settings import setting
    from longsumbench.api.system import Evidence, FitContext, FitReport, Split, Summary, System

_NAMES = {  # module → names, imported when they are first used: listing names needs no pandas
    "config": ("Decoding", "Recipe", "Scoring"),
    "corpus": ("BuiltIn", "Corpus", "Hub", "Row"),
    "documents": ("Document", "Example", "Section", "Truncation"),
    "metric": ("Metric",),
    "ranker": ("LearnedRanker", "Ranker"),
    "settings": ("setting",),
    "system": ("Evidence", "FitContext", "FitReport", "Split", "Summary", "System"),
}
__all__ = ["BuiltIn", "Corpus", "Decoding", "Document", "Evidence", "Example", "FitContext", "FitReport", "Hub"]
__all__ += ["LearnedRanker", "Metric", "Ranker", "Recipe", "Row", "Scoring", "Section", "Split", "Summary", "System"]
__all__ += ["Truncation", "setting"]

if not TYPE_CHECKING:  # type checkers read the imports above

    def __getattr__(name: str) -> object:
        for module, names in _NAMES.items():
            if name in names:
                return getattr(import_module(f"longsumbench.api.{module}"), name)
        raise AttributeError(f"module 'longsumbench.api' has no attribute '{name}'")
