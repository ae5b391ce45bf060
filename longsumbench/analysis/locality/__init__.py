"""`longsumbench analyze locality`: similarity of sentences by their distance. Start reading with `locality.py`."""
