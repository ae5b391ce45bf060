"""The Hierarchical Transformer, its paragraph ranker and graphs, the Flat Transformer and T-DMCA."""
