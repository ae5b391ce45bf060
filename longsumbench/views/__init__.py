"""Render results as text tables, HTML pages and pictures: `tables`, `html`, `figures`, `evidence`."""
