"""Pictures and CSV files of a leaderboard: `curves` of sweeps, fact `recall`, recall by `lengths`."""
