"""The generated dataset `probe`: council reports with planted facts. Start with `report` in `probe.py`."""
