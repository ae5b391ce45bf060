"""`longsumbench stats`: statistics of a dataset. Start reading with `stats.py`."""
