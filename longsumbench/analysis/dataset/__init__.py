"""`longsumbench stats`: statistics and figures of a dataset. Start reading with `stats.py`."""
