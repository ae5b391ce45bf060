"""Parts of neural systems: units, batches, tokenizers, checkpoints, decoding, rankers, layers (`nn`) and training.

Start with `neural_system.NeuralSystem`, which joins a `unit_reader.UnitReader` and a model of transformers
that a `model_builder.ModelBuilder` makes. `processes` lets several processes work on one run.
"""
