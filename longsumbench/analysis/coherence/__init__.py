"""`longsumbench analyze coherence`: coherence of references and summaries. Start reading with `coherence.py`."""
