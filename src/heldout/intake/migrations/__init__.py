"""Versions of the database's tables."""
