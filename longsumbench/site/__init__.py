"""What results become for other people: one leaderboard of several machines or groups."""
