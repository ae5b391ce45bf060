"""Views of what a system looked at, drawn from named axes alone."""
