"""Layers and losses that several systems use."""
