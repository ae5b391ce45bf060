"""The command line. Start with `main`; each other file holds one command: its arguments, help and function."""
