"""`longsumbench stats`: statistics, figures and near-duplicates of a dataset. Start reading with `stats.py`."""
