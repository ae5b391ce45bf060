"""Readers for the file formats of original releases, one module per format. Datasets pass them to their `Corpus`."""
