"""What one implements or uses: Example, System, Corpus, Metric, Ranker, the settings and the registry of names."""
