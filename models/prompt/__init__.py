"""Prompted language models, run by transformers or behind an OpenAI-compatible server. Start with `system.py`."""
