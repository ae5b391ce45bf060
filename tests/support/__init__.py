"""What several test modules use: toy data and systems, factories, waiting."""
