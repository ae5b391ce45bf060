"""Training of a network: batches, optimizer, checkpoints, several processes. Start with `trainer.train`."""
