"""The command line: one file per command, with its arguments, its help and its function."""
