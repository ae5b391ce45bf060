"""Interfaces of systems, corpora, metrics and rankers, their settings, and the registry of their names.

Start with `system.py` to add a model, `corpus.py` to add a dataset, and `config.py` for the settings.
"""
