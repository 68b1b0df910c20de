"""The rows of the leaderboard, of its views and of its seasons, on a given day."""
