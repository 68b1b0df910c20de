"""Beginnings: a board, one taken over from before, and new keys for its organisers."""
