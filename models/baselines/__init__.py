"""Baselines that need no model: lead, random, LexRank, and the greedy oracle."""
