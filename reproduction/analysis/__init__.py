"""Analyses of texts and summaries: locality, fusion, coherence, and the recall of rankers."""
