"""Finished runs: compared, inspected, reproduced."""
