"""The datasets: one short file each that says where it comes from, its licence, and how a row becomes an Example.

A new one is a `Corpus` in a file of its own and a line in `registry.py`; another package adds its own through the
entry-point group `longsumbench.corpora`.
"""
