"""A training experiment, cell by cell."""
