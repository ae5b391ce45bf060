"""Analyses of datasets, outputs and finished runs, each with its number and its picture; no run needs this package.

Start with `plan.py`, which has `longsumbench stats`.
"""
