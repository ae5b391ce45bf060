"""`longsumbench score`: scores the outputs of any system with ROUGE. Start reading with `score.py`."""
