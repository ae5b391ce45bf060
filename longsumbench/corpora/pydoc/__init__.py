"""The built-in dataset `pydoc`, made of docstrings. Start with `generate_docstrings` in `pydoc.py`."""
