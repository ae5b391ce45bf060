"""The SEAL family (SEAL §3): Trunc, CA, EA and SEAL. Start with `model.py`; `selection.py` selects."""
