"""Trunc, the truncated-input Transformer of the SEAL paper (papers: SEAL §3.2)."""
