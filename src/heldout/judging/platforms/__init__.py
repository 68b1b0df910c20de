"""Crowd platforms: links of Prolific's kind, Mechanical Turk."""
