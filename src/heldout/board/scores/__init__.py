"""Scores of a board: the organiser's session, opening runs, releases, what is published."""
