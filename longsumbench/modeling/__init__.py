"""Parts of neural systems: units, batches, tokenizers, checkpoints, decoding, rankers, layers (`nn`) and training.

Start with `neural_system.NeuralSystem`, which joins a `unit_reader.UnitReader` and a `network.Network`. A new system
subclasses the three. `processes` lets several processes work on one run.
"""
