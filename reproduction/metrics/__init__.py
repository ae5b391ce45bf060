"""Semantic coherence."""
