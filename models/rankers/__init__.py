"""Rankers that learn."""
