"""Commands on finished runs: `compare`, `inspect` and `repro`. Start reading with `compare.py`."""
