"""The reader that all datasets share: files, the hub, checks of rows, storage. Start with `load_texts` in `load.py`."""
