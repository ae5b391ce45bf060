"""`longsumbench analyze fusion`: finds source sentences fused in a summary. Start reading with `fusion.py`."""
