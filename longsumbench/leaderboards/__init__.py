"""Tables and curves from run records: rankings, significance tests, truncation, published numbers.

`table` builds the leaderboard of a dataset, `curves` the curves of a sweep: start there.
"""
