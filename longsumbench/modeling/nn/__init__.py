"""Layers and losses that several systems use.

Start with `unit_encoder`, which encodes units, and `encoder_decoder`, which adds a decoder and the loss.
"""
