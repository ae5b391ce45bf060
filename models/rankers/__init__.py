"""Learned paragraph rankers. Start with `lstm.py`; `longsumbench.modeling.ranking` has those without training."""
