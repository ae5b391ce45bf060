"""Versions of the steps that runs share; parts of run ids and of the keys of stages.

Raise one if the same settings and texts give another outcome. CONTRIBUTING.md says which.
"""

# Texts on disk, sentences, queries, units, tokenizers, orders, proxy labels, rows of rankers, generated texts, analyses.
LOADING_VERSION = 1
# Training and writing.
DECODING_VERSION = 1
# ROUGE, also for the sentences that it compares; part of its signature.
SCORING_VERSION = 1
