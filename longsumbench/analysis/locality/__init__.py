"""How alike sentences are, by distance."""
