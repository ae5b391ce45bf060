"""The built-in dataset of docstrings."""
