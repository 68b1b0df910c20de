"""The rows of the leaderboard on a day."""
