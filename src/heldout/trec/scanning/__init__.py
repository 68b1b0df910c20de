"""Scanners: from the text of a run to the places of queries and judged documents in it."""
