"""Baselines that copy text: lead, random, LexRank, rankers, a greedy oracle, highlights. Start with `system.py`."""
