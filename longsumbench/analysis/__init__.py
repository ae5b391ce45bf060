"""What datasets are like, and what could be said of them: no run needs any of it."""
