"""How any dataset is read: rows, files, the hub, checks, the store of read examples."""
