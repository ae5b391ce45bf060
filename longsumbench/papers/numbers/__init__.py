"""Tables and curves of scores: the printed numbers, ours, their differences, and verdicts."""
