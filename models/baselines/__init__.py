"""Baselines without a model: lead, random, LexRank and the greedy oracle. Start with `system.py`."""
