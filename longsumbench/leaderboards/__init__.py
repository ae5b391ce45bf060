"""From records to tables: comparable runs, significance, truncation, published numbers, curves."""
