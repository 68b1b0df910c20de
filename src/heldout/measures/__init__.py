"""Effectiveness measures, computed from the judged hits of one pass."""
