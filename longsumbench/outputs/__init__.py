"""Tools on outputs of systems: score, import, compare, inspect."""
