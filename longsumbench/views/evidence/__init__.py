"""Views of a system's evidence: `views` chooses them by array axes, the other modules draw them."""
