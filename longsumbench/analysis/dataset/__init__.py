"""What a dataset is like."""
