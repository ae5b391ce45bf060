"""Facts planted into natural texts: `dataset.plant`."""
