"""The files that a board scores with: query sets, labels, and what its views name."""
