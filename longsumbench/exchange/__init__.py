"""Results for other people and from them: merge, verify, export to other formats, push to a hub."""
