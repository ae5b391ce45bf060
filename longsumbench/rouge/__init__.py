"""ROUGE: tokenizers, stemmers, the overlap of two texts, and the signature of a score.

Start with `scorer.py`.
"""

from longsumbench.rouge.scorer import RougeScorer as RougeScorer
