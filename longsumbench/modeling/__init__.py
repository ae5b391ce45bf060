"""Parts of systems: units, batches, tokenizers, checkpoints, generation, rankers, layers (nn) and training."""
