"""ROUGE: tokenizers, stemmers, the overlap of two texts, and the signature of a score.

Start with `scorer.py`.
"""
