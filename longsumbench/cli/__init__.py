"""The command line. Start with `main`; each other file holds commands of one topic: arguments, help and function."""
