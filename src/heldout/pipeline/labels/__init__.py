"""Preference labels of a board: their versions, what they change, and how they are kept alive."""
