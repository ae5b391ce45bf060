"""Baselines that need no model: lead, random, and the greedy oracle."""
