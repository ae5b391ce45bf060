"""T-DMCA, and the discourse graph of the Hierarchical Transformer."""
