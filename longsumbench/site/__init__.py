"""The static site of a results folder."""
