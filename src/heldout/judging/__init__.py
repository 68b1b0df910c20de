"""Preference judging: from shallow pools to better labels."""
