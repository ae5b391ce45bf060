"""ETADS: focus attention in the encoder, saliency selection in the decoder. Start with `model.py`."""
