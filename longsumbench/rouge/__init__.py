"""ROUGE: what a text is made of, how two texts overlap, and the string that says how that was computed."""
