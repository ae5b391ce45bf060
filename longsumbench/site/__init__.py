"""What results become for other people: a site, one leaderboard of several machines, other formats, models on a hub."""
