"""Baselines that copy from the source: lead, random, LexRank, rankers, a greedy oracle, highlights. Start with `system.py`."""
