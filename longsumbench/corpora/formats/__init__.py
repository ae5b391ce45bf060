"""File formats of releases."""
