"""`longsumbench import`: makes runs of outputs that were written outside the suite. Start with `import_outputs.py`."""
