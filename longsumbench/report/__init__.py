"""What is drawn from finished runs."""
