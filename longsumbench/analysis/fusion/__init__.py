"""Which sentences summaries fuse."""
