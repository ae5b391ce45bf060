"""The pictures of a leaderboard."""
