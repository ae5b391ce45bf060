"""The systems, a folder each; none imports another."""
