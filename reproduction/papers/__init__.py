"""Every table and figure of the four papers: planned, run, and shown next to the published numbers."""
