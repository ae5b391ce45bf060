"""T-DMCA (Liu et al. 2018): a decoder-only Transformer with memory-compressed attention. Start with `model.py`."""
