"""The metrics. Each scores one example; `aggregate.py` computes means and intervals for all of them.

Start with `rouge.py` for an example of a metric, and with `statistics.py` for intervals and tests.
"""
