"""PageSum: pages are encoded and decoded separately, and mixed by confidence. Start with `model.py`."""
