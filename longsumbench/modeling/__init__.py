"""Parts of neural systems: units, batches, tokenizers, checkpoints, decoding, rankers, layers (`nn`) and training.

Start with `neural_system.NeuralSystem`, which connects them. A new system subclasses it.
"""
