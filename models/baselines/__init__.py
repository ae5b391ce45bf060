"""Baselines that copy from the source: lead, random, LexRank, rankers and the greedy oracle. Start with `system.py`."""
