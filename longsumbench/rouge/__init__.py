"""ROUGE: tokenizers, stemmers, the overlap of two texts, and the signature of a score.

`RougeScorer` replaces that of `rouge_score`. The suite's own scorer is in `scorer.py`: start there.
"""

from longsumbench.rouge.text_scorer import RougeScorer

__all__ = ["RougeScorer"]
