"""The Hierarchical Transformer and the Flat Transformer. Start with `model.py` and `global_layer.py`."""
