"""One run: plan, read, fit, summarize, score, record."""
