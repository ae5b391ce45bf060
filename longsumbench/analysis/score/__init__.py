"""Scores of files with outputs."""
