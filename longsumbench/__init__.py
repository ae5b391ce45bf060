"""A unified benchmark suite for long-input summarizers."""

__version__ = "0.1.0"
