"""How summaries cohere."""
