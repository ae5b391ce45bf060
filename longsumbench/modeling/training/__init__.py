"""Training of a network: batches, optimizer, checkpoints, several processes."""
