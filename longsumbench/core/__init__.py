"""Interfaces of systems, corpora, metrics and rankers, their settings, and the registry of their names.

What plug-ins need can be imported from here: `from longsumbench.core import Example, Summary, System`. Start with
`system.py` to add a model, `corpus.py` to add a dataset, and `settings.py` and `config.py` for the settings.
"""

import lazy_loader

# The names of `__init__.pyi`; their modules are imported when they are first used: listing names needs no pandas.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
