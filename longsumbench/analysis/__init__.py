"""Analyses of datasets, outputs and finished runs; no run needs this package. Start reading with `names.py`."""
