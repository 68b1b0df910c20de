"""From run files or frames to a table of scores."""
